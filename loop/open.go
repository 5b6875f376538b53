package loop

import (
	"context"
	"errors"

	"ralph"
	"ralph/loop/order"
	"ralph/loop/session"
	"ralph/loop/workspace"
	"ralph/store"
)

// open opens a session on a task in a workspace. write writes the session's order in the transaction that claims the
// task. The error wraps [ralph.ErrConflict] if the task cannot be claimed, and explains why.
func (c course) open(
	ctx context.Context, at *workspace.Workspace, start store.Start, task int64,
	write func(tx *store.Tx, t ralph.Task) (order.Order, error),
) (*session.Session, error) {
	s, err := c.parts().Open(ctx, at, start, task)
	if err != nil {
		return nil, err
	}
	return s, s.Begun(c.Store.Tx(ctx, func(tx *store.Tx) error {
		t, err := tx.Task(task)
		if err == nil {
			err = tx.Claimable(t)
		}
		if err != nil {
			return err
		}
		o, err := write(tx, t)
		if err != nil {
			return err
		}
		return s.Claim(tx, t, o)
	}))
}

// holdBack blocks the task if err means that the task itself prevented its session.
func (l *Loop) holdBack(ctx context.Context, task int64, err error) (bool, error) {
	if unknown, ok := errors.AsType[*order.UnknownAgentError](err); ok { // no other agent may stand in
		return true, l.Store.Tx(ctx, func(tx *store.Tx) error {
			return tx.Move(task, ralph.Failed, ralph.Loop, unknown.Error())
		})
	}
	var long *order.TooLongError
	if !errors.As(err, &long) {
		return false, nil
	}
	return true, l.Store.Tx(ctx, func(tx *store.Tx) error { return tx.HoldForPrompt(task, long.Error()) })
}

// release unblocks tasks whose prompts fit again, because flags were resolved, the task was shortened or the budget was
// raised.
func (l *Loop) release(ctx context.Context) error {
	var free []ralph.Comment
	err := l.Store.View(ctx, func(tx *store.Tx) error {
		held, err := tx.HeldForPrompt()
		for i := 0; err == nil && i < len(held); i++ {
			var t ralph.Task
			if t, err = tx.Task(held[i].TaskID); err != nil {
				return err
			}
			built, berr := l.BuildPrompt(tx, t)
			if berr == nil && built.TooLong == "" {
				free = append(free, held[i])
			}
			if _, ok := errors.AsType[*order.UnknownAgentError](berr); !ok { // the error is reported when the task's turn comes
				err = berr
			}
		}
		return err
	})
	if err != nil || len(free) == 0 {
		return err
	}
	return l.Store.Tx(ctx, func(tx *store.Tx) error {
		for _, c := range free {
			if err := tx.ReleaseForPrompt(c); err != nil {
				return err
			}
		}
		return nil
	})
}
