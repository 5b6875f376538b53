package worktree

import (
	"bytes"
	"path"
	"slices"
	"strings"
)

// Secret tells by a file's name, and by its content where the name does not tell,
// whether it looks like one that holds a secret. It is for files that git does not
// know; one that is committed has been decided on.
func Secret(name string, content func() []byte) bool {
	base := strings.ToLower(path.Base(name))
	if isExample(base) {
		return false
	}
	ext := path.Ext(base)
	switch {
	case strings.HasPrefix(base, ".env"), ext == ".env":
		return true
	case slices.Contains(secretExtensions, ext), slices.Contains(secretNames, base):
		return true
	case slices.Contains([]string{".npmrc", ".pypirc", ".yarnrc.yml", ".yarnrc", ".gemrc", ".dockercfg"}, base):
		text := bytes.ToLower(content())
		return slices.ContainsFunc(tokenWords, func(w string) bool { return bytes.Contains(text, []byte(w)) })
	}
	// Of files with such words in their names those that are data: not credentials.go.
	return slices.Contains(dataExtensions, ext) &&
		slices.ContainsFunc(dataWords, func(w string) bool { return strings.Contains(base, w) }) ||
		slices.Contains(dataExtensions, ext) && slices.Contains([]string{"secret", "secrets"}, strings.TrimSuffix(base, ext))
}

var (
	secretExtensions = []string{".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk"}
	secretNames      = []string{
		"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk",
		".netrc", "_netrc", ".git-credentials", ".pgpass", ".htpasswd", "kubeconfig",
	}
	tokenWords     = []string{"authtoken", "_auth", "password", "token", "\"auth\"", "api_key"}
	dataWords      = []string{"credentials", "client_secret", "service-account", "service_account"}
	dataExtensions = []string{
		"", ".json", ".yaml", ".yml", ".toml", ".ini", ".csv", ".txt", ".xml", ".properties", ".cfg", ".conf",
	}
	exampleWords = []string{"example", "examples", "sample", "template", "tmpl", "dist", "defaults", "schema"}
)

// isExample tells the file that shows what a secret one looks like.
func isExample(base string) bool {
	words := strings.FieldsFunc(base, func(r rune) bool { return strings.ContainsRune("._-", r) })
	return slices.ContainsFunc(words, func(word string) bool { return slices.Contains(exampleWords, word) })
}
