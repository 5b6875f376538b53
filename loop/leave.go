package loop

import (
	"context"

	"ralph/store"
)

// leaves is what the session found and what it leaves, for the baselines of others
// (trust, 10). Where that cannot be seen it is not known who left what is there: a
// warning says so, and the session has an end all the same.
func (s *session) leaves(ctx context.Context, saw observation) (left *store.Left) {
	if saw.blind || s.left.WorkTree == "" {
		return nil
	}
	left = &store.Left{Session: s.row.ID, State: store.State{Content: s.left.WorkTree}, Found: store.State{Content: s.began.Digest()}}
	var err error
	if left.State.Committed, err = s.Place.Tree.Committed(ctx, s.left.Head); err == nil {
		left.Found.Committed, err = s.Place.Tree.Committed(ctx, s.began.Head)
	}
	if err != nil {
		s.Log.Warn("what a session left cannot be told from what people leave", "session", s.row.ID, "error", err)
		return nil
	}
	return left
}

// keepLeft notes it. A session that left what it found has made nothing its own,
// unless its done was accepted.
func (s *session) keepLeft(tx *store.Tx, left *store.Left, accepted bool) error {
	if left == nil || left.State == left.Found && !accepted {
		return nil
	}
	left.Accepted = accepted
	return tx.KeepLeft(*left)
}
