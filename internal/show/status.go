package show

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"ralph"
	"ralph/internal/advice"
	"ralph/internal/config"
	"ralph/internal/text"
	"ralph/store"
)

// A StatusView is what `ralph status --json` prints.
type StatusView struct {
	Running  bool                 `json:"running"`
	Run      *ralph.Run           `json:"run"`      // the latest one, null if there never was one
	Sessions []ralph.Session      `json:"sessions"` // those in progress
	Counts   map[ralph.Status]int `json:"counts"`
	Waiting  int                  `json:"waiting_for_people"`
	Outside  []int64              `json:"unaccepted"` // tasks that are completed although nothing recorded says why
	Inbox    []store.InboxItem    `json:"inbox"`      // what that is
	Agent    string               `json:"agent_wait"` // why no session starts now, "" if one may
	Until    ralph.Time           `json:"agent_wait_until"`
	Limits   ralph.Limits         `json:"limits"`         // of the run in progress, else of the next one
	Today    float64              `json:"cost_today_usd"` // since midnight, over all runs
	Windows  []ralph.UsageWindow  `json:"usage_windows"`
	Now      ralph.Time           `json:"-"`
	Strange  string               `json:"-"`       // what there is to say of those that are unaccepted
	Between  string               `json:"between"` // the hours in which sessions start, or "always"
}

// ReadStatus reads what goes on. What the database does not know is the caller's to add:
// whether a run is active, and the limits and hours of the next one.
func ReadStatus(tx *store.Tx, midnight func(time.Time) time.Time) (v StatusView, err error) {
	v.Now = tx.Now()
	run, ok, err := tx.LastRun()
	if err != nil {
		return v, err
	}
	if ok {
		v.Run = &run
	}
	if v.Sessions, err = tx.OpenSessions(); err != nil {
		return v, err
	}
	if v.Counts, err = tx.Counts(); err != nil {
		return v, err
	}
	if v.Inbox, err = advice.Inbox(tx); err != nil {
		return v, err
	}
	if v.Outside, err = tx.Unaccepted(); err != nil {
		return v, err
	}
	v.Waiting = len(v.Inbox)
	if v.Windows, err = tx.UsageWindows(); err != nil {
		return v, err
	}
	if v.Today, err = tx.CostSince(midnight(v.Now.Time)); err != nil {
		return v, err
	}
	agent, err := tx.AgentState()
	if agent.WaitUntil.After(v.Now.Time) {
		v.Agent, v.Until = agent.Reason, agent.WaitUntil
	}
	return v, err
}

// Status writes what goes on.
func Status(w io.Writer, v StatusView) {
	now := v.Now
	for _, i := range v.Inbox {
		if i.Kind == "permission" {
			fmt.Fprintf(w, "needs you now: TASK-%d stands still: may it use %s?\n  %s",
				i.TaskID, text.VisibleLine(i.Text), i.Command)
			if !i.Expires.IsZero() {
				left := i.Expires.Sub(now.Time).Round(time.Second)
				fmt.Fprintf(w, " (answers itself with deny in %s)", span(max(0, left.Seconds())))
			}
			fmt.Fprintln(w)
		}
	}
	switch {
	case v.Run == nil:
		fmt.Fprintln(w, "no run yet")
	case v.Running:
		doing := ralph.Doing(v.Run.State, text.Line(v.Run.StateReason, 200), "")
		fmt.Fprintf(w, "running since %s (process %d), %s\n", v.Run.StartedAt.Local().Format("Jan 2 15:04"), v.Run.PID, doing)
		if until := v.Run.WaitUntil; !until.IsZero() {
			fmt.Fprintf(w, "waits until %s\n", until.Local().Format("Jan 2 15:04:05"))
		}
	case v.Run.EndedAt.IsZero():
		fmt.Fprintf(w, "not running; the last run (process %d) was lost: `ralph run` takes up what it left\n", v.Run.PID)
	default:
		fmt.Fprintf(w, "not running; the last run ended %s: %s\n",
			v.Run.EndedAt.Local().Format("Jan 2 15:04"), text.Line(v.Run.Reason, 200))
	}
	for _, s := range v.Sessions {
		who := ""
		if s.Worker != "" {
			who = s.Worker + " "
		}
		fmt.Fprintf(w, "%son TASK-%d since %s (session %.8s)\n", who, s.TaskID, s.StartedAt.Local().Format("15:04:05"), s.ID)
	}
	if v.Agent != "" {
		fmt.Fprintf(w, "no session before %s: %s\n", v.Until.Local().Format("Jan 2 15:04:05"), text.Line(v.Agent, 200))
	}
	for _, s := range ralph.Statuses {
		if n := v.Counts[s]; n > 0 {
			fmt.Fprintf(w, "%6d %s\n", n, s)
		}
	}
	if len(v.Outside) > 0 {
		fmt.Fprintln(w, "!", v.Strange)
	}
	waiting(w, v.Inbox)
	limits(w, v)
}

