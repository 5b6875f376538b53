package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ralph"
	"ralph/internal/text"
	"ralph/loop/merging"
	"ralph/loop/session"
	"ralph/signals"
	"ralph/store"
)

// A course is the part of a run that its goroutines share.
type course struct {
	*Loop
	id int64
}

// A job takes one picked task from claim to verdict, beside the sessions
// of other jobs. The scheduler judges what the result means for the run.
type job struct {
	course
	number   int
	task     int64
	kind     string // the task's discipline
	role     ralph.Role
	since    time.Time // start of the period that the run's limits count for
	deadline time.Time // end of the run's time
	counted  bool      // its task already counted against the limits
}

// An outcome is the result of a job. Without a session and an
// error, no session was to begin.
type outcome struct {
	s       *session.Session // nil if none was opened
	end     session.End
	d       signals.Decision
	decided bool
	refused error // why no session could be opened
	held    bool  // the task itself is the reason, and a person has to see to it
}

func newRunner(l *Loop, id int64) *runner {
	own := *l // a copy, as its commands may change
	r := &runner{
		course: course{&own, id}, started: time.Now(), day: Midnight(time.Now()),
		worked: map[int64]bool{}, counted: map[int64]bool{}, jobs: map[int]*job{}, failed: map[string]time.Time{},
		passed: map[int64]int{},
		over:   make(chan func(context.Context) error, own.width()+1),
	}
	if own.Heart != nil {
		r.pulse = newPulse(own.Heart)
		own.Heart = r.pulse.of(0)
	}
	return r
}

// width returns how many sessions may work at once.
func (l *Loop) width() int {
	if l.Task != 0 {
		return 1
	}
	return max(l.Parallel, 1)
}

// busy reports whether a session or a merge is in progress.
func (r *runner) busy() bool { return len(r.jobs) > 0 || r.merges }

// works reports whether anything in progress may change the project: a merge, or a session that does not just plan.
func (r *runner) works() bool {
	for _, l := range r.jobs {
		if l.role != ralph.RolePlan {
			return true
		}
	}
	return r.merges
}

// heed applies the results that have come in. If full, it first waits for one.
func (r *runner) heed(ctx context.Context, full bool) error {
	if full && len(r.ended) == 0 {
		r.rests()
		r.ended = append(r.ended, <-r.over)
	}
	for len(r.over) > 0 {
		r.ended = append(r.ended, <-r.over)
	}
	for len(r.ended) > 0 {
		judge := r.ended[0]
		r.ended = r.ended[1:]
		if err := judge(ctx); err != nil {
			return err
		}
	}
	return nil
}

// rests stops the scheduler's own heartbeat while it waits for sessions, which have theirs.
func (r *runner) rests() {
	if r.pulse != nil {
		r.pulse.rests(0)
	}
}

// finish waits until sessions and merges have ended, and merges what can
// are merged, so that the run leaves nothing behind. It returns the further reasons
// to end the run. The first failure of ralph itself cancels the rest.
func (r *runner) finish(ctx context.Context, cancel func()) (ends []end, failure error) {
	for {
		err := r.heed(ctx, r.busy())
		if e := (*end)(nil); errors.As(err, &e) {
			ends = append(ends, *e)
		} else if err != nil && !errors.Is(err, errAgain) && !r.awaitGit(err) && failure == nil {
			failure = err
			cancel()
		}
		if !r.busy() && len(r.ended) == 0 {
			return ends, failure
		}
	}
}

// besides waits while other sessions work, until one ends or something
// changes. Why is what keeps another session from beginning.
func (r *runner) besides(ctx context.Context, why string) error {
	if err := r.idle(ctx, why); err != nil {
		return err
	}
	changed := r.changed
	r.changed = nil // running sessions cause many events: look once for several of them
	r.sleep(ctx, r.Store.Now().Add(shortWait))
	r.changed = changed
	r.sleep(ctx, r.Store.Now().Add(besidesLook))
	return errAgain
}

// besidesLook is how often the run checks whether another session may
// begin although nothing has happened: a task's wait may be over.
const besidesLook = 5 * time.Second

