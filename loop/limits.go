package loop

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"ralph"
	"ralph/internal/text"
	"ralph/loop/order"
	"ralph/store"
)

// spending is the part of its limits that a run has used.
type spending struct {
	per             string // the period of the limits: "run", or "day" in a daemon
	sessions        int
	stagnant        int // different tasks in a row whose sessions changed nothing
	elapsed         time.Duration
	run, day, month float64 // USD
	unpriced        float64 // part of the run's spending without a known price
}

// since returns the start of the period of the run's limits.
func (r *runner) since() time.Time {
	if r.ofDays() {
		return r.day
	}
	return time.Time{}
}

// reached names the first reached limit of the run; "" for none.
func reached(l ralph.Limits, s spending) string {
	switch {
	case s.sessions >= l.MaxSessions:
		return fmt.Sprintf("the limit of %s per %s is reached", text.Count(l.MaxSessions, "session"), s.per)
	case s.elapsed >= order.Seconds(l.MaxSeconds):
		return fmt.Sprintf("the limit of %s per %s is reached", order.Seconds(l.MaxSeconds), s.per)
	case s.run >= l.MaxCostUSD:
		return fmt.Sprintf("the limit of $%.2f per %s is reached ($%.2f spent%s)", l.MaxCostUSD, s.per, s.run, s.held())
	case s.day >= l.MaxDayCostUSD:
		return fmt.Sprintf("the limit of $%.2f per day is reached ($%.2f spent since midnight, over all runs)",
			l.MaxDayCostUSD, s.day)
	case s.month >= l.MaxMonthCostUSD:
		return fmt.Sprintf("the limit of $%.2f per month is reached ($%.2f spent since the month began, over all runs)",
			l.MaxMonthCostUSD, s.month)
	case s.stagnant >= l.StagnantMaximum:
		return fmt.Sprintf("the sessions of %s in a row changed nothing", text.Count(s.stagnant, "task"))
	}
	return ""
}

// held describes the part of the spending without a known cost: tokens of models with an unknown price.
func (s spending) held() string {
	if s.unpriced == 0 {
		return ""
	}
	return fmt.Sprintf(", of which $%.2f are tokens of models without a known price, at the dearest known one: set their "+
		"prices (agents.NAME.prices)", s.unpriced)
}

// spent returns the spending that counts against the limits now.
func (r *runner) spent(ctx context.Context) (spending, error) {
	total, err := store.Read(context.WithoutCancel(ctx), r.Store, func(tx *store.Tx) (store.Spending, error) {
		return tx.Spending(r.id, order.Since(r.since(), r.Store.Now()), order.Worth)
	})
	return r.counts(total), err
}

// counts returns the part of the total that counts against the limits.
func (r *runner) counts(total store.Spending) spending {
	return spending{
		per: r.per(), sessions: total.Sessions, stagnant: len(r.stagnant), elapsed: time.Since(r.started),
		run: total.USD, day: total.DayUSD, month: total.MonthUSD, unpriced: total.Unpriced,
	}
}

// limit ends the run if one of its limits is reached.
func (r *runner) limit(total store.Spending) error {
	s := r.counts(total)
	if r.ofDays() {
		s = spending{stagnant: s.stagnant} // waitForDay waits for the other limits
	}
	if why := reached(r.Limits, s); why != "" {
		return &end{ralph.ExitLimit, why}
	}
	return nil
}

// ofDays reports whether the limits count per day: in a daemon without a
// schedule, whose run does not end.
func (l *Loop) ofDays() bool { return l.Daemon && l.Schedule.IsZero() }

// per names the period of the run's limits.
func (r *runner) per() string {
	if r.ofDays() {
		return "day"
	}
	return "run"
}

// tasksReached returns why no session on another task may begin; "" if one may.
func (r *runner) tasksReached(task int64) string {
	if task == 0 || r.counted[task] || len(r.counted) < r.Limits.MaxTasks {
		return ""
	}
	return fmt.Sprintf("the limit of %s per %s is reached", text.Count(r.Limits.MaxTasks, "task"), r.per())
}

// waitForDay makes a daemon wait for midnight if a daily limit prevents a session on this
// task; 0 is any task.
func (r *runner) waitForDay(ctx context.Context, task int64) error {
	if !r.ofDays() {
		return nil
	}
	now := r.Store.Now()
	if day := order.Midnight(now); !day.Equal(r.day) {
		r.day, r.started = day, time.Now()
		clear(r.counted)
	}
	s, err := r.spent(ctx)
	if err != nil {
		return err
	}
	why := cmp.Or(reached(r.Limits, s), r.tasksReached(task))
	if why == "" {
		return nil
	}
	until, when := order.Midnight(now).AddDate(0, 0, 1), "at midnight"
	if s.month >= r.Limits.MaxMonthCostUSD {
		until, when = order.Since(now, now).Month.AddDate(0, 1, 0), "with the next month"
	}
	if err := r.state(ctx, "waiting", why+"; it goes on "+when, until); err != nil {
		return err
	}
	return r.await(ctx, until, nil)
}
