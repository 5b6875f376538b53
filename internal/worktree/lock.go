package worktree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Unlock removes the lock of the index that a git has left which was killed: every
// later `git add` and `git commit` would fail on it. removed is its path, "" where there
// is none or where somebody may hold it.
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
	// Whoever had it may be done by now, and another one begun.
	now, err := os.Lstat(path)
	if err != nil || !os.SameFile(was, now) || !was.ModTime().Equal(now.ModTime()) {
		return "", nil
	}
	return path, os.Remove(path)
}
