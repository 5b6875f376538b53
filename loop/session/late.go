package session

import (
	"context"
	"errors"
	"fmt"

	"ralph"
	"ralph/loop/workspace"
	"ralph/store"
)

// ErrSettled means that a session counted as lost and was decided elsewhere, for example because its machine was asleep
// or cut off.
var ErrSettled = errors.New("it was decided elsewhere meanwhile, as its run was taken for lost")

// bookSettled explains why a session could not be decided. If another machine has decided on it, bookSettled keeps
// the session's work under a separate ref, and books its cost.
func (s *Session) bookSettled(ctx context.Context, why error) error {
	was, err := store.Read(ctx, s.Store, func(tx *store.Tx) (ralph.Session, error) { return tx.Session(s.Row.ID) })
	if err != nil || was.CompletedAt.IsZero() {
		return errors.Join(why, err)
	}
	settled := fmt.Errorf("%w: %w", ErrSettled, why)
	if s.reopened { // another process did the work
		return settled
	}
	note := fmt.Sprintf("%s came back late, and reported the cost", s.Row.Machine)
	kept, err := s.keepApart(ctx)
	if kept != "" {
		note += "; its work is kept there as " + kept
	}
	return errors.Join(settled, err, s.Store.Tx(ctx, func(tx *store.Tx) error {
		now, err := tx.Session(s.Row.ID)
		if err == nil {
			bill := lateBill(now, s.Row)
			err = tx.BookLate(now.ID, bill.CostUSD, bill.CostKnown, bill.Tokens, note)
		}
		return err
	}))
}

// lateBill returns the session whose costs count: the decided one, as others charged it, or the report of its own
// machine. A known cost counts more than an estimate, and the higher of two estimates counts.
func lateBill(settled, told ralph.Session) ralph.Session {
	if settled.CostKnown || !told.CostKnown && told.CostUSD <= settled.CostUSD {
		return settled
	}
	return told
}

// keepApart keeps the session's work under a ref that is never merged, and returns it; "" if there is no work, or
// others have it. The change's own ref is theirs: this machine fetches their commit when needed.
func (s *Session) keepApart(ctx context.Context) (ref string, err error) {
	if s.Row.Change == nil || s.Row.Change.Head == "" {
		return "", nil
	}
	theirs, err := store.Read(ctx, s.Store, func(tx *store.Tx) (ralph.Change, error) {
		c, _, _, err := tx.ChangeBy(s.Row.ID)
		return c, err
	})
	if err != nil || theirs.Head == s.Row.Change.Head {
		return "", err
	}
	ref, tree := workspace.LostRef(s.Row.ID), s.Merger.Tree
	if err := tree.SetRef(ctx, ref, s.Row.Change.Head); err != nil {
		return "", err
	}
	return ref, tree.SetRef(ctx, ralph.Change{SessionID: s.Row.ID}.Ref(), "")
}
