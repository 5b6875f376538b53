package merging

import (
	"context"

	"github.com/google/uuid"

	"ralph"
)

// Reverse makes a change that undoes merged changes of a task, newest first, on the target's tip. Conflicts are the
// files that later commits have changed. The result has no head if nothing of the changes is left in the target.
func (m *Merger) Reverse(ctx context.Context, merged []ralph.Change) (r ralph.Change, conflicts []string, err error) {
	tip, err := m.Tip(ctx)
	if err != nil {
		return r, nil, err
	}
	is, err := m.Tree.Whole(ctx, tip)
	if err != nil {
		return r, nil, err
	}
	tree := is
	for _, c := range merged {
		if tree, conflicts, err = m.without(ctx, tree, c); err != nil || len(conflicts) > 0 {
			return r, conflicts, err
		}
	}
	r = ralph.Change{TaskID: merged[0].TaskID, SessionID: uuid.NewString(), Base: tip, Tree: tree}
	if tree == is {
		return r, nil, nil
	}
	r.Head, err = m.Tree.CommitTree(ctx, tree, []string{tip}, "Undo\n\n"+ralph.Trailers(r.TaskID, r.SessionID),
		m.Tree.User(ctx))
	if err != nil {
		return r, nil, err
	}
	return r, nil, m.SetChangeRef(ctx, r)
}

// without returns a tree with a merged change removed.
func (m *Merger) without(ctx context.Context, tree string, c ralph.Change) (_ string, conflicts []string, err error) {
	after, err := m.Tree.Whole(ctx, c.Commit)
	if err != nil {
		return "", nil, err
	}
	parent, err := m.Tree.Ref(ctx, c.Before())
	if err != nil {
		return "", nil, err
	}
	before, err := m.Tree.Whole(ctx, parent)
	if err != nil {
		return "", nil, err
	}
	// Git merges by the common ancestor of two commits, which here is the change's own commit.
	base, err := m.Tree.CommitTree(ctx, after, nil, "what is undone\n", [2]string{})
	if err != nil {
		return "", nil, err
	}
	sides := [2]string{}
	for i, side := range []string{tree, before} {
		if sides[i], err = m.Tree.CommitTree(ctx, side, []string{base}, "a side\n", [2]string{}); err != nil {
			return "", nil, err
		}
	}
	merged, err := m.Tree.MergeTree(ctx, sides[0], sides[1])
	return merged.Tree, merged.Conflicts, err
}
