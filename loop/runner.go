package loop

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"ralph"
	"ralph/loop/merging"
	"ralph/loop/order"
	"ralph/store"
)

// A runner schedules one run. Only its goroutine checks, waits, picks and counts. Sessions and merges run in separate
// goroutines, which send it their results. Lasting state is in the database.
type runner struct {
	course
	jobsCtx context.Context                  // context of those goroutines
	jobs    map[int]*job                     // those in progress, by number
	over    chan func(context.Context) error // receives a function per result, which applies it to the run
	ended   []func(context.Context) error    // received, but not yet applied
	pulse   *pulse
	merges  bool                 // a merge is in progress
	failed  map[string]time.Time // by agent: when it was last found unable to work

	begins   time.Time // when the batch begins
	started  time.Time
	day      time.Time      // the day that the limits count for, if they are daily
	worked   map[int64]bool // tasks that had a session in this run
	counted  map[int64]bool // tasks that count against the limit of tasks
	stagnant []int64        // tasks whose sessions changed nothing, since the last change
	repeats  int            // number of times that the last agent error occurred in a row
	last     lastEnding
	waits    merging.Wait    // reason why the merge queue waits
	rested   int64           // the newest event before the last merge
	tried    time.Time       // end of the last merge
	looked   int64           // the newest event when a waiting run last looked for changes to merge
	seen     int64           // the newest event when a daemon last looked for work
	changed  <-chan struct{} // closed at the first change after the run's last look

	doing      doing         // recorded state of the run
	lost       int           // lost sessions in a row, of any task
	held       string        // why no new task may begin; "" if one may
	passes     []int64       // tasks passed over in favour of the last pick
	passed     map[int64]int // number of times that each task was passed over
	missedTask int64         // the last pick, if it could not be claimed; 0 if it could
	red        suspense

	untold     int // git failures in a row before a session
	gitNext    time.Time
	gitReason  string
	remoteNext time.Time // next try of a remote that was unreachable before a session
}

// A job takes one picked task from claim to verdict, while other jobs work on theirs. The scheduler judges the meaning
// of the result for the run.
type job struct {
	course
	number   int
	task     int64
	kind     string // the task's discipline
	role     ralph.Role
	since    time.Time // start of the period that the run's limits count for
	deadline time.Time // end of the run's time
	counted  bool      // its task already counts against the limits
	waited   bool      // it recorded a command that it waited for
}

// A suspense has a run's knowledge about a verification that fails before any work.
type suspense struct {
	green     bool  // it passed, or does not matter
	mending   int64 // the task that works until it passes; 0 for none yet
	announced string
	waits     bool // the daemon waits until it passes
	asked     bool // it ran in this run: earlier results may be older than a fix
}

// A lastEnding is an agent with the ending of its last session.
type lastEnding struct {
	agent  string
	ending ralph.Ending
}

func newRunner(l *Loop, id int64) *runner {
	r := &runner{
		course: l.outside(), started: time.Now(), day: order.Midnight(time.Now()),
		worked: map[int64]bool{}, counted: map[int64]bool{}, jobs: map[int]*job{}, failed: map[string]time.Time{},
		passed: map[int64]int{},
		over:   make(chan func(context.Context) error, l.Width()+1),
	}
	r.id = id
	if l.Heart != nil {
		r.pulse = newPulse(l.Heart)
		r.heart = r.pulse.of(0)
	}
	r.slow = func(command string) {
		r.doing = doing{} // the recorded state differs
		r.verifying(command)
	}
	return r
}

// busy reports whether a session or a merge is in progress.
func (r *runner) busy() bool { return len(r.jobs) > 0 || r.merges }

// works reports whether anything in progress may change the project: a merge, or a session that does not just plan.
func (r *runner) works() bool {
	for _, j := range r.jobs {
		if j.role != ralph.RolePlan {
			return true
		}
	}
	return r.merges
}

// rests stops the scheduler's own heartbeat while it waits for sessions, which have their own.
func (r *runner) rests() {
	if r.pulse != nil {
		r.pulse.rests(0)
	}
}

// besides waits until another session ends or something changes. Why is the reason why no other session begins.
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

// besidesLook is how often the run checks, without an event, whether another session may begin: a task's wait may be
// over.
const besidesLook = 5 * time.Second

// idle records for people why no further session begins.
func (r *runner) idle(ctx context.Context, why string) error {
	return r.Store.Tx(context.WithoutCancel(ctx), func(tx *store.Tx) error { return tx.SetIdle(r.id, why) })
}

