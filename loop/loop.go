// Package loop works through the queue: it picks a task, lets an agent have a
// session on it, checks what the agent claims, has signals.Decide decide, and
// writes that down, until nothing is left to do or a limit says so.
//
// It knows agents through an interface only, decides nothing about tasks itself
// and keeps nothing in memory that the database does not have: after a kill at
// any moment the next Run settles what was left and goes on. When Run returns,
// no process of a session is left.
package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"time"

	"ralph/loop/agent"
	"ralph/loop/check"
	"ralph/loop/place"
	"ralph/loop/session"

	"ralph"
	"ralph/internal/schedule"
	"ralph/signals"
	"ralph/store"
)

// A Loop works through the queue of one project. Its fields are set before Run
// and not changed after.
type Loop struct {
	Store *store.DB
	Agent agent.Agent
	// Prepare has the agent get ready for a session while the work tree is looked
	// at, and forget undoes it; nil if there is nothing to do before.
	Prepare func() (forget func())

	Place *place.Place
	Log   *slog.Logger

	// Configuration are the files by which runs are configured, as absolute paths, and
	// Kept is where copies are of what people left.
	Configuration []string
	Kept          check.Kept

	Limits  ralph.Limits
	Rules   signals.Rules
	Backoff Backoff
	Check   check.Rules

	Prompts Prompts
	Models  Models
	Session session.Limits // as far as it is not the run's Limits that say so

	CommitTasks bool // what a completed task left uncommitted is committed

	Task   int64           // work on this one alone; 0 for the queue
	NoWait bool            // end the run instead of waiting for the agent
	Stop   <-chan struct{} // closed when no further session is wanted

	Daemon   bool             // wait for new tasks and answers instead of ending
	Schedule schedule.Cron    // when batches begin; see Serve
	Between  schedule.Between // the window in which sessions may begin
	Heart    Heart            // nil if nobody watches

	OnRed    OnRed                    // what is made of a verification that fails before any work; "" is stop
	Commands func() ([]string, error) // the project's commands as they are configured now; nil if they do not change

	begins   time.Time // when the batch begins; set by Serve
	claiming func()    // called between reading a task and claiming it, by tests
}

// Models say which one a session uses.
type Models struct {
	Flag       string // of `--model`; wins over every other
	Config     string // of the configuration; used where nothing else is said
	Escalation string // from the second attempt after a stuck one; "" switches it off
}

// choose is decision 20's order: the flag, the task's, escalation if it is
// due, the discipline's, the configuration's.
func (m Models) choose(t ralph.Task, d ralph.Discipline) string {
	if t.StuckCount < 2 {
		m.Escalation = ""
	}
	return cmp.Or(m.Flag, t.Model, m.Escalation, d.Model, m.Config)
}

// needs are what a session of the loop needs of it.
func (l *Loop) needs() session.Needs {
	limits := l.Session
	limits.Time, limits.Idle = seconds(l.Limits.SessionSeconds), seconds(l.Limits.IdleSeconds)
	limits.Turns = l.Limits.SessionTurns
	return session.Needs{
		Store: l.Store, Place: l.Place, Check: l.verifier(), Agent: l.Agent, Log: l.Log, Stop: l.Stop,
		Prompt: l.firstPrompt, Model: l.Models.choose, Rules: l.Rules, Limits: limits,
	}
}

// verifier checks work in the loop's place.
func (l *Loop) verifier() *check.Verifier {
	return &check.Verifier{
		Rules: l.Check, Store: l.Store, Place: l.Place, Configuration: l.Configuration, Kept: l.Kept, Log: l.Log,
		Busy: func(d time.Duration) { l.beat(stepTime + d) },
	}
}

// Verify is [check.Verifier.Verify].
func (l *Loop) Verify(
	ctx context.Context, task int64, show func(c ralph.Check, output io.ReadSeeker) error,
) (checks []ralph.Check, holds bool, err error) {
	return l.verifier().Verify(ctx, task, show)
}

// A Result is how a run ended.
type Result struct {
	RunID   int64
	Status  int      // exit status
	Reasons []string // every reason that applies, the deciding one first
}

// end is one reason to end a run, with the exit status that belongs to it. What ends
// a round so returns it as its error.
type end struct {
	status int
	reason string
}

// Error is the reason.
func (e *end) Error() string { return e.reason }

