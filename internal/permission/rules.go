package permission

import (
	"os"
	"path/filepath"
	"time"
)

// Rules are a policy and the way to ask a person. They are fixed when a session begins; an agent's edits of ralph.yaml
// do not change them.
type Rules struct {
	Policy  Policy
	Timeout time.Duration // how long to wait for a person
}

// Exists reports whether a path exists.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// ResolveLinks resolves the links of a path as far as it exists.
func ResolveLinks(path string) string {
	for dir, rest := path, ""; ; dir, rest = filepath.Dir(dir), filepath.Join(filepath.Base(dir), rest) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
	}
}
