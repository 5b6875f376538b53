package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// maxLoose is the number of files in one of the 256 folders of loose objects that starts packing:
// about 5,000 in all, somewhat below the number at which git packs by itself.
const maxLoose = 20

// Pack packs the loose objects and refs of the repository once they are many: each merge leaves
// some, and ralph switches git's own packing off. It deletes nothing.
func (t *Tree) Pack(ctx context.Context) error {
	sample, err := os.ReadDir(filepath.Join(t.common, "objects", "17"))
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(sample) < maxLoose {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := t.run(ctx, nil, "-c", "pack.compression=-1", "maintenance", "run", "--quiet",
		"--task=loose-objects", "--task=pack-refs"); err != nil {
		return err
	}
	_, err = t.run(ctx, nil, "prune-packed", "--quiet")
	return err
}
