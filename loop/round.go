package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ralph"
	"ralph/internal/machine"
	"ralph/internal/text"
	"ralph/loop/order"
	"ralph/store"
)

// work runs rounds until one of them ends the run.
func (r *runner) work(ctx context.Context) ([]end, error) {
	jobsCtx, cancel := context.WithCancel(ctx)
	r.jobsCtx = jobsCtx
	defer cancel()
	for {
		err := r.round(ctx)
		var e *end
		switch {
		case err == nil, errors.Is(err, errAgain), r.awaitGit(err):
		case errors.As(err, &e):
			on, first, err := r.ending(ctx, e)
			if err != nil {
				cancel()
				_, more := r.finish(ctx)
				return nil, errors.Join(err, more)
			}
			if on {
				continue
			}
			ends, err := r.finish(ctx)
			if err != nil {
				return nil, err
			}
			if e, err = r.nothingLeft(ctx, e); err != nil {
				return nil, err
			}
			rest, err := r.leftOver(ctx)
			if e.status == ralph.ExitOK && len(rest) > 0 {
				return rest, err
			}
			return slices.Concat([]end{*e}, first, ends, rest), err
		default:
			cancel()
			_, more := r.finish(ctx)
			return nil, errors.Join(err, more)
		}
	}
}

// round waits, or picks a task and begins a session on it.
func (r *runner) round(ctx context.Context) error {
	if err := r.heed(ctx, len(r.jobs) >= r.Width()); err != nil {
		return err
	}
	r.beat(stepTime)
	if err := r.Here.Tree.Intact(); err != nil {
		return fmt.Errorf("%w; restore it, or find the cause, before the next run", err)
	}
	seen, err := r.lookout(ctx)
	if err != nil {
		return err
	}
	if why := r.room(seen.spending); why != "" {
		return r.besides(ctx, why)
	}
	task, its, ok, err := r.next(ctx)
	if err != nil {
		return err
	}
	if err := r.waitForOpening(ctx, ok); err != nil {
		return err
	}
	switch {
	case ok:
		return r.start(ctx, task, its)
	case r.busy():
		return r.besides(ctx, cmp.Or(r.held, "no other task can start now"))
	}
	return r.withoutTask(ctx, seen)
}

// lookout does the work before the choice of a task: it obeys people, merges, checks limits, and decides on lost
// sessions.
func (r *runner) lookout(ctx context.Context) (seen outlook, err error) {
	for _, before := range []func(context.Context) error{r.stopped, r.merge} {
		if err := before(ctx); err != nil {
			return seen, err
		}
	}
	if seen, err = r.readOutlook(ctx); err != nil {
		return seen, err
	}
	if err := r.limit(seen.spending); err != nil {
		return seen, err
	}
	if err := r.waitForDay(ctx, 0); err != nil {
		return seen, err
	}
	if err := r.waitForGit(ctx); err != nil {
		return seen, err
	}
	if len(r.jobs) >= r.Width() { // a merge has ended, but no session
		return seen, errAgain
	}
	if len(seen.lapsed)+len(seen.lost)+seen.held == 0 {
		return seen, nil
	}
	if err := r.tidy(ctx, seen); err != nil {
		return seen, err
	}
	now, err := r.readOutlook(ctx)
	if err == nil && len(now.lost) < len(seen.lost) {
		err = errAgain // their work may be queued now
	}
	return now, err
}

// withoutTask waits for work, or ends the run, if no session is in progress and none can begin.
func (r *runner) withoutTask(ctx context.Context, seen outlook) error {
	if err := r.waitForLost(ctx); err != nil {
		return err
	}
	if err := r.waitForWork(ctx); err != nil {
		return err
	}
	if waits, err := r.waitsForElsewhere(ctx); err != nil || waits {
		return cmp.Or(err, r.waitElsewhere(ctx, r.waits.Why))
	}
	switch {
	case r.waits.Why != "":
		return &end{ralph.ExitWaiting, "done work is not merged: " + r.waits.Why}
	case r.held != "":
		return &end{ralph.ExitLimit, r.held}
	case seen.away:
		return &end{ralph.ExitWaiting, "the remote cannot be reached, and may have the work of a lost machine"}
	}
	if s, ok, err := r.worksElsewhere(ctx); err != nil || ok {
		return cmp.Or(err, r.waitElsewhere(ctx, fmt.Sprintf("for TASK-%d, on which %s works", s.TaskID, s.Machine)))
	}
	failed, err := store.Read(ctx, r.Store, func(tx *store.Tx) (int, error) {
		return tx.CountTasks(store.TaskFilter{Statuses: []ralph.Status{ralph.Failed}})
	})
	if err != nil {
		return err
	}
	why := nothingToDo
	if failed > 0 {
		why += fmt.Sprintf("; %s failed in earlier runs", text.Count(failed, "task"))
	}
	return &end{ralph.ExitOK, why}
}

