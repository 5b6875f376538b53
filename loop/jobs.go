package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"time"

	"ralph"
	"ralph/internal/text"
	"ralph/loop/merging"
	"ralph/loop/order"
	"ralph/loop/session"
	"ralph/loop/workspace"
	"ralph/signals"
	"ralph/store"
)

// An outcome is the result of a job. Without a session and an error, no session could
// begin.
type outcome struct {
	s       *session.Session // nil if none was opened
	end     session.End
	d       signals.Decision
	decided bool
	refused error // why no session could be opened
	held    bool  // the task itself is the reason, and a person has to fix it
}

// heed applies the results that have arrived. If full, it first waits for one.
func (r *runner) heed(ctx context.Context, full bool) error {
	if full && len(r.ended) == 0 {
		r.rests()
		r.ended = append(r.ended, <-r.over)
	}
	for len(r.over) > 0 {
		r.ended = append(r.ended, <-r.over)
	}
	for len(r.ended) > 0 {
		apply := r.ended[0]
		r.ended = r.ended[1:]
		if err := apply(ctx); err != nil {
			return err
		}
	}
	return nil
}

// finish waits for the sessions of a run that is stopped at once. It returns further reasons to end the run, or the
// first failure of ralph itself.
func (r *runner) finish(ctx context.Context) (ends []end, failure error) {
	for r.busy() {
		err := r.heed(ctx, true)
		if e := (*end)(nil); errors.As(err, &e) {
			ends = append(ends, *e)
		} else if !r.awaitGit(err) {
			failure = cmp.Or(failure, err)
		}
	}
	return ends, failure
}

// stagnantWarning is how many tasks before the limit people are warned that nothing changes.
const stagnantWarning = 2

// ending announces the end of the run with its reasons, and waits until nothing is in progress. It returns true if
// people have asked the run to continue instead, else further reasons to end.
func (r *runner) ending(ctx context.Context, e *end) (on bool, ends []end, err error) {
	for r.busy() {
		if ctx.Err() != nil {
			return false, ends, nil
		}
		if err := r.state(ctx, "ending", r.endingWhy(ctx, e), time.Time{}); err != nil {
			return false, ends, err
		}
		changed := r.Store.Changed()
		if on, err := r.goesOn(ctx); err != nil || on {
			return on, ends, err
		}
		r.untilChange(ctx, changed)
		err = r.heed(ctx, false)
		if e := (*end)(nil); errors.As(err, &e) {
			ends = append(ends, *e)
		} else if err != nil && !r.awaitGit(err) {
			return false, ends, err
		}
	}
	on, err = r.goesOn(ctx) // people asked for it while the last result was applied
	return on, ends, err
}

// goesOn reports whether people have asked an ending run to continue, which it then does.
func (r *runner) goesOn(ctx context.Context) (on bool, err error) {
	control, err := r.control(ctx)
	if err != nil || control != ralph.ControlGoOn {
		return false, err
	}
	err = r.Store.Tx(context.WithoutCancel(ctx), func(tx *store.Tx) (err error) {
		if on, err = tx.GoesOn(r.id); err != nil || !on {
			return err
		}
		return tx.SetRunState(r.id, "running", "", time.Time{})
	})
	r.doing = doing{}
	if err == nil && on {
		r.stagnant = nil
	}
	return on, err
}

// endingWhy describes a run that is ending, for people.
func (r *runner) endingWhy(ctx context.Context, e *end) string {
	why := e.reason
	var tasks []int64
	for _, j := range r.jobs {
		tasks = append(tasks, j.task)
	}
	slices.Sort(tasks)
	switch {
	case len(tasks) > 0:
		why += "; it waits for " + named(tasks)
	case r.merges:
		why += "; it waits for a merge in progress"
	}
	stays, err := store.Read(context.WithoutCancel(ctx), r.Store, func(tx *store.Tx) (int, error) {
		return tx.CountTasks(store.TaskFilter{Statuses: []ralph.Status{ralph.Pending}})
	})
	if err == nil && stays > 0 {
		why += "; queued and left: " + text.Count(stays, "task")
	}
	s, err := r.spent(ctx)
	s.stagnant = 0
	if err == nil && ctx.Err() == nil && !closed(r.Stop) && reached(r.Limits, s) == "" { // a limit stays reached
		why += "; `ralph resume` goes on"
	}
	return why
}

