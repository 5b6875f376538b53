package loop

import (
	"context"
	"errors"
	"fmt"
	"io"

	"ralph"
	"ralph/loop/check"
	"ralph/loop/merging"
	"ralph/loop/session"
	"ralph/loop/workspace"
	"ralph/prompt"
	"ralph/store"
)

// enter prepares a workspace, from take, for a session. About describes it for the prompt.
func (c course) enter(
	ctx context.Context, task ralph.Task, take func(context.Context) (*workspace.Workspace, error),
) (ws *workspace.Workspace, about *prompt.Workspace, err error) {
	was, kept, err := c.kept(ctx, task)
	if err != nil {
		return nil, nil, err
	}
	tip, err := c.Merger.Base(ctx, task.ID)
	if errors.Is(err, merging.ErrUnsigned) {
		return nil, nil, unequipped{err}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cannot start a session: %w", err)
	}
	if ws, err = take(ctx); err != nil {
		return nil, nil, err
	}
	about = &prompt.Workspace{Target: c.Merger.Into, Kept: kept != ""}
	about.Conflicts, err = ws.Begin(ctx, tip, kept, was.Conflicts...)
	if err == nil && kept != "" {
		err = c.Check.Guard.Lay(ctx, ws, ws.Clone.Base, kept)
	}
	if err != nil {
		return nil, nil, unready(errors.Join(err, ws.Release()))
	}
	if was.State == ralph.SentBack {
		about.SentBack = was.Reason
	}
	return ws, about, nil
}

// giveBack releases a workspace.
func (l *Loop) giveBack(ws *workspace.Workspace) {
	if err := ws.Release(); err != nil {
		l.Log.Warn("cannot release a workspace", "error", err)
	}
}

// kept returns the work of an earlier session of a task, and the commit from which the next session continues: "" if
// there is none, or if the work conflicted too often.
func (l *Loop) kept(ctx context.Context, task ralph.Task) (c ralph.Change, commit string, err error) {
	var ok bool
	if err := l.Store.View(ctx, func(tx *store.Tx) error {
		c, ok, err = tx.ChangeOf(task.ID)
		return err
	}); err != nil || !ok || c.State != ralph.Held && c.State != ralph.SentBack {
		return ralph.Change{}, "", err
	}
	if c.State == ralph.SentBack && len(c.Conflicts) > 0 && task.TimesSentBack >= l.Merger.MaxSentBack {
		return c, "", nil
	}
	commit, err = l.Merger.Obtain(ctx, c)
	return c, commit, err
}

// unready ends the run if a workspace's set-up failed, since it would fail in every workspace.
func unready(err error) error {
	if _, ok := errors.AsType[*workspace.SetupError](err); ok {
		return unequipped{err}
	}
	return err
}

// An unequipped is a failed set-up or a locked key, which ends a run.
type unequipped struct{ error }

// Unwrap returns the set-up's error, and the end of a run.
func (u unequipped) Unwrap() []error { return []error{u.error, &end{ralph.ExitUsage, u.Error()}} }

// placeOf takes the place of an open session, or a substitute: the workspace with the work that it has handed over, or
// the person's folder.
func (c course) placeOf(ctx context.Context, row ralph.Session) (at session.Place, err error) {
	if at.Workspace, err = c.Pool.Of(ctx, row.Dir, ralph.Change{SessionID: row.ID}.Ref()); err != nil {
		return at, err
	}
	// Another machine may have the same name, and another clone on this machine may have the folder.
	foreign := c.Store.OtherMachine(row) || c.Store.Shared() && !c.Here.Has(row.Dir)
	if at.Workspace == nil && row.Role != ralph.RoleReview && foreign {
		if at.Workspace, err = c.handedOver(ctx, row); err != nil {
			return at, err
		}
		at.HandedOver = at.Workspace != nil
	}
	if at.Workspace == nil {
		at.Workspace = c.Here
	}
	return at, nil
}

// verifier returns a verifier of a commit, in the workspace where it is checked out; a nil workspace means that only
// known results count.
func (c course) verifier(ctx context.Context, commit string, at *workspace.Workspace) (*check.Verifier, error) {
	tree, err := c.Here.Tree.Whole(ctx, commit)
	return &check.Verifier{
		Rules: c.Check, Store: c.Store, Workspace: at, Key: c.Pool.ResultKey(tree), State: c.Here.State,
		Busy: c.Busy, Slow: c.slow,
	}, err
}

// onTip runs do on the last merged commit, in a check workspace if the work comes from another workspace; see
// [workspace.Pool.TakeCheck].
func (c course) onTip(ctx context.Context, of *workspace.Workspace, do func(v *check.Verifier) error) (err error) {
	tip, err := c.Merger.Tip(ctx)
	if err != nil {
		return err
	}
	v, err := c.verifier(ctx, tip, nil)
	if err != nil {
		return err
	}
	if v.Workspace, err = c.Pool.TakeCheck(ctx, of, c.Width()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Workspace.Release()) }()
	if err := v.Workspace.At(ctx, tip); err != nil {
		return unready(err)
	}
	if err := do(v); err != nil {
		return err
	}
	merged, err := store.Read(ctx, c.Store, (*store.Tx).Merged)
	if err != nil || len(merged) > 0 {
		return err
	}
	return v.Workspace.KeepWarm()
}

// baseline gets the verification's results for the first commit of a task's session. Usually that is the last merge,
// with known results.
func (c course) baseline(ctx context.Context, task ralph.Task, at *workspace.Workspace) error {
	if at.Clone != nil {
		v, err := c.verifier(ctx, at.Clone.Base, nil)
		if err == nil {
			err = v.Baseline(ctx, task)
		}
		if !errors.Is(err, check.ErrUnknown) {
			return err
		}
	}
	return c.onTip(ctx, at, func(v *check.Verifier) error { return v.Baseline(ctx, task) })
}

// Verify calls [check.Verifier.Verify] on the tip, see onTip. Set-up that failed before is tried again.
func (l *Loop) Verify(
	ctx context.Context, task int64, show func(c ralph.Check, output io.ReadSeeker) error,
) (checks []ralph.Check, red bool, err error) {
	if err := l.Pool.Again(); err != nil {
		return nil, false, err
	}
	err = l.outside().onTip(ctx, nil, func(v *check.Verifier) (err error) {
		checks, red, err = v.Verify(ctx, task, show)
		return err
	})
	return checks, red, err
}
