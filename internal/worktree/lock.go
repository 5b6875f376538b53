package worktree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Unlock removes an index lock left by a killed git, which would make every later `git add`
// and `git commit` fail. removed is its path; "" if there is none or a process may hold it.
func (t *Tree) Unlock() (removed string, err error) {
	return removeStale(filepath.Join(t.git, "index.lock"), t.Top())
}

// refLockAge is the age from which a ref's lock is considered abandoned: git holds one for
// milliseconds, and closes its file for a part of them.
const refLockAge = 5 * time.Second

// unlockRef removes a lock of one of ralph's own refs that a killed git or a power cut left. ours means that a git of
// this process left it, so that even a new lock is stale.
func (t *Tree) unlockRef(ref string, ours bool) (removed bool, err error) {
	if !strings.HasPrefix(ref, ownRefs) {
		return false, nil
	}
	path := filepath.Join(t.common, filepath.FromSlash(ref)+".lock")
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || !ours && time.Since(info.ModTime()).Abs() < refLockAge {
		return false, err
	}
	gone, err := removeStale(path, "")
	return gone != "", err
}

// Locked returns the lock file that prevents moving a ref, relative to the work tree if it is inside; "" for none.
func (t *Tree) Locked(ref string) (string, error) {
	if t.common == "" {
		return "", nil
	}
	path := filepath.Join(t.common, filepath.FromSlash(ref)+".lock")
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || isNotDir(err) {
		return "", nil
	}
	return t.inside(path), err
}

// inside makes a path relative to the work tree, if it is inside.
func (t *Tree) inside(path string) string {
	if inside, err := filepath.Rel(t.Top(), path); err == nil && filepath.IsLocal(inside) {
		return inside
	}
	return path
}

// removeStale removes a lock file that no process holds; see [inUse] for top. removed is its path; "" if
// it is not there or may be held.
func removeStale(path, top string) (removed string, err error) {
	was, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil || inUse(path, top) {
		return "", err
	}
	// The holder may have finished by now, and another one may have started.
	now, err := os.Lstat(path)
	if err != nil || !os.SameFile(was, now) || !was.ModTime().Equal(now.ModTime()) {
		return "", nil
	}
	return path, os.Remove(path)
}
