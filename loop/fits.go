package loop

import (
	"context"
	"errors"

	"ralph"
	"ralph/store"
)

// A tooLongError says why no session may begin on a task: its prompt has no room for
// what a person said, or for a blocking flag. It wraps [ralph.ErrConflict].
type tooLongError struct{ why string }

func (e *tooLongError) Error() string { return "no session begins: " + e.why }

func (*tooLongError) Unwrap() error { return ralph.ErrConflict }

// firstPrompt is what a session begins with, unless it is too long: a person may say that
// one begins all the same.
func (l *Loop) firstPrompt(tx *store.Tx, t ralph.Task, strange []string) (string, error) {
	built, err := l.BuildPrompt(tx, t, strange...)
	if l.claiming != nil {
		l.claiming()
	}
	if err != nil || built.TooLong == "" {
		return built.Text, err
	}
	begins, err := tx.BeginsLong(t.ID)
	if err == nil && !begins {
		err = &tooLongError{built.TooLong}
	}
	return built.Text, err
}

// holdBack holds a task back if that is why no session could be opened.
func (l *Loop) holdBack(ctx context.Context, task int64, err error) (bool, error) {
	var long *tooLongError
	if !errors.As(err, &long) {
		return false, nil
	}
	return true, l.Store.Tx(ctx, func(tx *store.Tx) error { return tx.HoldForPrompt(task, long.Error()) })
}

// release lets go of the tasks whose prompts have room by now: flags were resolved, the
// task was shortened, or the budget was raised.
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
			err = berr
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
