package loop

import (
	"cmp"
	"context"
	"strings"
	"time"

	"ralph"
	"ralph/internal/schedule"
	"ralph/store"
)

// waitForOpening waits for the start of the batch and, if there is work, for the window
// for sessions.
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

// waitForWork makes a daemon without a schedule wait for new tasks and answers.
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
	// Look first for events since the queue was read.
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

// lapses returns when a daemon without work has to look again: when the next claim expires, since that causes no event.
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

// mergesAgain returns until, or an earlier time if the merge queue needs a look that no event causes: to try a remote
// again, or to fast-forward people's branch.
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