// idle records for people why no further session begins.
func (r *runner) idle(ctx context.Context, why string) error {
	return r.Store.Tx(context.WithoutCancel(ctx), func(tx *store.Tx) error { return tx.SetIdle(r.id, why) })
}

// stagnantWarning is how many tasks before the limit people are told that nothing changes.
const stagnantWarning = 2

// ending says that the run has decided to end, why, what it waits for and what stays, and waits until nothing
// is in progress. It returns true if people have asked the run to go on instead, else further reasons to end.
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
		} else if err != nil && !errors.Is(err, errAgain) && !r.awaitGit(err) {
			return false, ends, err
		}
	}
	on, err = r.goesOn(ctx) // said while the last result was applied
	return on, ends, err
}

// goesOn reports whether people have asked a run that is ending to go on, which it then does.
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

// untilChange waits for a result, or for what changes after the first moment: running sessions cause many events.
func (r *runner) untilChange(ctx context.Context, changed <-chan struct{}) {
	r.rests()
	soon := time.NewTimer(shortWait)
	defer soon.Stop()
	for changes := (<-chan struct{})(nil); len(r.ended) == 0; {
		select {
		case <-soon.C:
			changes = changed
			continue
		case judge := <-r.over:
			r.ended = append(r.ended, judge)
		case <-changes:
		case <-ctx.Done():
		}
		return
	}
}

// endingWhy is what people are told of a run that is ending.
func (r *runner) endingWhy(ctx context.Context, e *end) string {
	why := e.reason
	var tasks []int64
	for _, l := range r.jobs {
		tasks = append(tasks, l.task)
	}
	slices.Sort(tasks)
	switch {
	case len(tasks) > 0:
		why += "; it waits for " + named(tasks)
	case r.merges:
		why += "; it waits for what is being merged"
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
	own := *r.Loop
	l := &job{
		course: course{&own, r.id}, number: 1, task: task.ID, kind: task.Discipline, role: task.Role,
		since: r.since(), deadline: r.started.Add(seconds(r.Limits.MaxSeconds)), counted: r.counted[task.ID],
	}
	for r.jobs[l.number] != nil {
		l.number++
	}
	if r.pulse != nil {
		own.Heart = r.pulse.of(l.number)
	}
	if r.width() > 1 { // until the session begins it has none
		if err := r.idle(ctx, fmt.Sprintf("made ready for TASK-%d", task.ID)); err != nil {
			return err
		}
	}
	for _, id := range r.passes {
		r.passed[id]++
	}
	delete(r.passed, task.ID)
	l.beat(stepTime)
	r.jobs[l.number], r.counted[task.ID] = l, true
	jobsCtx := r.jobsCtx
	go func() {
		o, err := l.work(jobsCtx, task)
		r.over <- func(ctx context.Context) error { return r.judge(ctx, l, o, err) }
	}()
	return nil
}

// work runs a session on a task.
func (l *job) work(ctx context.Context, task ralph.Task) (o outcome, err error) {
	n, leave, err := l.enter(ctx, task, l.take)
	if errors.Is(err, merging.ErrAway) { // without it, nothing that is made could be handed over either
		o.refused = err
		return o, nil
	}
	if err != nil {
		return o, err
	}
	defer leave()
	waits, tell := false, l.slow
	l.slow = func(command string) { waits = true; tell(command) }
	stopped, err := l.interruptibly(ctx, func(ctx context.Context) error {
		if task.Role == ralph.RolePlan { // nothing of it is merged
			return nil
		}
		return l.baseline(ctx, task, n.Workspace)
	})
	if waits {
		over := func(tx *store.Tx) error { return tx.NoteVerifying(l.id, "", "") }
		err = errors.Join(err, l.Store.Tx(context.WithoutCancel(ctx), over))
	}
	if stopped || err != nil || closed(l.Stop) {
		return o, err
	}
	n.Limits.Deadline = l.deadline
	n.Begin = func(tx *store.Tx, again bool) (float64, error) { return l.mayBegin(tx, again) }
	s, err := n.Open(ctx, store.Start{Run: l.id, Number: l.number, Of: l.width()}, task.ID)
	var herr error
	if o.held, herr = l.holdBack(ctx, task.ID, err); o.held {
		return o, herr
	}
	if err != nil {
		o.refused = err
		return o, nil
	}
	o.s = s
	l.says(fmt.Sprintf("on TASK-%d %s", task.ID, s.Task.Title))
	o.end = s.Work(ctx)
	deciding, release := l.obeying(ctx, l.Session.Grace)
	o.d, err = s.Decide(deciding, o.end.Report)
	release()
	if errors.Is(err, session.ErrSettled) {
		l.Log.Warn("a session was taken for lost; what it made and cost is noted with it, see `ralph session show`",
			"session", s.Row.ID, "task", task.ID, "error", err)
		return o, nil
	}
	if err != nil {
		if gone := l.Store.Intact(); gone != nil || o.end.Unusable != nil {
			return o, fmt.Errorf("decide on session %s of TASK-%d: %w", s.Row.ID, task.ID, errors.Join(o.end.Unusable, err))
		}
		// An agent that can write to the database can corrupt the records of its session.
		l.Log.Error("cannot store the verdict on a session", "session", s.Row.ID, "task", task.ID, "error", err)
		return o, l.undecided(context.WithoutCancel(ctx), s.Row, err)
	}
	if o.end.Unusable != nil {
		return o, unusable(o.end.Unusable)
	}
	o.decided = true
	return o, nil
}

// judge applies a job's result to the run.
func (r *runner) judge(ctx context.Context, l *job, o outcome, err error) error {
	delete(r.jobs, l.number)
	if r.pulse != nil {
		r.pulse.rests(l.number)
	}
	r.beat(stepTime)
	if o.s == nil {
		if !l.counted {
			delete(r.counted, l.task)
		}
		if o.held {
			r.worked[l.task] = true
		}
		if o.refused != nil {
			return r.missed(ctx, l.task, o.refused)
		}
		return err
	}
	r.missedTask, r.untold, r.worked[l.task] = 0, 0, true
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
		if !slices.Contains(r.stagnant, l.task) { // a task's own limit is that of its attempts
			r.stagnant = append(r.stagnant, l.task)
		}
	case !ending.AgentError() && ending != ralph.Interrupted && ending != ralph.Lost:
		r.stagnant = nil
	}
	if err := r.bounded(o.s.Task, o.s.Row.Ending, o.d); err != nil {
		return err
	}
	return r.afterAgent(ctx, o.s, o.end.Report)
}

