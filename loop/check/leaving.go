package check

import (
	"context"
	"maps"

	"ralph"
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
	Version worktree.Version
}

// Leavings returns, for names that of accepts, the files as landings left
// them, without those that a person approved. Changes that went to
// branches of their own do not count, as people merge these.
func Leavings(
	ctx context.Context, db *store.DB, tree *worktree.Tree, of func(name string) bool,
) (map[string]Leaving, error) {
	var list []ralph.Change
	var approved map[[2]string]bool
	if err := db.View(ctx, func(tx *store.Tx) (err error) {
		if list, err = tx.Merged(); err != nil || len(list) == 0 {
			return err
		}
		approved, err = tx.ApprovedBytes()
		return err
	}); err != nil || len(list) == 0 {
		return nil, err
	}
	commits := make([]string, len(list))
	for i, c := range list {
		commits[i] = c.To
	}
	touched, err := tree.Touched(ctx, commits)
	if err != nil {
		return nil, err
	}
	left := map[string]Leaving{}
	for _, c := range list { // newest first
		for _, name := range touched[c.To] {
			if _, known := left[name]; known || !of(name) {
				continue
			}
			v, err := tree.Version(ctx, c.To, name)
			if err != nil {
				return nil, err
			}
			left[name] = Leaving{place.DigestOf(v), c.SessionID, v}
		}
	}
	maps.DeleteFunc(left, func(name string, l Leaving) bool { return approved[[2]string{name, l.Digest}] })
	return left, nil
}
