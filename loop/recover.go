package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"ralph"
	"ralph/internal/proc"
	"ralph/internal/worktree"
	"ralph/loop/merging"
	"ralph/loop/session"
	"ralph/loop/workspace"
	"ralph/signals"
	"ralph/store"
)

// recover decides on the sessions that earlier runs left open because their process or machine stopped. It leaves
// sessions of runs on other machines alone.
func (c course) recover(ctx context.Context) error {
	var lost, reviews []ralph.Session
	var died bool
	if err := c.Store.Tx(ctx, func(tx *store.Tx) (err error) {
		if err := tx.ReleaseAdrift(); err != nil {
			return err
		}
		last, ok, err := tx.LastRunHere()
		if err != nil {
			return err
		}
		if reviews, err = tx.LostReviews(); err != nil {
			return err
		}
		died = ok && last.EndedAt.IsZero() && !tx.Alive(last)
		lost, err = tx.LostSessions(true)
		return err
	}); err != nil {
		return err
	}
	if died && c.Here.Tree.Marker != "" {
		// A work tree scan that outlived its ralph would write to the same files as the next scan.
		if _, err := proc.Sweep(c.Here.Tree.Marker); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return fmt.Errorf("work tree scans that an earlier run left running: %w", err)
		}
	}
	return c.decideLost(ctx, reviews, lost)
}

// decideLost closes the reviews of lost runs, and decides on their sessions.
func (c course) decideLost(ctx context.Context, reviews, lost []ralph.Session) error {
	for _, row := range reviews {
		at, err := c.placeOf(ctx, row)
		if err != nil {
			return err
		}
		if err := errors.Join(c.parts().LoseReview(ctx, at, row), at.Workspace.Release()); err != nil {
			return err
		}
	}
	return c.each(ctx, lost, func(ctx context.Context, row ralph.Session) error {
		at, err := c.placeOf(ctx, row)
		if err != nil {
			return err
		}
		d, err := c.parts().Recover(ctx, at, row)
		err = errors.Join(err, at.Workspace.Release())
		if err == nil {
			c.Log.Info("decided a lost session",
				"session", row.ID, "task", row.TaskID, "status", string(d.Status), "reason", d.StatusReason)
		}
		return err
	})
}

// TakeOver decides on the open sessions of lost runs, such as those of other machines.
func (l *Loop) TakeOver(ctx context.Context) error { return l.outside().takeOver(ctx) }

// takeOver implements [Loop.TakeOver].
func (c course) takeOver(ctx context.Context) (err error) {
	read := func(tx *store.Tx) ([]ralph.Session, error) { return tx.LostSessions(false) }
	lost, err := store.Read(ctx, c.Store, read)
	if err != nil || len(lost) == 0 {
		return err
	}
	if c.Store.Shared() { // only one machine does it
		release, holder, lerr := c.Store.Lease(ctx, "janitor", 0)
		if lerr != nil || holder != "" {
			return lerr
		}
		defer func() { err = errors.Join(err, release()) }()
	}
	var reviews []ralph.Session
	if err := c.Store.Tx(ctx, func(tx *store.Tx) (err error) { // a run may have renewed its lease just now
		if err = tx.EndLostRuns(); err == nil {
			reviews, err = tx.LostReviews()
		}
		if err == nil {
			lost, err = read(tx)
		}
		return err
	}); err != nil {
		return err
	}
	return c.decideLost(ctx, reviews, lost)
}

// handedOver fetches the work that a session of another machine handed over. If its machine was lost before it queued
// a done, handedOver returns a workspace with that work, to check the done here; otherwise nil.
func (c course) handedOver(ctx context.Context, row ralph.Session) (*workspace.Workspace, error) {
	if away, err := store.Read(ctx, c.Store, (*store.Tx).RemoteAway); err != nil || away {
		return nil, cmp.Or(err, merging.ErrAway)
	}
	commit, err := c.Merger.FetchChange(ctx, ralph.Change{TaskID: row.TaskID, SessionID: row.ID})
	if err != nil || commit == "" {
		return nil, err
	}
	var began worktree.Snapshot
	var closing signals.Said
	if err := c.Store.View(ctx, func(tx *store.Tx) error {
		said, err := tx.SessionSignals(row.ID)
		if err != nil {
			return err
		}
		closing = signals.Closing(said)
		var hashes struct{}
		_, err = tx.Beginning(row.ID, &began, &hashes)
		return err
	}); err != nil {
		return nil, err
	}
	if closing.Payload == nil || closing.Payload.Verb() != ralph.VerbDone || began.Head == "" {
		return nil, nil //nolint:nilnil // there is nothing to be checked
	}
	// The session may have begun on the commit of an earlier one, which must be merged with its own work.
	base, err := c.Merger.Tip(ctx)
	if err == nil {
		base, err = c.Here.Tree.Fork(ctx, base, began.Head)
	}
	if err != nil {
		return nil, err
	}
	ws, err := c.takeForWorker(ctx) // a worker's workspace, so that no session of the run lacks one
	if err != nil {
		return nil, err
	}
	if _, err := ws.Begin(ctx, base, commit); err != nil {
		return nil, errors.Join(err, ws.Release())
	}
	return ws, nil
}

// each decides on ended sessions, and continues if one cannot be decided.
func (c course) each(
	ctx context.Context, rows []ralph.Session, decide func(context.Context, ralph.Session) error,
) error {
	for _, row := range rows {
		if err := c.undecided(ctx, row, decide(ctx, row)); err != nil {
			return err
		}
	}
	return nil
}

// undecided records why a session could not be decided, and logs it once. Its task stays claimed; the others continue.
// The returned error is the database's, or means that the run was stopped.
func (c course) undecided(ctx context.Context, row ralph.Session, why error) error {
	if why == nil || errors.Is(why, session.ErrSettled) || errors.Is(why, merging.ErrAway) { // the next look decides on it
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if store.NoRoom(why) { // the session is not at fault: the run ends, and the next one decides on it
		return fmt.Errorf("session %s of TASK-%d: %w", row.ID, row.TaskID, why)
	}
	var news bool
	err := c.Store.Tx(ctx, func(tx *store.Tx) (err error) {
		news, err = tx.NoteUndecided(row.ID, session.Shortly(why))
		return err
	})
	if err != nil {
		return errors.Join(fmt.Errorf("session %s of TASK-%d: %w", row.ID, row.TaskID, why), err)
	}
	if news {
		c.Log.Error("cannot decide on a session that has ended; its task stays claimed, see `ralph doctor`",
			"session", row.ID, "task", row.TaskID, "error", why)
	}
	return nil
}
