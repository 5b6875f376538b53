package worktree_test

import (
	"testing"

	"ralph/internal/worktree"
)

func TestSecret(t *testing.T) {
	for name, want := range map[string]bool{
		".env": true, "web/.env": true, ".env.local": true, ".env.production": true, "prod.env": true, ".envrc": true, ".ENV": true,
		".env.example": false, ".env.sample": false, ".env.template": false, ".env-dist": false, "env.go": false, "environment": false,
		"server.pem": true, "tls/server.key": true, "a.p12": true, "keys.go": false, "key": false, "example.pem": false,
		"id_rsa": true, "id_ed25519": true, "id_rsa.pub": false, ".netrc": true, ".git-credentials": true,
		"credentials": true, "credentials.json": true, "aws-credentials.csv": true, "credentials.go": false, "credentials_test.py": false,
		"client_secret_123.json": true, "service-account.json": true, "secrets.yaml": true, "secret.go": false, "secretary.txt": false,
		"main.go": false, "README.md": false, "": false,
	} {
		if got := worktree.Secret(name, func() []byte { return nil }); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
	for content, want := range map[string]bool{
		"//registry.example.com/:_authToken=x": true, "_password=x": true, "save-exact=true": false, "": false,
	} {
		if got := worktree.Secret(".npmrc", func() []byte { return []byte(content) }); got != want {
			t.Errorf(".npmrc with %q: %t", content, got)
		}
	}
}