// begin starts a session on a task with a free number.
func (r *runner) begin(ctx context.Context, task ralph.Task) error {
	warning := ""
	if n := len(r.stagnant); n > 0 && n >= r.Limits.StagnantMaximum-stagnantWarning {
		warning = fmt.Sprintf("%s in a row changed nothing (%s); the run ends at %d", text.Count(n, "task"),
			named(r.stagnant), r.Limits.StagnantMaximum)
	}
	if err := r.state(ctx, "running", warning, time.Time{}); err != nil {
		return err
	}
	j := &job{
		course: r.course, number: 1, task: task.ID, kind: task.Discipline, role: task.Role,
		since: r.since(), deadline: r.started.Add(order.Seconds(r.Limits.MaxSeconds)), counted: r.counted[task.ID],
	}
	for r.jobs[j.number] != nil {
		j.number++
	}
	if r.pulse != nil {
		j.heart = r.pulse.of(j.number)
	}
	if r.Width() > 1 { // its session has not begun
		if err := r.idle(ctx, fmt.Sprintf("made ready for TASK-%d", task.ID)); err != nil {
			return err
		}
	}
	for _, id := range r.passes {
		r.passed[id]++
	}
	delete(r.passed, task.ID)
	j.beat(stepTime)
	r.jobs[j.number], r.counted[task.ID] = j, true
	jobsCtx := r.jobsCtx
	go func() {
		o, err := j.work(jobsCtx, task)
		r.over <- func(ctx context.Context) error { return r.apply(ctx, j, o, err) }
	}()
	return nil
}

// work runs a session on a task.
func (j *job) work(ctx context.Context, task ralph.Task) (o outcome, err error) {
	take := func(ctx context.Context) (*workspace.Workspace, error) { return j.Pool.Take(ctx, j.number, false) }
	ws, about, err := j.enter(ctx, task, take)
	if errors.Is(err, merging.ErrAway) { // without the remote, no result could be handed over either
		o.refused = err
		return o, nil
	}
	if err != nil {
		return o, err
	}
	defer j.giveBack(ws)
	if stopped, err := j.baselineFirst(ctx, task, ws); stopped || err != nil {
		return o, err
	}
	start := store.Start{Run: j.id, Number: j.number, Of: j.Width()}
	s, err := j.open(ctx, ws, start, task.ID, func(tx *store.Tx, t ralph.Task) (order.Order, error) {
		spending, err := j.mayBegin(tx)
		if err != nil {
			return order.Order{}, err
		}
		o, err := order.For(tx, j.Config, t, about, spending)
		o.Limits.Deadline = j.deadline
		return o, err
	})
	var herr error
	if o.held, herr = j.holdBack(ctx, task.ID, err); o.held {
		return o, herr
	}
	if err != nil {
		o.refused = err
		return o, nil
	}
	o.s = s
	j.says(fmt.Sprintf("on TASK-%d %s", task.ID, s.Task.Title))
	o.end = s.Work(ctx)
	return j.decide(ctx, o)
}

// baselineFirst takes the baseline of a session, unless the run is stopped during it. A planning session merges
// nothing, and needs none.
func (j *job) baselineFirst(ctx context.Context, task ralph.Task, ws *workspace.Workspace) (stopped bool, err error) {
	if task.Role == ralph.RolePlan {
		return false, nil
	}
	j.slow = func(command string) { j.waited = true; j.verifying(command) }
	stopped, err = j.interruptibly(ctx, func(ctx context.Context) error { return j.baseline(ctx, task, ws) })
	if j.waited {
		over := func(tx *store.Tx) error { return tx.NoteVerifying(j.id, "", "") }
		err = errors.Join(err, j.Store.Tx(context.WithoutCancel(ctx), over))
	}
	return stopped, err
}

