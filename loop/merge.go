package loop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"

	"ralph"
	"ralph/loop/check"
	"ralph/loop/merging"
	"ralph/loop/workspace"
	"ralph/store"
)

// merge merges the queued changes into the target branch. If several sessions
// work at once, it does so in a goroutine, whose result is applied later.
func (r *runner) merge(ctx context.Context) error {
	if r.merges {
		return nil
	}
	apart := r.Width() > 1
	if apart {
		list, err := store.Read(ctx, r.Store, (*store.Tx).QueuedChanges)
		if err != nil {
			return err
		}
		apart = len(list) > 0
	}
	if !apart {
		var err error
		r.waits, err = r.mergeUntilStopped(r.jobsCtx)
		return err
	}
	if rests, err := r.mergeRests(ctx); err != nil || rests {
		return err
	}
	// The merge may miss events from here on.
	began, err := r.lastEvent(ctx)
	if err != nil {
		return err
	}
	r.merges = true
	jobsCtx := r.jobsCtx
	go func() {
		waits, err := r.mergeUntilStopped(jobsCtx)
		r.over <- func(context.Context) error {
			r.merges, r.waits, r.rested, r.tried = false, waits, began, r.Store.Now()
			return err
		}
	}()
	return nil
}

// lastMerge is the time for a merge when the run has to end: enough for one that need not wait or verify.
const lastMerge = 5 * time.Second

// mergeUntilStopped merges until the run has to end, and [lastMerge] longer: the next run merges the rest.
func (r *runner) mergeUntilStopped(ctx context.Context) (waits merging.Wait, err error) {
	until, release := r.obeying(ctx, r.Config.Session.Grace)
	defer release()
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(until, func() { time.AfterFunc(lastMerge, cancel) })()
	if waits, err = r.mergeNow(work, nil, mergeWait, r.id); work.Err() != nil {
		err = nil
	}
	return waits, err
}

// lookElsewhere is how often a run checks whether another machine, which may be lost, still merges.
const lookElsewhere = 5 * time.Second

// waitsForElsewhere reports whether the merge queue waits for another machine, which may be lost at any time.
func (r *runner) waitsForElsewhere(ctx context.Context) (bool, error) {
	if !r.waits.Elsewhere {
		return false, nil
	}
	return store.Read(ctx, r.Store, func(tx *store.Tx) (bool, error) {
		_, ok, err := tx.RunElsewhere()
		return ok, err
	})
}

// worksElsewhere returns a session of another run, which may be lost at any time or leave its task to others.
func (r *runner) worksElsewhere(ctx context.Context) (s ralph.Session, ok bool, err error) {
	if !r.Store.Shared() || r.Task != 0 || r.NoWait {
		return s, false, nil
	}
	err = r.Store.View(ctx, func(tx *store.Tx) error { s, ok, err = tx.WorksElsewhere(r.id); return err })
	return s, ok, err
}

// waitElsewhere waits for another machine. The polling time is not stored: storing it would wake every watcher.
func (r *runner) waitElsewhere(ctx context.Context, why string) error {
	if err := r.state(ctx, "waiting", why, time.Time{}); err != nil {
		return err
	}
	r.sleep(ctx, r.Store.Now().Add(lookElsewhere))
	return errAgain
}

// mergeRests reports whether the merge queue waits and nothing has happened since it began to wait.
func (r *runner) mergeRests(ctx context.Context) (bool, error) {
	if r.waits.Why == "" || r.waits.Elsewhere && r.Store.Now().Sub(r.tried) >= lookElsewhere {
		return false, nil
	}
	last, err := r.lastEvent(ctx)
	if err != nil || last != r.rested {
		return false, err
	}
	q, err := store.Read(ctx, r.Store, (*store.Tx).MergeQueue)
	return q.WaitUntil.IsZero() || q.WaitUntil.After(r.Store.Now()), err
}

