package merging

import (
	"context"

	"github.com/google/uuid"

	"ralph"
)

// Reverse makes the change that takes back what another one has been merged: what that did alone is undone on the
// target's tip. Conflicts are the files in which later commits stand in its way. The error wraps [ralph.ErrConflict] if
// the target has nothing of it any more.
func (l *Merger) Reverse(ctx context.Context, c ralph.Change) (r ralph.Change, conflicts []string, err error) {
	tip, err := l.Tip(ctx)
	if err != nil {
		return r, nil, err
	}
	before, alone, err := l.alone(ctx, c)
	if err != nil {
		return r, nil, err
	}
	after := alone.Tree
	if len(alone.Conflicts) > 0 { // it was merged together with what it needs
		if after, err = l.Tree.Whole(ctx, c.To); err != nil {
			return r, nil, err
		}
	}
	// Git merges with what two commits have in common: here the change itself.
	base, err := l.Tree.CommitTree(ctx, after, nil, "what is undone\n", [2]string{})
	if err != nil {
		return r, nil, err
	}
	sides := [2]string{}
	for i, commit := range []string{tip, before} {
		tree, err := l.Tree.Whole(ctx, commit)
		if err != nil {
			return r, nil, err
		}
		if sides[i], err = l.Tree.CommitTree(ctx, tree, []string{base}, "a side\n", [2]string{}); err != nil {
			return r, nil, err
		}
	}
	m, err := l.Tree.MergeTree(ctx, sides[0], sides[1])
	if err != nil || len(m.Conflicts) > 0 {
		return r, m.Conflicts, err
	}
	is, err := l.Tree.Whole(ctx, tip)
	if err != nil {
		return r, nil, err
	}
	if m.Tree == is {
		return r, nil, ralph.Conflict("%s has nothing of TASK-%d's change any more", l.Into, c.TaskID)
	}
	r = ralph.Change{TaskID: c.TaskID, SessionID: uuid.NewString(), Base: tip, Tree: m.Tree}
	r.Head, err = l.Tree.CommitTree(ctx, m.Tree, []string{tip}, "Undo\n\n"+ralph.Trailers(c.TaskID, r.SessionID),
		l.Tree.User(ctx))
	if err != nil {
		return r, nil, err
	}
	return r, nil, l.SetChangeRef(ctx, r)
}