// errHeld says that no session may begin: a person stopped or paused the
// run in the meantime, or other sessions used up the budget.
var errHeld = errors.New("the run is to begin no session now")

// mayBegin returns how much the session may spend, within the transaction
// that claims its task. It fails if the run was stopped or paused, if
// other sessions used up the budget, or if an edit put another task first.
func (l *job) mayBegin(tx *store.Tx, again bool) (usd float64, err error) {
	if closed(l.Stop) {
		return usd, errHeld
	}
	control, err := tx.RunControl(l.id)
	if err != nil {
		return usd, err
	}
	if control != ralph.ControlNone {
		return usd, errHeld
	}
	s, err := tx.Spending(l.id, from(l.since, l.Store.Now()), worth)
	if err != nil {
		return usd, err
	}
	usd, why := allowance(l.Limits, s, l.width())
	if why != "" || s.Sessions >= l.Limits.MaxSessions {
		return usd, errHeld
	}
	if !again || l.Task != 0 || l.width() > 1 {
		return usd, nil
	}
	next, ok, err := tx.Next()
	if err == nil && (!ok || next.ID != l.task) {
		err = ralph.Conflict("TASK-%d is no longer the first in the queue", l.task)
	}
	return usd, err
}

// room returns why no session can begin beside those in progress; "" if one can.
func (r *runner) room(s store.Spending) (why string) {
	s.Sessions, s.Open = s.Sessions-s.Open+len(r.jobs), len(r.jobs)
	if s.Sessions >= r.Limits.MaxSessions {
		return fmt.Sprintf("the limit of %d sessions per %s is reached with those in progress",
			r.Limits.MaxSessions, r.per())
	}
	_, why = allowance(r.Limits, s, r.width())
	return why
}
