package worktree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrGone means that the opened repository of a work tree was removed or replaced.
var ErrGone = errors.New("the git repository was removed or replaced")

// A pinned is a folder known by its identity. It stays open, so that no other folder can get the identity.
type pinned struct {
	folder *os.File
	info   os.FileInfo
}

// pin opens the git directories.
func (t *Tree) pin() error {
	for _, path := range []string{t.common, t.git} {
		folder, err := os.Open(path)
		if err != nil {
			return err
		}
		info, err := folder.Stat()
		if err != nil {
			return errors.Join(err, folder.Close())
		}
		t.pinned = append(t.pinned, pinned{folder, info})
		if t.common == t.git {
			break
		}
	}
	return nil
}

// Intact checks that the repository is still the opened one. The error wraps [ErrGone] if it is not.
func (t *Tree) Intact() error {
	for _, h := range t.pinned {
		now, err := os.Stat(h.folder.Name())
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%w: %s is gone", ErrGone, h.folder.Name())
		case err != nil:
			return fmt.Errorf("the git repository cannot be looked at: %w", err)
		case !os.SameFile(now, h.info):
			return fmt.Errorf("%w: %s is another one now", ErrGone, h.folder.Name())
		}
	}
	if len(t.pinned) > 0 {
		at := filepath.Join(t.Top(), ".git")
		if dir, err := gitDirOf(at); err == nil && !sameFile(dir, t.git) || err != nil && !errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("%w: %s does not lead to %s any more", ErrGone, at, t.git)
		}
	}
	return nil
}