// mergeNow merges as much as it can, and returns the reason why the rest waits. Runs and workers take turns, and use a
// check workspace for other workspaces' work. A failure pauses the queue, unless the database failed or the disk is
// full. Run is the parameter of [merging.Merger].
func (l *Loop) mergeNow(
	ctx context.Context, of *workspace.Workspace, wait time.Duration, run int64,
) (waits merging.Wait, err error) {
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	lock := flock.New(filepath.Join(l.Here.State, "merge.lock"))
	if _, err := lock.TryLockContext(limited, mergeLook); err != nil {
		if limited.Err() != nil && ctx.Err() == nil {
			return merging.Wait{Why: "another process is merging"}, nil
		}
		return waits, fmt.Errorf("lock of the merge queue: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	dir, err := check.Folder(l.Here.State)
	if err != nil {
		return waits, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	merger := l.Merger.In(&check.Checker{Rules: l.Check, Pool: l.Pool, Of: of, Width: l.Width(), Round: check.Round{
		Session: "merging-" + l.Here.State, Log: filepath.Join(dir, "verify.log"),
	}})
	merger.Run = run
	waits, err = merger.Merge(ctx)
	if err != nil && !errors.Is(err, merging.ErrUnsigned) && ctx.Err() == nil && l.Store.Intact() == nil {
		l.Log.Warn("merging failed; trying once more", "error", err)
		waits, err = merger.Merge(ctx)
	}
	if err == nil || ctx.Err() != nil || l.Store.Intact() != nil || l.Here.Tree.Intact() != nil || store.Failed(err) {
		return waits, err // the next run merges the queue without "merge resume"
	}
	// No session is to blame or lost: their work waits in the queue for a person.
	reason := err.Error()
	if perr := l.Store.Tx(ctx, func(tx *store.Tx) error { return tx.PauseMerging(reason) }); perr != nil {
		return waits, errors.Join(err, perr)
	}
	return merging.Wait{Why: "merging is paused: " + reason}, nil
}

// mergeLeft merges the queue that a killed worker's server left behind, unless another process is merging.
func (l *Loop) mergeLeft(ctx context.Context) {
	list, err := store.Read(ctx, l.Store, (*store.Tx).QueuedChanges)
	if err == nil && len(list) > 0 {
		_, err = l.mergeFor(ctx, nil, mergeLook)
	}
	if err != nil && ctx.Err() == nil {
		l.Log.Warn("cannot merge done work now; it stays queued", "error", err)
	}
}

// mergeFor is mergeNow for work from a workspace, unless the queue merges into another branch.
func (l *Loop) mergeFor(ctx context.Context, of *workspace.Workspace, wait time.Duration) (why string, err error) {
	if err := l.Attached(); err != nil {
		return "", err
	}
	if err := l.Store.View(ctx, l.sameTarget); err != nil {
		return "", err
	}
	waits, err := l.mergeNow(ctx, of, wait, 0)
	return waits.Why, err
}

// Attached refuses to merge while no branch is checked out and merge.into names none. The error is a usage error.
func (l *Loop) Attached() error {
	if l.Merger.Into != "" {
		return nil
	}
	return ralph.Usage(errors.New("HEAD is detached: check a branch out into which work is to be merged, or name it in " +
		"merge.into"))
}

// sameTarget returns an error if a worker's work goes to another branch than that of the run, of sessions in progress,
// or of waiting changes: the one queue merges into one branch.
func (l *Loop) sameTarget(tx *store.Tx) error {
	q, err := tx.MergeQueue()
	if err != nil || q.Target == "" || q.Target == l.Merger.Into {
		return err
	}
	run, ok, err := tx.LastRun()
	if err != nil {
		return err
	}
	waiting, err := tx.QueuedChanges()
	if err != nil {
		return err
	}
	open, err := tx.OpenSessions()
	works := slices.ContainsFunc(open, func(s ralph.Session) bool { return s.Origin != ralph.FromHuman })
	if err != nil || (!ok || !run.EndedAt.IsZero()) && len(waiting) == 0 && !works {
		return err
	}
	return fmt.Errorf("done work is being merged into %s, and this server was started to merge into %s: "+
		"start it again, with the same branch checked out or in merge.into", q.Target, l.Merger.Into)
}

// How long to wait while another process merges, which is shorter than stepTime, and the polling
// interval.
const (
	mergeWait = 4 * time.Minute
	mergeLook = 20 * time.Millisecond
)

// MergeQueued merges the queue, and returns the reason why the rest waits; "" if nothing is left.
func (l *Loop) MergeQueued(ctx context.Context) (why string, err error) {
	return l.mergeFor(ctx, nil, mergeWait)
}