// errAgain has a round begin anew: something was waited for, or has changed.
var errAgain = errors.New("the round begins again")

// Run works until no task is left that it could work on, a limit is reached, the
// agent cannot be used, or it is stopped. When ctx ends the session in progress
// is stopped at once. It leaves no goroutine and no process behind.
//
// The error is for what ralph itself could not do; the database is then left as
// it is, and the next run reconciles it.
func (l *Loop) Run(ctx context.Context) (Result, error) {
	if err := l.recover(ctx); err != nil {
		return Result{Status: ralph.ExitFailure}, fmt.Errorf("recover what an earlier run left: %w", err)
	}
	var run ralph.Run
	err := l.Store.Tx(ctx, func(tx *store.Tx) (err error) {
		run, err = tx.StartRun(os.Getpid(), l.Limits)
		return err
	})
	if err != nil {
		return Result{Status: ralph.ExitFailure}, err
	}
	own := *l // whose commands may change
	r := &runner{
		Loop: &own, id: run.ID, started: time.Now(), day: Midnight(time.Now()),
		worked: map[int64]bool{}, counted: map[int64]bool{},
	}
	ends, err := r.work(ctx)
	if err != nil {
		ends = []end{{ralph.ExitFailure, err.Error()}}
	}
	result := Result{RunID: run.ID}
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
	if errors.Is(err, store.ErrGone) {
		return result, err // there is nothing left to record it in
	}
	// The end of a run is recorded even if it was told to stop.
	closing := l.Store.Tx(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		return tx.EndRun(run.ID, result.Status, result.Reasons[0])
	})
	return result, errors.Join(err, closing)
}

// runner is what one run remembers. All that must survive it is in the database.
type runner struct {
	*Loop
	id       int64
	started  time.Time
	day      time.Time // whose limits the counters below are compared with, where they are of a day
	sessions int
	cost     float64
	worked   map[int64]bool // tasks that had a session in this run
	counted  map[int64]bool // those that count against its limit
	stagnant int            // sessions in a row that left nothing behind
	repeats  int            // of the agent error before, in a row
	last     ralph.Ending
	seen     int64           // the newest event when a daemon last looked for work
	changed  <-chan struct{} // since the run looked last what is to be done

	lost       int   // sessions in a row that were lost, of whatever task
	missedTask int64 // that could not be taken the last time it was picked; 0 for none
	red        suspense

	untold    int // times in a row that git has failed before a session
	gitNext   time.Time
	gitReason string
}

// work has one round after the other, until one ends the run.
func (r *runner) work(ctx context.Context) ([]end, error) {
	for {
		err := r.round(ctx)
		var e *end
		switch {
		case err == nil, errors.Is(err, errAgain), r.awaitGit(err):
		case errors.As(err, &e):
			rest, err := r.leftOver(ctx)
			if e.status == ralph.ExitOK && len(rest) > 0 {
				return rest, err
			}
			return append([]end{*e}, rest...), err
		default:
			return nil, err
		}
	}
}