// untilChange waits for a result, or for a change after a short moment: running sessions cause many events.
func (r *runner) untilChange(ctx context.Context, changed <-chan struct{}) {
	r.rests()
	soon := time.NewTimer(shortWait)
	defer soon.Stop()
	for changes := (<-chan struct{})(nil); len(r.ended) == 0; {
		select {
		case <-soon.C:
			changes = changed
			continue
		case apply := <-r.over:
			r.ended = append(r.ended, apply)
		case <-changes:
		case <-ctx.Done():
		}
		return
	}
}

// A doing is a run's recorded state. Only the run records it.
type doing struct {
	state, reason string
	until         ralph.Time
}

// state records the run's present state if it is new.
func (r *runner) state(ctx context.Context, state, reason string, until time.Time) error {
	is := doing{state, reason, ralph.At(until)}
	if r.doing == is {
		return nil
	}
	when := ""
	if !until.IsZero() {
		when = until.Local().Format("Jan 2 15:04:05")
	}
	r.says(ralph.Doing(state, reason, when))
	r.doing = doing{}
	err := r.Store.Tx(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		return tx.SetRunState(r.id, state, reason, until)
	})
	if err == nil {
		r.doing = is
	}
	return err
}

// verifying records the command that the course runs before a session.
func (c course) verifying(command string) {
	why := fmt.Sprintf("verifying before the first session, since %s: %s", time.Now().Format("15:04:05"), command)
	c.says(why)
	err := c.Store.Tx(context.Background(), func(tx *store.Tx) error { return tx.NoteVerifying(c.id, command, why) })
	if err != nil {
		c.Log.Warn("cannot record the command that is running", "error", err)
	}
}

// sleep returns at the given time, on a change since the run's last look, on a result from another goroutine, on a
// request to stop, or when the run's own time is over.
func (r *runner) sleep(ctx context.Context, until time.Time) {
	end := r.started.Add(order.Seconds(r.Limits.MaxSeconds))
	ends := !r.ofDays() && end.After(time.Now())
	lasts := func() time.Duration {
		left := until.Sub(r.Store.Now())
		if ends {
			left = min(left, time.Until(end))
		}
		return left
	}
	for left := lasts(); left > 0 && len(r.ended) == 0; left = lasts() {
		r.beat(stepTime)
		timer := time.NewTimer(min(left, step))
		select {
		case <-timer.C:
			continue
		case apply := <-r.over:
			r.ended = append(r.ended, apply)
		case <-r.changed:
		case <-ctx.Done():
		case <-r.Stop:
		}
		timer.Stop()
		return
	}
}

// wait records the reason and the end of a wait, and sleeps. A change ends the sleep early, because it may be a request
// or a new task.
func (r *runner) wait(ctx context.Context, reason string, until time.Time) error {
	if err := r.state(ctx, "waiting", reason, until); err != nil {
		return err
	}
	r.sleep(ctx, until)
	return errAgain
}

// await waits until the given time, a person's request, or news (if not nil), and then starts the next round. A look
// costs the same at any size of the queue. The wait does not count against the run's time.
func (r *runner) await(ctx context.Context, until time.Time, news func() (bool, error)) error {
	for {
		r.changed = r.Store.Changed()
		control, err := r.control(ctx)
		if err != nil || control != ralph.ControlNone {
			return cmp.Or(err, errAgain)
		}
		if news != nil {
			if found, err := news(); found || err != nil {
				return cmp.Or(err, errAgain)
			}
		}
		if queued, err := r.queuedSince(ctx); err != nil || queued {
			return cmp.Or(err, errAgain) // approved changes are merged even while sessions wait
		}
		if !r.Store.Now().Before(until) || len(r.ended) > 0 || ctx.Err() != nil || closed(r.Stop) {
			return errAgain
		}
		before := time.Now()
		r.sleep(ctx, until)
		r.started = r.started.Add(time.Since(before))
	}
}

// queuedSince reports whether something has happened since its last call, and changes wait to be merged.
func (r *runner) queuedSince(ctx context.Context) (queued bool, err error) {
	err = r.Store.View(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		last, err := tx.LastEvent()
		if err != nil || last == r.looked {
			return err
		}
		r.looked = last
		list, err := tx.QueuedChanges()
		queued = len(list) > 0
		return err
	})
	return queued, err
}

// lastEvent returns the id of the newest event. Everything that gives the loop work is an event.
func (r *runner) lastEvent(ctx context.Context) (int64, error) {
	return store.Read(context.WithoutCancel(ctx), r.Store, (*store.Tx).LastEvent)
}
