package loop

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"ralph"
	"ralph/store"
)

// spending is what a run's limits are compared with.
type spending struct {
	per      string // what the limits of a run are of: "run", or "day" in a daemon
	sessions int
	stagnant int // sessions in a row that left nothing behind
	elapsed  time.Duration
	run, day float64 // USD
}

// reached is the first limit of the run that is reached; "" if none is.
func reached(l ralph.Limits, s spending) string {
	switch {
	case s.sessions >= l.MaxSessions:
		return fmt.Sprintf("the limit of %d sessions per %s is reached", l.MaxSessions, s.per)
	case s.elapsed >= seconds(l.MaxSeconds):
		return fmt.Sprintf("the limit of %s per %s is reached", seconds(l.MaxSeconds), s.per)
	case s.run >= l.MaxCostUSD:
		return fmt.Sprintf("the limit of $%.2f per %s is reached ($%.2f spent)", l.MaxCostUSD, s.per, s.run)
	case s.day >= l.MaxDayCostUSD:
		return fmt.Sprintf("the limit of $%.2f per day is reached ($%.2f spent since midnight, over all runs)",
			l.MaxDayCostUSD, s.day)
	case s.stagnant >= l.StagnantMaximum:
		return fmt.Sprintf("%d sessions in a row changed nothing", s.stagnant)
	}
	return ""
}

// allowance is what the next session may spend: its own limit, or what the run's
// and the day's leave.
func allowance(l ralph.Limits, s spending) float64 {
	return min(l.SessionCostUSD, l.MaxCostUSD-s.run, l.MaxDayCostUSD-s.day)
}

// Midnight is when the day of a moment began, where ralph runs.
func Midnight(now time.Time) time.Time {
	y, m, d := now.Date()
	return time.Date(y, m, d, 0, 0, 0, 0, now.Location())
}

// spent is what counts against the limits now.
func (r *runner) spent(ctx context.Context) (s spending, err error) {
	now := time.Now()
	s = spending{per: r.per(), sessions: r.sessions, stagnant: r.stagnant, elapsed: now.Sub(r.started), run: r.cost}
	err = r.Store.View(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		s.day, err = tx.CostSince(Midnight(now))
		return err
	})
	return s, err
}

// limit ends the run at the first limit of it that is reached.
func (r *runner) limit(ctx context.Context) error {
	s, err := r.spent(ctx)
	if r.ofDays() {
		s = spending{stagnant: s.stagnant} // the others are waited for
	}
	if why := reached(r.Limits, s); err == nil && why != "" {
		return &end{ralph.ExitLimit, why}
	}
	return err
}

// ofDays reports whether the limits of a run are those of each day: in a daemon
// without a schedule, whose run does not end.
func (r *runner) ofDays() bool { return r.Daemon && r.Schedule.IsZero() }

// per is what the limits of a run are of.
func (r *runner) per() string {
	if r.ofDays() {
		return "day"
	}
	return "run"
}

// tasksReached says that no session on one more task may begin; "" if it may.
func (r *runner) tasksReached(task int64) string {
	if task == 0 || r.counted[task] || len(r.counted) < r.Limits.MaxTasks {
		return ""
	}
	return fmt.Sprintf("the limit of %d tasks per %s is reached", r.Limits.MaxTasks, r.per())
}

// waitForDay has a daemon wait for midnight when a limit of the day is reached that
// holds a session on this task back; 0 is any.
func (r *runner) waitForDay(ctx context.Context, task int64) error {
	if !r.ofDays() {
		return nil
	}
	now := time.Now()
	if day := Midnight(now); !day.Equal(r.day) {
		r.day, r.started, r.sessions, r.cost = day, now, 0, 0
		clear(r.counted)
	}
	s, err := r.spent(ctx)
	if err != nil {
		return err
	}
	s.stagnant = 0
	why := cmp.Or(reached(r.Limits, s), r.tasksReached(task))
	if why == "" {
		return nil
	}
	until := Midnight(now).AddDate(0, 0, 1)
	if err := r.state(ctx, "waiting", why+"; it goes on at midnight", until); err != nil {
		return err
	}
	return r.await(ctx, until, nil)
}

// usedUp finds the usage window that is used further than its limit allows and
// is reset last (decision 15). A window without a reset time ahead has no effect.
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

// usageLimit is the limit of a window. One for seven_day is also one for
// seven_day_opus and the like, unless that has its own.
func usageLimit(window string, limits map[string]int) (percent int, ok bool) {
	for name := window; name != ""; {
		if percent, ok = limits[name]; ok {
			return percent, true
		}
		name = name[:max(strings.LastIndexByte(name, '_'), 0)]
	}
	return 0, false
}
