package loop

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ralph"
	"ralph/internal/machine"
	"ralph/store"
)

// Run works until no task is left that it could work on, a limit is reached, the agent cannot be used, or it is
// stopped. If ctx ends, it stops the session in progress at once. It leaves no goroutine and no process behind.
//
// The error reports a failure of ralph itself. The database then stays as
// it is, and the next run reconciles it.
//
// A run that counted as lost, for example after its machine was asleep, begins again as a new one.
func (l *Loop) Run(ctx context.Context) (Result, error) {
	return l.runFrom(ctx, time.Time{})
}

// runFrom is Run for a batch that begins at a time; zero is now.
func (l *Loop) runFrom(ctx context.Context, begins time.Time) (Result, error) {
	running, end := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-l.Stop:
			l.sinceStop()
		case <-running.Done():
		}
	})
	defer func() { end(); watch.Wait() }()
	for {
		result, err := l.run(ctx, begins)
		if !beginsAgain(err, l.Store.Shared()) || ctx.Err() != nil || closed(l.Stop) {
			return result, err
		}
		l.Log.Warn("begins again as a new run", "run", result.RunID, "error", err)
		l.awaitStore(ctx)
	}
}

// beginsAgain reports whether a run begins again after an error: it counted as lost, or may have, because the
// database's server was unreachable for longer than a lease.
func beginsAgain(err error, shared bool) bool {
	return errors.Is(err, ErrTakenForLost) || shared && store.Passes(err) && !store.NoRoom(err)
}

// awaitStore waits until the database can be reached.
func (l *Loop) awaitStore(ctx context.Context) {
	for ctx.Err() == nil && !closed(l.Stop) {
		if err := l.Store.View(ctx, func(*store.Tx) error { return nil }); !store.Passes(err) {
			return // the next run will report further problems
		}
		select {
		case <-ctx.Done():
		case <-l.Stop:
		case <-time.After(step):
		}
	}
}

// run executes one run.
func (l *Loop) run(ctx context.Context, begins time.Time) (Result, error) {
	if err := l.outside().recover(ctx); err != nil {
		return Result{Status: ralph.ExitFailure}, fmt.Errorf("recover the work of an earlier run: %w", err)
	}
	process, leave := machine.Join()
	defer leave()
	var run ralph.Run
	accounts := l.Agents.Accounts()
	err := l.Store.Tx(ctx, func(tx *store.Tx) (err error) {
		for name, account := range accounts {
			if err := tx.WorksWith(name, account); err != nil {
				return err
			}
		}
		if err := l.refuseOthers(tx); err != nil {
			return err
		}
		limits := l.Limits
		limits.Daily = l.ofDays()
		run, err = tx.StartRun(process, limits, l.Sandbox)
		return err
	})
	if err != nil {
		return Result{Status: ralph.ExitFailure}, err
	}
	r := newRunner(l, run.ID)
	r.begins = begins
	signalled := ctx
	ctx, release := l.keepAlive(ctx, run.ID)
	ends, err := r.work(ctx)
	release()
	if errors.Is(context.Cause(ctx), ErrTakenForLost) || beginsAgain(err, l.Store.Shared()) {
		return Result{RunID: run.ID, Status: ralph.ExitFailure}, errors.Join(ErrTakenForLost, err)
	}
	switch {
	case errors.Is(err, context.Canceled) && signalled.Err() != nil: // in the middle of a step
		ends, err = []end{*bySignal}, nil
	case err != nil:
		ends = []end{{ralph.ExitFailure, err.Error()}}
	}
	result := resultOf(run.ID, ends)
	if errors.Is(err, store.ErrGone) {
		return result, err // the database is gone, so the end cannot be recorded
	}
	// Record the end of the run even if ctx has ended, and the end of runs whose machines were lost
	// without leaving work.
	closing := l.Store.Tx(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		if err := tx.EndRun(run.ID, result.Status, result.Reasons[0]); err != nil {
			return err
		}
		return tx.EndLostRuns()
	})
	return result, errors.Join(err, closing)
}

// resultOf combines the reasons to end a run, the deciding one first.
func resultOf(run int64, ends []end) Result {
	result := Result{RunID: run}
	statuses := make([]int, len(ends))
	for i, e := range ends {
		statuses[i] = e.status
	}
	result.Status = ralph.ExitStatus(statuses...)
	for _, e := range ends {
		if e.status == result.Status {
			result.Reasons = append([]string{e.reason}, result.Reasons...)
		} else {
			result.Reasons = append(result.Reasons, e.reason)
		}
	}
	return result
}

// Serve works like [Loop.Run]; with a schedule it runs one batch after another. Each batch is a
// run with its own limits that waits for its time and ends when nothing is left to do. Serve
// ends with a batch that is stopped, finds the agent unusable, or fails in ralph itself.
func (l *Loop) Serve(ctx context.Context) (Result, error) {
	if l.Schedule.IsZero() {
		return l.Run(ctx)
	}
	for {
		begins := l.Schedule.Next(l.Store.Now())
		if begins.IsZero() {
			return Result{Status: ralph.ExitUsage}, errors.New("the schedule " + l.Schedule.String() + " names no further time")
		}
		result, err := l.runFrom(ctx, begins)
		if err != nil || !continues(result.Status) {
			return result, err
		}
	}
}

// continues reports whether another batch comes after one with this exit status.
func continues(status int) bool {
	switch status {
	case ralph.ExitOK, ralph.ExitFailed, ralph.ExitWaiting, ralph.ExitLimit:
		return true
	}
	return false
}