// decide decides on the job's session, which has ended.
func (j *job) decide(ctx context.Context, o outcome) (outcome, error) {
	s := o.s
	deciding, release := j.obeying(ctx, j.Session.Grace)
	d, err := s.Decide(deciding, o.end.Report)
	release()
	o.d = d
	switch {
	case errors.Is(err, session.ErrSettled):
		j.Log.Warn("a session counted as lost; its work and cost are noted with it, see `ralph session show`",
			"session", s.Row.ID, "task", s.Row.TaskID, "error", err)
		return o, nil
	case err != nil:
		if gone := j.Store.Intact(); gone != nil || o.end.Unusable != nil {
			return o, fmt.Errorf("decide on session %s of TASK-%d: %w", s.Row.ID, s.Row.TaskID,
				errors.Join(o.end.Unusable, err))
		}
		// An agent that can write to the database can corrupt the records of its session.
		j.Log.Error("cannot store the verdict on a session", "session", s.Row.ID, "task", s.Row.TaskID, "error", err)
		return o, j.undecided(context.WithoutCancel(ctx), s.Row, err)
	case o.end.Unusable != nil:
		return o, unusable(o.end.Unusable)
	}
	o.decided = true
	return o, nil
}

// unusable ends the run if the agent's program could not be run at all.
func unusable(cause error) error {
	if errors.Is(cause, exec.ErrNotFound) || errors.Is(cause, fs.ErrNotExist) || errors.Is(cause, fs.ErrPermission) {
		return &end{ralph.ExitAgent, cause.Error()}
	}
	return cause
}

// apply applies a job's result to the run.
func (r *runner) apply(ctx context.Context, j *job, o outcome, err error) error {
	delete(r.jobs, j.number)
	if j.waited {
		r.doing = doing{} // the session recorded another state of the run
	}
	if r.pulse != nil {
		r.pulse.rests(j.number)
	}
	r.beat(stepTime)
	if o.s == nil {
		if !j.counted {
			delete(r.counted, j.task)
		}
		if o.held {
			r.worked[j.task] = true
		}
		if o.refused != nil {
			return r.missed(ctx, j.task, o.refused)
		}
		return err
	}
	r.missedTask, r.untold, r.worked[j.task] = 0, 0, true
	if err != nil || !o.decided {
		return err
	}
	if err := r.merge(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	for _, done := range o.s.Done {
		if err := r.afterAgent(ctx, done.Session, done.Report); err != nil {
			return err
		}
	}
	switch ending := o.end.Ending; {
	case o.d.Stagnant:
		if !slices.Contains(r.stagnant, j.task) { // the task's own limit is its attempts
			r.stagnant = append(r.stagnant, j.task)
		}
	case !ending.AgentError() && ending != ralph.Interrupted && ending != ralph.Lost:
		r.stagnant = nil
	}
	if err := r.bounded(o.s.Task, o.s.Row.Ending, o.d); err != nil {
		return err
	}
	return r.afterAgent(ctx, o.s, o.end.Report)
}

// errHeld means that no session may begin, because a person has just stopped or paused the run.
var errHeld = errors.New("the run is to begin no session now")

// mayBegin returns the spending that counts against a session's budget, within the transaction that claims its task. It
// fails if the run was stopped or paused.
func (j *job) mayBegin(tx *store.Tx) (s store.Spending, err error) {
	if closed(j.Stop) {
		return s, errHeld
	}
	control, err := tx.RunControl(j.id)
	if err != nil {
		return s, err
	}
	if control != ralph.ControlNone {
		return s, errHeld
	}
	return tx.Spending(j.id, order.Since(j.since, j.Store.Now()), order.Worth)
}

// room returns why no session can begin while others are in progress; "" if one can.
func (r *runner) room(s store.Spending) (why string) {
	s.Sessions, s.Open = s.Sessions-s.Open+len(r.jobs), len(r.jobs)
	if s.Sessions >= r.Limits.MaxSessions {
		return fmt.Sprintf("the limit of %s per %s is reached with those in progress",
			text.Count(r.Limits.MaxSessions, "session"), r.per())
	}
	_, why = order.Allowance(r.Limits, s, r.Width())
	return why
}
