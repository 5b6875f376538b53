package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// maxLoose is how many files in one of the 256 folders of loose objects start packing: about 5,000 in total, somewhat
// less than git's own limit.
const maxLoose = 20

// Pack packs the loose objects and refs of the repository if there are many: each merge leaves some, and ralph disables
// git's own packing. It deletes nothing.
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
