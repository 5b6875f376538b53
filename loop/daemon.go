package loop

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"ralph"
	"ralph/internal/schedule"
	"ralph/store"
)

// A Heart is told how a run gets on, so that somebody may notice when it does not.
type Heart interface {
	Beat(within time.Duration) // the run gets on, and will say so again within that time
	Status(text string)        // one line: what it is doing
}

const (
	// stepTime is what the longest step of the loop may take that has no limit of
	// its own, such as a snapshot of the work tree.
	stepTime = 5 * time.Minute

	// lookAgain is how often a run that is paused looks whether a limit is reached, and
	// a daemon for a claim that has expired and that it could not settle.
	lookAgain = time.Minute

	// lookAnyway is how often a daemon looks for work even if nothing has happened.
	lookAnyway = time.Hour
)

// Serve works like [Loop.Run], and with a schedule batch after batch: each is a
// run of its own, with its limits, that waits for its time and ends when nothing
// is left to do. It ends as the batch does that was stopped, that found the agent
// unusable, or in which ralph itself failed.
func (l *Loop) Serve(ctx context.Context) (Result, error) {
	if l.Schedule.IsZero() {
		return l.Run(ctx)
	}
	for {
		batch := *l
		if batch.begins = l.Schedule.Next(time.Now()); batch.begins.IsZero() {
			return Result{Status: ralph.ExitUsage}, errors.New("the schedule " + l.Schedule.String() + " names no further time")
		}
		result, err := batch.Run(ctx)
		if err != nil || !followed(result.Status) {
			return result, err
		}
	}
}

// followed reports whether a batch that ended so is followed by another one.
func followed(status int) bool {
	switch status {
	case ralph.ExitOK, ralph.ExitFailed, ralph.ExitWaiting, ralph.ExitLimit:
		return true
	}
	return false
}

// waitForOpening waits for the batch's beginning, and if there is work also for
// the window in which sessions may begin.
func (r *runner) waitForOpening(ctx context.Context, work bool) error {
	now := time.Now()
	until, reason := schedule.Opening(now, r.begins, r.Between)
	if until.IsZero() || !work && !now.Before(r.begins) {
		return nil
	}
	if err := r.state(ctx, "waiting", reason, until); err != nil {
		return err
	}
	return r.await(ctx, until, nil)
}

// waitForWork has a daemon without a schedule wait for new tasks and answers.
func (r *runner) waitForWork(ctx context.Context) error {
	if !r.Daemon || !r.Schedule.IsZero() {
		return nil
	}
	ends, err := r.leftOver(ctx)
	if err != nil {
		return err
	}
	reasons := []string{"for new tasks and answers"}
	for _, e := range ends {
		reasons = append(reasons, e.reason)
	}
	if err := r.state(ctx, "waiting", strings.Join(reasons, "; "), time.Time{}); err != nil {
		return err
	}
	news := func() (bool, error) {
		last, err := r.lastEvent(ctx)
		news := last != r.seen
		r.seen = last
		return news, err
	}
	// What happened between the look at the queue and this one is looked at first.
	if found, err := news(); found || err != nil {
		return cmp.Or(err, errAgain)
	}
	until, err := r.lapses(ctx, time.Now())
	if err != nil {
		return err
	}
	return r.await(ctx, until, news)
}

// lapses is when a daemon without work looks again: the next claim lapses then, with
// which no event comes.
func (r *runner) lapses(ctx context.Context, now time.Time) (until time.Time, err error) {
	next, err := store.Read(ctx, r.Store, (*store.Tx).NextLapse)
	until = now.Add(lookAnyway)
	switch {
	case next.IsZero() || next.After(until):
	case next.After(now):
		until = next.Add(time.Millisecond)
	default:
		until = now.Add(lookAgain)
	}
	return until, err
}

// await waits for a time, or until people ask something of the run or there is
// news (nil: of no interest), and has the round begin again. Each look costs the same
// whatever the queue holds. Such a wait is not taken off the run's time.
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
		if time.Until(until) <= 0 || ctx.Err() != nil || closed(r.Stop) {
			return errAgain
		}
		before := time.Now()
		r.sleep(ctx, until)
		r.started = r.started.Add(time.Since(before))
	}
}

// lastEvent is the id of the newest event. Whatever can give the loop work is one.
func (r *runner) lastEvent(ctx context.Context) (int64, error) {
	return store.Read(context.WithoutCancel(ctx), r.Store, (*store.Tx).LastEvent)
}

// beat says that the loop gets on and will again within d.
func (l *Loop) beat(d time.Duration) {
	if l.Heart != nil {
		l.Heart.Beat(d)
	}
}

// says tells in one line what the run is doing.
func (l *Loop) says(text string) {
	if l.Heart != nil {
		l.Heart.Status(text)
	}
}
