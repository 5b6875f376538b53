package loop

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"ralph"
	"ralph/internal/text"
	"ralph/loop/agent"
	"ralph/store"
)

// spending is what a run has used of its limits.
type spending struct {
	per             string // the period of the limits: "run", or "day" in a daemon
	sessions        int
	stagnant        int // different tasks in a row whose sessions changed nothing
	elapsed         time.Duration
	run, day, month float64 // USD
	unpriced        float64 // of what the run has spent, for tokens whose price is unknown
}

// since returns the start of the period that the run's limits count for.
func (r *runner) since() time.Time {
	if r.ofDays() {
		return r.day
	}
	return time.Time{}
}

// reached names the first limit of the run that is reached; "" if none is.
func reached(l ralph.Limits, s spending) string {
	switch {
	case s.sessions >= l.MaxSessions:
		return fmt.Sprintf("the limit of %d sessions per %s is reached", l.MaxSessions, s.per)
	case s.elapsed >= seconds(l.MaxSeconds):
		return fmt.Sprintf("the limit of %s per %s is reached", seconds(l.MaxSeconds), s.per)
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

// held says how much of the spending is no cost, but tokens of models whose price is unknown.
func (s spending) held() string {
	if s.unpriced == 0 {
		return ""
	}
	return fmt.Sprintf(", of which $%.2f are tokens of models without a known price, at the dearest known one: set their "+
		"prices (agents.NAME.prices)", s.unpriced)
}

// worth is what a million tokens count for whose price is unknown; see [store.Tx.Spending].
var worth = [4]float64{agent.Dearest.Input, agent.Dearest.Output, agent.Dearest.Cached, agent.Dearest.Write}

// from returns since when spending counts at a time; run is when the run's limits begin to.
func from(run, now time.Time) store.Since {
	day := Midnight(now)
	return store.Since{Run: run, Day: day, Month: day.AddDate(0, 0, 1-day.Day())}
}

// allowance returns how much the next session may spend: its own limit, or its share of what
// the run and the day have left once the sessions in progress have spent all that they may.
// Beside others, a session does not begin with less than the minimum; why then says so.
func allowance(l ralph.Limits, s store.Spending, width int) (usd float64, why string) {
	left := min(l.MaxCostUSD-s.USD-s.Reserved, l.MaxDayCostUSD-s.DayUSD-s.DayReserved,
		l.MaxMonthCostUSD-s.MonthUSD-s.DayReserved)
	least := min(l.SessionMinUSD, l.SessionCostUSD)
	if s.Open > 0 && left < least {
		return 0, fmt.Sprintf("sessions in progress may spend all but $%.2f, and another one needs "+
			"at least $%.2f", max(left, 0), least)
	}
	share := max(left/float64(max(width-s.Open, 1)), least)
	return min(l.SessionCostUSD, share, left), ""
}

// Midnight returns the start of the day in the local time zone.
func Midnight(now time.Time) time.Time {
	y, m, d := now.Date()
	return time.Date(y, m, d, 0, 0, 0, 0, now.Location())
}

// spent returns what counts against the limits now.
func (r *runner) spent(ctx context.Context) (spending, error) {
	total, err := store.Read(context.WithoutCancel(ctx), r.Store, func(tx *store.Tx) (store.Spending, error) {
		return tx.Spending(r.id, from(r.since(), r.Store.Now()), worth)
	})
	return r.counts(total), err
}

// counts is what counts against the limits of what was spent.
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
		s = spending{stagnant: s.stagnant} // waitForDay waits for the others
	}
	if why := reached(r.Limits, s); why != "" {
		return &end{ralph.ExitLimit, why}
	}
	return nil
}

// ofDays reports whether the limits count per day: in a daemon without a
// schedule, whose run does not end.
func (r *runner) ofDays() bool { return r.Daemon && r.Schedule.IsZero() }

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
	return fmt.Sprintf("the limit of %d tasks per %s is reached", r.Limits.MaxTasks, r.per())
}

// waitForDay has a daemon wait for midnight if a daily limit holds back a
// session on this task; 0 is any task.
func (r *runner) waitForDay(ctx context.Context, task int64) error {
	if !r.ofDays() {
		return nil
	}
	now := r.Store.Now()
	if day := Midnight(now); !day.Equal(r.day) {
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
	until, when := Midnight(now).AddDate(0, 0, 1), "at midnight"
	if s.month >= r.Limits.MaxMonthCostUSD {
		until, when = from(now, now).Month.AddDate(0, 1, 0), "with the next month"
	}
	if err := r.state(ctx, "waiting", why+"; it goes on "+when, until); err != nil {
		return err
	}
	return r.await(ctx, until, nil)
}

// usedUp returns the latest reset time of the usage windows that are over their
// limit (decision 15), and why. Windows without a future reset time do not count.
func usedUp(windows []ralph.UsageWindow, limits map[string]int, now time.Time) (until time.Time, why string) {
	for _, w := range windows {
		percent, ok := usageLimit(w.Name, limits)
		if !ok || w.Utilization*100 < float64(percent) || !w.ResetsAt.After(now) || !w.ResetsAt.After(until) {
			continue
		}
		until = w.ResetsAt.Time
		why = fmt.Sprintf("usage limit: the window %s is used to %.0f%%, and limits.usage allows %d%%",
			w.Name, w.Utilization*100, percent)
	}
	return until, why
}

// usageLimit returns the limit of a window. A limit for seven_day also
// holds for seven_day_opus and the like, unless that has its own.
func usageLimit(window string, limits map[string]int) (percent int, ok bool) {
	for name := window; name != ""; {
		if percent, ok = limits[name]; ok {
			return percent, true
		}
		name = name[:max(strings.LastIndexByte(name, '_'), 0)]
	}
	return 0, false
}
