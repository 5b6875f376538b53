package loop

import (
	"context"
	"time"

	"ralph"
	"ralph/loop/agent"
	"ralph/loop/order"
	"ralph/store"
)

// courseOf returns a course of a run.
func courseOf(l *Loop, run int64) course {
	c := l.outside()
	c.id = run
	return c
}

// AfterError calls afterError. It returns until when to wait, why, and the reason to end.
func AfterError(r agent.Report, failures, repeats int, others, noWait bool, b Backoff, now time.Time, jitter float64) (until time.Time, reason, ends string) {
	p := afterError(r, failures, repeats, others, noWait, b, now, jitter)
	if p.end != nil {
		ends = p.end.reason
	}
	return p.until, p.reason, ends
}

// Heed calls heed of a run with so many results, one of them failed. It returns the applied ones, and the number of the
// rest.
func Heed(ctx context.Context, full bool, results, fails int) (applied []int, left int, err error) {
	r := &runner{over: make(chan func(context.Context) error, results)}
	for i := range results {
		r.over <- func(context.Context) error {
			applied = append(applied, i)
			if i == fails {
				return errHeld
			}
			return nil
		}
	}
	err = r.heed(ctx, full)
	return applied, len(r.ended), err
}

// Pick calls pick, which reads the first task of the queue; then something happens.
func Pick(ctx context.Context, l *Loop, then func()) (task ralph.Task, ok bool, spent []int64, err error) {
	return l.pick(ctx, func(tx *store.Tx) (ralph.Task, bool, error) {
		defer then()
		return tx.Next()
	})
}

// JudgeRest calls judgeRest. It returns the exit statuses and the reasons.
func JudgeRest(tasks []ralph.Task, inbox []store.InboxItem, worked map[int64]bool, only int64) (statuses []int, why []string) {
	for _, e := range judgeRest(tasks, inbox, worked, only) {
		statuses, why = append(statuses, e.status), append(why, e.reason)
	}
	return statuses, why
}

// Merges calls merge, which merges the queue while sessions work; then something happens before its result is applied.
// It returns the reason why the queue waits, and whether it rests until more happens.
func Merges(ctx context.Context, l *Loop, then func()) (waits string, rests bool, err error) {
	r := &runner{course: l.outside(), jobsCtx: ctx, over: make(chan func(context.Context) error, 1)}
	if err := r.merge(ctx); err != nil {
		return "", false, err
	}
	result := <-r.over
	then()
	if err := result(ctx); err != nil {
		return "", false, err
	}
	rests, err = r.mergeRests(ctx)
	return r.waits.Why, rests, err
}

// LapseOne decides on a claim that was read before.
func LapseOne(ctx context.Context, l *Loop, row ralph.Session) error {
	return l.outside().lapse(ctx, []ralph.Session{row})
}

// ClaimBefore claims a task for a worker without queueing up behind others.
func ClaimBefore(ctx context.Context, l *Loop, task int64, worker string) error {
	_, err := l.outside().open(ctx, l.Here, store.Start{Worker: worker, Lease: time.Hour}, task,
		func(tx *store.Tx, t ralph.Task) (order.Order, error) { return order.ForWorker(tx, &l.Config, t, nil) })
	return err
}