// start begins a session on a task, or waits until it can.
func (r *runner) start(ctx context.Context, task ralph.Task, its order.Turn) (err error) {
	if err := r.waitForDay(ctx, task.ID); err != nil {
		return err
	}
	if err := r.waitForAgent(ctx, its); err != nil {
		return err
	}
	if !r.red.green && task.Role != ralph.RolePlan && r.works() {
		return r.besides(ctx, "the verification has to pass first")
	}
	if err := r.waitForRemote(ctx); err != nil {
		return err
	}
	if task, err = r.ready(ctx, task); err != nil {
		return cmp.Or(r.awaitRemote(ctx, err), errAgain)
	}
	if why := r.tasksReached(task.ID); why != "" {
		if r.busy() {
			return r.besides(ctx, why)
		}
		return &end{ralph.ExitLimit, why}
	}
	return r.begin(ctx, task)
}

// An outlook is the state that a run reads before it picks a task, in one transaction.
type outlook struct {
	spending store.Spending
	lapsed   []ralph.Session // claims that were not renewed in time
	lost     []ralph.Session // open sessions of lost runs
	away     bool            // the task may be at the unreachable remote
	held     int             // number of tasks that wait because their prompts were too long
}

// readOutlook reads the outlook.
func (r *runner) readOutlook(ctx context.Context) (o outlook, err error) {
	err = r.Store.View(context.WithoutCancel(ctx), func(tx *store.Tx) (err error) {
		if o.spending, err = tx.Spending(r.id, order.Since(r.since(), r.Store.Now()), order.Worth); err != nil {
			return err
		}
		if o.lapsed, err = tx.LapsedClaims(); err != nil {
			return err
		}
		if o.lost, err = tx.LostSessions(false); err != nil {
			return err
		}
		if o.away, err = tx.RemoteAway(); err != nil {
			return err
		}
		held, err := tx.HeldForPrompt()
		o.held = len(held)
		return err
	})
	o.away = o.away && len(o.lost) > 0
	return o, err
}

// tidy decides on lost sessions, and releases tasks whose prompts fit again.
func (r *runner) tidy(ctx context.Context, seen outlook) error {
	if err := r.lapse(ctx, seen.lapsed); err != nil {
		return fmt.Errorf("decide on expired claims: %w", err)
	}
	if len(seen.lost) > 0 && !seen.away {
		if err := r.takeOver(ctx); err != nil {
			return fmt.Errorf("decide on the sessions of lost runs: %w", err)
		}
	}
	return r.release(ctx)
}

// bySignal is the end of a run that a signal has ended.
var bySignal = &end{ralph.ExitStopped, "stopped by a signal"}

// stopped ends the run on request, and waits while it is paused.
func (r *runner) stopped(ctx context.Context) error {
	if ctx.Err() != nil || closed(r.Stop) {
		return bySignal
	}
	r.changed = r.Store.Changed()
	control, err := r.control(ctx)
	if err != nil {
		return err
	}
	switch control {
	case ralph.ControlStop, ralph.ControlStopNow:
		return &end{ralph.ExitStopped, "stopped by `ralph stop`"}
	case ralph.ControlDrain:
		return &end{
			ralph.ExitStopped,
			"this machine is drained; `ralph machine drain " + machine.Name() + " --undo` allows it again",
		}
	case ralph.ControlPause:
		if err := r.state(ctx, "paused", "paused by `ralph pause`", time.Time{}); err != nil {
			return err
		}
		seen, err := r.readOutlook(ctx)
		if err := cmp.Or(err, r.limit(seen.spending)); err != nil {
			return err
		}
		r.sleep(ctx, r.Store.Now().Add(lookAgain))
		return errAgain
	}
	return nil
}