// round looks, waits or picks, works and settles.
func (r *runner) round(ctx context.Context) error {
	r.beat(stepTime)
	if err := r.Place.Tree.Intact(); err != nil {
		return fmt.Errorf("%w; bring it back, or see what became of it, before the next run", err)
	}
	ofAny := func(ctx context.Context) error { return r.waitForDay(ctx, 0) }
	for _, step := range []func(context.Context) error{r.stopped, r.limit, r.waitForAgent, ofAny, r.waitForGit} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if err := r.Lapse(ctx); err != nil {
		return fmt.Errorf("claims of workers: %w", err)
	}
	task, ok, err := r.next(ctx)
	if err != nil {
		return err
	}
	if err := r.waitForOpening(ctx, ok); err != nil {
		return err
	}
	if !ok {
		if err := r.waitForLost(ctx); err != nil {
			return err
		}
		if err := r.waitForWork(ctx); err != nil {
			return err
		}
		return &end{ralph.ExitOK, "nothing is left to do"}
	}
	if err := r.waitForDay(ctx, task.ID); err != nil {
		return err
	}
	if task, err = r.ready(ctx, task); err != nil {
		return err
	}
	if why := r.tasksReached(task.ID); why != "" {
		return &end{ralph.ExitLimit, why}
	}
	return r.session(ctx, task)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// next is the task to work on; ok is false if there is none now.
func (r *runner) next(ctx context.Context) (task ralph.Task, ok bool, err error) {
	if err := r.release(ctx); err != nil {
		return task, false, err
	}
	task, ok, spent, err := r.pick(ctx, r.Task)
	for _, id := range spent {
		r.worked[id], r.counted[id] = true, true
	}
	return task, ok, err
}

// Next is the task that would be claimed next: the first of the queue, as the loop
// itself would pick it. Claims that have lapsed are settled before.
func (l *Loop) Next(ctx context.Context) (task ralph.Task, ok bool, err error) {
	if err := errors.Join(l.Lapse(ctx), l.release(ctx)); err != nil {
		return task, false, err
	}
	task, ok, _, err = l.pick(ctx, 0)
	return task, ok, err
}

// pick is the first task of the queue, or the one of that number if it is pending.
// Tasks whose turn has come and whose attempts are used up fail: they are spent.
func (l *Loop) pick(ctx context.Context, only int64) (task ralph.Task, ok bool, spent []int64, err error) {
	for {
		err = l.Store.View(ctx, func(tx *store.Tx) error {
			if only != 0 {
				task, err = tx.Task(only)
				ok = task.Status == ralph.Pending && !task.NotBefore.After(tx.Now().Time)
				return err
			}
			task, ok, err = tx.Next()
			return err
		})
		if err != nil || !ok || task.Attempts < l.Limits.Attempts {
			return task, ok, spent, err
		}
		// The limit was lowered, or used up while the task waited for a person.
		err = l.Store.Tx(ctx, func(tx *store.Tx) error {
			why := fmt.Sprintf("all of its %d attempts are used up", l.Limits.Attempts)
			return tx.Move(task.ID, ralph.Failed, ralph.Loop, why)
		})
		if err != nil && !errors.Is(err, ralph.ErrConflict) { // another process may have been faster
			return task, false, spent, err
		}
		spent = append(spent, task.ID)
	}
}

// session works on one task and judges what the run makes of it.
func (r *runner) session(ctx context.Context, task ralph.Task) error {
	if err := r.state(ctx, "running", "", time.Time{}); err != nil {
		return err
	}
	if err := r.verifier().Greet(ctx); err != nil {
		return notGreeted(err)
	}
	stopped, err := r.interruptibly(ctx, func(ctx context.Context) error { return r.verifier().Baseline(ctx, task) })
	if stopped || err != nil || closed(r.Stop) {
		return err
	}
	spent, err := r.spent(ctx)
	if err != nil {
		return err
	}
	if r.Prepare != nil {
		forget := r.Prepare()
		defer forget()
	}
	n := r.needs()
	n.Limits.CostUSD, n.Limits.Deadline = allowance(r.Limits, spent), r.started.Add(seconds(r.Limits.MaxSeconds))
	n.Begin = func(tx *store.Tx, again bool) error { return r.mayBegin(tx, task.ID, again) }
	s, err := n.Open(ctx, store.Start{Run: r.id}, task.ID)
	if held, herr := r.holdBack(ctx, task.ID, err); held {
		return herr
	}
	if err != nil {
		return r.missed(ctx, task.ID, err)
	}
	r.says(fmt.Sprintf("on TASK-%d %s", task.ID, s.Task.Title))
	r.missedTask, r.untold = 0, 0
	r.worked[task.ID], r.counted[task.ID] = true, true
	r.sessions++
	end := s.Work(ctx)
	settling, release := r.obeying(ctx, r.Session.Grace)
	d, err := s.Settle(settling, end.Report)
	release()
	if err != nil {
		return fmt.Errorf("settle session %s of TASK-%d: %w", s.Row.ID, task.ID, errors.Join(end.Unusable, err))
	}
	if end.Unusable != nil {
		return unusable(end.Unusable)
	}
	r.cost += s.Row.CostUSD
	if err := r.verifier().PutBack(context.WithoutCancel(ctx)); err != nil {
		return notGreeted(err)
	}
	if r.CommitTasks && d.Status == ralph.Completed {
		if err := s.Commit(context.WithoutCancel(ctx)); err != nil {
			// The task is done all the same, and its files are where they were.
			r.Log.Warn("what the task left could not be committed", "task", task.ID, "error", err)
		}
	}
	switch {
	case d.Stagnant:
		r.stagnant++
	case !end.Ending.AgentError() && end.Ending != ralph.Interrupted && end.Ending != ralph.Lost:
		r.stagnant = 0
	}
	if err := r.bounded(s.Task, s.Row.Ending, d); err != nil {
		return err
	}
	return r.afterAgent(ctx, end.Report)
}

// notGreeted ends a run whose next session would be held to what another one left.
func notGreeted(err error) error {
	var stuck *check.StuckError
	if errors.As(err, &stuck) {
		return &end{ralph.ExitWaiting, err.Error()}
	}
	return err
}

// unusable ends a run whose agent could not be run at all.
func unusable(cause error) error {
	if errors.Is(cause, exec.ErrNotFound) || errors.Is(cause, fs.ErrNotExist) || errors.Is(cause, fs.ErrPermission) {
		return &end{ralph.ExitAgent, cause.Error()}
	}
	return cause
}

// errHeld says that a person has stopped or paused the run before a session began.
var errHeld = errors.New("the run is to begin no session now")

// mayBegin reports that a person has stopped or paused the run meanwhile, or that a
// change of the picked task has moved another one before it.
func (r *runner) mayBegin(tx *store.Tx, task int64, again bool) error {
	if closed(r.Stop) {
		return errHeld
	}
	control, err := tx.RunControl(r.id)
	if err == nil && control != ralph.ControlNone {
		err = errHeld
	}
	if err != nil || !again || r.Task != 0 {
		return err
	}
	next, ok, err := tx.Next()
	if err == nil && (!ok || next.ID != task) {
		err = fmt.Errorf("TASK-%d is not the first of the queue any more: %w", task, ralph.ErrConflict)
	}
	return err
}

// stopped ends the run if somebody asked for it, and sits out a pause.
func (r *runner) stopped(ctx context.Context) error {
	for {
		if ctx.Err() != nil || closed(r.Stop) {
			return &end{ralph.ExitStopped, "stopped by a signal"}
		}
		r.changed = r.Store.Changed()
		control, err := r.control(ctx)
		if err != nil {
			return err
		}
		switch control {
		case ralph.ControlStop, ralph.ControlStopNow:
			return &end{ralph.ExitStopped, "stopped by `ralph stop`"}
		case ralph.ControlPause:
			if err := r.state(ctx, "paused", "paused by `ralph pause`", time.Time{}); err != nil {
				return err
			}
			if err := r.limit(ctx); err != nil {
				return err
			}
			r.sleep(ctx, time.Now().Add(lookAgain))
		default:
			return nil
		}
	}
}

// control is what `ralph stop|pause|resume` asked for.
func (r *runner) control(ctx context.Context) (string, error) {
	return store.Read(context.WithoutCancel(ctx), r.Store, func(tx *store.Tx) (string, error) {
		return tx.RunControl(r.id)
	})
}

// state notes what the run is doing, if that is news.
func (r *runner) state(ctx context.Context, state, reason string, until time.Time) error {
	when := ""
	if !until.IsZero() {
		when = until.Local().Format("Jan 2 15:04:05")
	}
	r.says(ralph.Doing(state, reason, when))
	return r.Store.Tx(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		run, err := tx.Run(r.id)
		if err != nil || (run.State == state && run.StateReason == reason && run.WaitUntil == ralph.At(until)) {
			return err
		}
		return tx.SetRunState(r.id, state, reason, until)
	})
}

// step is how long a run waits at most without a look at the clock, which may jump.
const step = time.Second

// sleep waits until a time, until something has changed since the run looked last, or
// until the run is to stop or its own time is over.
func (r *runner) sleep(ctx context.Context, until time.Time) {
	end := r.started.Add(seconds(r.Limits.MaxSeconds))
	if !r.ofDays() && end.After(time.Now()) && end.Before(until) {
		until = end
	}
	for left := time.Until(until); left > 0; left = time.Until(until) {
		r.beat(stepTime)
		timer := time.NewTimer(min(left, step))
		select {
		case <-timer.C:
			continue
		case <-r.changed:
		case <-ctx.Done():
		case <-r.Stop:
		}
		timer.Stop()
		return
	}
}

// wait says what is waited for and until when, and waits, or until something has changed:
// people may ask something of the run, and other tasks may come.
func (r *runner) wait(ctx context.Context, reason string, until time.Time) error {
	if err := r.state(ctx, "waiting", reason, until); err != nil {
		return err
	}
	r.sleep(ctx, until)
	return errAgain
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
