package worktree

import (
	"bytes"
	"path"
	"slices"
	"strings"
)

// Secret reports whether a file seems to contain a secret, by its name, or by its content if the name is ambiguous. It
// is for untracked files: somebody has already decided on committed ones.
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
	// Files with such words in their names count if they hold data, unlike credentials.go.
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

// isExample reports whether a file is a template of a secret one.
func isExample(base string) bool {
	words := strings.FieldsFunc(base, func(r rune) bool { return strings.ContainsRune("._-", r) })
	return slices.ContainsFunc(words, func(word string) bool { return slices.Contains(exampleWords, word) })
}