// waiting counts what waits for a person, and names the questions and flags.
func waiting(w io.Writer, inbox []store.InboxItem) {
	fmt.Fprintf(w, "%d waiting for you\n", len(inbox))
	counts := map[string]int{}
	for _, i := range inbox {
		counts[i.Kind]++
	}
	for _, kind := range store.InboxKinds() {
		if counts[kind] > 0 {
			fmt.Fprintf(w, "%6d %s\n", counts[kind], kind)
		}
	}
	named := 0
	for _, i := range inbox {
		if i.Kind != "question" && i.Kind != "flag" {
			continue
		}
		if named++; named > namedInStatus {
			fmt.Fprintln(w, "  and more (`ralph inbox`)")
			return
		}
		fmt.Fprintf(w, "  %s: %s → %s\n", ralph.Named(i.Kind, i.TaskID), text.Line(i.Text, 120), i.Command)
	}
}

// namedInStatus is how many questions and flags `ralph status` names.
const namedInStatus = 10

// limits has a line for each limit: what is used, and how much may be.
func limits(w io.Writer, v StatusView) {
	l, now := v.Limits, v.Now
	var r ralph.Run
	elapsed := "0s"
	if v.Running {
		r, elapsed = *v.Run, took(*v.Run, true, now)
		fmt.Fprintln(w, "limits of this run:")
	} else {
		fmt.Fprintln(w, "limits of the next run:")
	}
	line := func(what, format string, args ...any) {
		fmt.Fprintf(w, "  %-20s %s\n", what, fmt.Sprintf(format, args...))
	}
	line("sessions", "%d of %d", r.Sessions, l.MaxSessions)
	line("tasks", "%d of %d", r.Tasks, l.MaxTasks)
	line("time", "%s of %s", elapsed, span(l.MaxSeconds))
	line("cost", "%s of %s", text.Money(r.CostUSD), text.Money(l.MaxCostUSD))
	line("cost today", "%s of %s", text.Money(v.Today), text.Money(l.MaxDayCostUSD))
	line("hours", "%s", v.Between)
	line("without a change", "%d sessions in a row", l.StagnantMaximum)
	for _, name := range slices.Sorted(maps.Keys(l.Usage)) {
		used := "unknown"
		for _, u := range v.Windows {
			if u.Name == name && u.ResetsAt.After(now.Time) {
				used = fmt.Sprintf("%.0f%% (reset %s)", u.Utilization*100, u.ResetsAt.Local().Format("Jan 2 15:04"))
			}
		}
		line("usage "+name, "%s of %d%%", used, l.Usage[name])
	}
	line("attempts of a task", "%d", l.Attempts)
	line("time of a session", "%s, idle %s", span(l.SessionSeconds), span(l.IdleSeconds))
	line("turns of a session", "%d", l.SessionTurns)
	line("cost of a session", "%s", text.Money(l.SessionCostUSD))
	if v.Run == nil || v.Running {
		return
	}
	fmt.Fprintf(w, "the last run: %s on %s, %s in %s\n",
		text.Count(v.Run.Sessions, "session"), text.Count(v.Run.Tasks, "task"),
		text.Money(v.Run.CostUSD), took(*v.Run, false, now))
}

// took is how long a run has lasted; of a lost one nobody knows.
func took(r ralph.Run, running bool, now ralph.Time) string {
	end := r.EndedAt
	switch {
	case running:
		end = now
	case end.IsZero():
		return "an unknown time"
	}
	return end.Sub(r.StartedAt.Time).Round(time.Second).String()
}

// span is a duration in seconds for people.
func span(seconds float64) string {
	return config.FormatDuration(time.Duration(seconds * float64(time.Second)))
}
