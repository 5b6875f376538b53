package worktree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Unlock removes an index lock left by a killed git, on which every later `git add` and `git
// commit` would fail. removed is its path; "" if there is none or a process may hold it.
func (t *Tree) Unlock() (removed string, err error) {
	if t.git == "" {
		return "", nil
	}
	path := filepath.Join(t.git, "index.lock")
	was, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil || inUse(path, t.top()) {
		return "", err
	}
	// Its holder may have finished by now and another one may have started.
	now, err := os.Lstat(path)
	if err != nil || !os.SameFile(was, now) || !was.ModTime().Equal(now.ModTime()) {
		return "", nil
	}
	return path, os.Remove(path)
}
