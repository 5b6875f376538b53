package check

import (
	"context"
	"slices"

	"ralph/internal/worktree"
	"ralph/loop/place"
	"ralph/store"
)

// A Leaving is a file as the last landing that changed it left it: content
// by a session, which counts as a person's only once somebody approved it.
//
// This is derived from the landings themselves, so it holds whatever
// happens to people's checkout, and even if ralph is killed.
type Leaving struct {
	Digest  string // see [place.Digest]
	Session string
}

// Leavings returns the files as landings left them, without those that a person approved: of those
// with the given names, and of all whose names steer agents, those that of accepts. Changes that
// went to branches of their own do not count, as people merge these.
func Leavings(
	ctx context.Context, db *store.DB, open func() (*worktree.Tree, error), names []string, of func(name string) bool,
) (map[string]Leaving, error) {
	var list []store.LandedFile
	var approved map[[2]string]bool
	if err := db.View(ctx, func(tx *store.Tx) (err error) {
		if list, err = tx.LandedFiles(names); err != nil || len(list) == 0 {
			return err
		}
		approved, err = tx.ApprovedBytes()
		return err
	}); err != nil || len(list) == 0 {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(f store.LandedFile) bool { return !of(f.Path) })
	if len(list) == 0 {
		return nil, nil
	}
	tree, err := open()
	if err != nil {
		return nil, err
	}
	left := map[string]Leaving{}
	for _, f := range list {
		v, err := tree.Version(ctx, f.Commit, f.Path)
		if err != nil {
			return nil, err
		}
		if digest := place.DigestOf(v); !approved[[2]string{f.Path, digest}] {
			left[f.Path] = Leaving{digest, f.Session}
		}
	}
	return left, nil
}

// opened returns a work tree for [Leavings].
func opened(t *worktree.Tree) func() (*worktree.Tree, error) {
	return func() (*worktree.Tree, error) { return t, nil }
}
