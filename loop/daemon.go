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

// A Heart receives a run's heartbeat, so that somebody notices when the run hangs.
type Heart interface {
	Beat(within time.Duration) // the run is alive, and will beat again within that time
	Status(text string)        // one line: what it is doing
}

const (
	// stepTime is the longest time for a step of the loop that has no limit of
	// its own, such as a snapshot of the work tree.
	stepTime = 5 * time.Minute

	// lookAgain is how often a paused run checks its limits, and how often a
	// daemon retries an expired claim that it could not decide.
	lookAgain = time.Minute

	// lookAnyway is how often a daemon looks for work even though nothing has happened.
	lookAnyway = time.Hour
)

// Serve works like [Loop.Run]; with a schedule it runs one batch after another. Each batch is a
// run with limits of its own that waits for its time and ends when nothing is left to do. Serve
// ends with the batch that is stopped, finds the agent unusable, or fails in ralph itself.
func (l *Loop) Serve(ctx context.Context) (Result, error) {
	if l.Schedule.IsZero() {
		return l.Run(ctx)
	}
	for {
		batch := *l
		if batch.begins = l.Schedule.Next(l.Store.Now()); batch.begins.IsZero() {
			return Result{Status: ralph.ExitUsage}, errors.New("the schedule " + l.Schedule.String() + " names no further time")
		}
		result, err := batch.Run(ctx)
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

// waitForOpening waits for the start of the batch and, if there is work,
// for the window in which sessions may begin.
func (r *runner) waitForOpening(ctx context.Context, work bool) error {
	now := r.Store.Now()
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
	if r.held != "" {
		reasons = append(reasons, r.held)
	}
	if r.waits.Why != "" {
		reasons = append(reasons, "done work is not merged: "+r.waits.Why)
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
	// Look first at what happened since the queue was read.
	if found, err := news(); found || err != nil {
		return cmp.Or(err, errAgain)
	}
	until, err := r.lapses(ctx, r.Store.Now())
	if err == nil {
		until, err = r.mergesAgain(ctx, until, r.Store.Now())
	}
	if err != nil {
		return err
	}
	return r.await(ctx, until, news)
}

// lapses returns when a daemon without work looks again: when the next
// claim expires, as that causes no event.
func (r *runner) lapses(ctx context.Context, now time.Time) (until time.Time, err error) {
	next, err := store.Read(ctx, r.Store, func(tx *store.Tx) (ralph.Time, error) { return tx.NextLapse(r.id) })
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

// mergesAgain returns until, or an earlier time if the merge queue needs a look that no event
// causes: to ask a remote again, or to fast-forward a branch of people's that is behind.
func (r *runner) mergesAgain(ctx context.Context, until, now time.Time) (time.Time, error) {
	if r.Merger == nil {
		return until, nil
	}
	q, err := store.Read(ctx, r.Store, (*store.Tx).MergeQueue)
	if q.Behind != "" && now.Add(lookAgain).Before(until) {
		until = now.Add(lookAgain)
	}
	if q.WaitUntil.After(now) && q.WaitUntil.Before(until) {
		until = q.WaitUntil.Add(time.Millisecond)
	}
	if again := r.tried.Add(lookElsewhere); r.waits.Elsewhere && again.Before(until) {
		until = again
	}
	return until, err
}

// await waits until the given time, until people ask something of the run, or until
// there is news (if not nil), and then starts the next round. A look costs the same
// whatever the queue holds. The wait does not count against the run's time.
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
			return cmp.Or(err, errAgain) // what people approve is merged, whatever sessions wait for
		}
		if !r.Store.Now().Before(until) || len(r.ended) > 0 || ctx.Err() != nil || closed(r.Stop) {
			return errAgain
		}
		before := time.Now()
		r.sleep(ctx, until)
		r.started = r.started.Add(time.Since(before))
	}
}

// queuedSince reports whether something has happened since it was asked last, and changes wait to be merged.
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

// lastEvent returns the id of the newest event. Whatever gives the loop work is an event.
func (r *runner) lastEvent(ctx context.Context) (int64, error) {
	return store.Read(context.WithoutCancel(ctx), r.Store, (*store.Tx).LastEvent)
}

// beat says that the loop is alive and will beat again within d.
func (l *Loop) beat(d time.Duration) {
	if l.Heart != nil {
		l.Heart.Beat(d)
	}
}

// says reports in one line what the run is doing.
func (l *Loop) says(text string) {
	if l.Heart != nil {
		l.Heart.Status(text)
	}
}
