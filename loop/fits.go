package loop

import (
	"context"
	"errors"

	"ralph"
	"ralph/loop/agent"
	"ralph/prompt"
	"ralph/store"
)

// A tooLongError says that no session may begin on a task because its prompt has no
// room for what a person said, or for a blocking flag. It wraps [ralph.ErrConflict].
type tooLongError struct{ why string }

func (e *tooLongError) Error() string { return "no session begins: " + e.why }

func (*tooLongError) Unwrap() error { return ralph.ErrConflict }

// firstPrompt returns a builder of a session's first prompt. It fails if
// the prompt is too long, unless a person said to begin all the same.
func (l *Loop) firstPrompt(ws *prompt.Workspace) func(*store.Tx, ralph.Task, agent.Agent) (string, error) {
	return func(tx *store.Tx, t ralph.Task, works agent.Agent) (string, error) {
		if t.Role == ralph.RolePlan {
			return l.planPrompt(tx, t, works)
		}
		d, err := l.promptData(tx, t, works)
		if err != nil {
			return "", err
		}
		d.Workspace = ws
		built := prompt.Build(d)
		if l.claiming != nil {
			l.claiming()
		}
		if built.Err != nil || built.TooLong == "" {
			return built.Text, built.Err
		}
		begins, err := tx.BeginsLong(t.ID)
		if err == nil && !begins {
			err = &tooLongError{built.TooLong}
		}
		return built.Text, err
	}
}

// holdBack holds the task back if err says that the task itself is why no session could be opened.
func (l *Loop) holdBack(ctx context.Context, task int64, err error) (bool, error) {
	if unknown, ok := errors.AsType[*unknownAgentError](err); ok { // no other agent stands in
		return true, l.Store.Tx(ctx, func(tx *store.Tx) error {
			return tx.Move(task, ralph.Failed, ralph.Loop, unknown.Error())
		})
	}
	var long *tooLongError
	if !errors.As(err, &long) {
		return false, nil
	}
	return true, l.Store.Tx(ctx, func(tx *store.Tx) error { return tx.HoldForPrompt(task, long.Error()) })
}

// release lets go of tasks whose prompts fit again, because flags were
// resolved, the task was shortened or the budget was raised.
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
			if _, ok := errors.AsType[*unknownAgentError](berr); !ok { // reported when the task's turn comes
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
