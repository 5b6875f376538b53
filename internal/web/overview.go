package web

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"ralph"
	"ralph/internal/report"
	"ralph/store"
)

// A summary is what the overview shows.
type summary struct {
	Run         *ralph.Run // the latest; nil if there never was one
	Running     bool
	Limits      ralph.Limits // of the run in progress, else of the next one
	Elapsed     float64      // seconds of the run in progress
	Today       float64      // USD since midnight
	Agent       store.AgentState
	AgentOff    bool // the agent cannot be used now
	Sessions    []running
	Counts      []count
	Queue       []ralph.Task
	Inbox       []item
	More        bool // there is more in the inbox
	Windows     []window
	Results     []report.Receipt
	ResultsOf   string // "The last 24 hours", or which run
	MoreResults bool
	Empty       bool // there is no task
}

// SessionsUsed is how many percent of a run's sessions have been launched.
func (s summary) SessionsUsed() int {
	return percent(float64(s.Run.Sessions), float64(s.Limits.MaxSessions))
}

// A running session with its task.
type running struct {
	ralph.Session
	Task ralph.Task
	Now  float64 // seconds since it began
}

// A count is how many tasks have a status.
type count struct {
	Status ralph.Status
	N      int
}

// A window is an account's allowance with the limit that is set for it.
type window struct {
	ralph.UsageWindow
	Percent, Limit int  // Limit is 0 where none is set
	Over           bool // it has been reset since
}

// LimitText is what stands behind how far a window is used.
func (w window) LimitText() string {
	switch {
	case w.Over:
		return ", reset since"
	case w.Limit > 0:
		return fmt.Sprintf(" of %d %%", w.Limit)
	}
	return ""
}

// How much of the queue, the inbox and the results the overview shows.
const (
	overviewQueue   = 8
	overviewInbox   = 8
	overviewResults = 30
)

func (a *app) overview(tx *store.Tx, _ *http.Request) (view, error) {
	v := summary{Limits: a.Limits}
	now := tx.Now()
	if err := a.addRun(tx, &v); err != nil {
		return view{}, err
	}
	open, err := tx.OpenSessions()
	if err != nil {
		return view{}, err
	}
	for _, s := range open {
		t, err := tx.Task(s.TaskID)
		if err != nil {
			return view{}, err
		}
		v.Sessions = append(v.Sessions, running{s, t, now.Sub(s.StartedAt.Time).Seconds()})
	}
	counts, err := tx.Counts()
	if err != nil {
		return view{}, err
	}
	for _, s := range ralph.Statuses {
		if counts[s] > 0 {
			v.Counts = append(v.Counts, count{s, counts[s]})
		}
	}
	v.Empty = len(v.Counts) == 0
	pending := store.TaskFilter{Statuses: []ralph.Status{ralph.Pending}, Limit: overviewQueue}
	if v.Queue, err = tx.Tasks(pending); err != nil {
		return view{}, err
	}
	inbox, err := tx.InboxPart("", overviewInbox+1, 0)
	if err != nil {
		return view{}, err
	}
	inbox, v.More = paged(inbox, overviewInbox)
	for _, i := range inbox {
		v.Inbox = append(v.Inbox, newItem(i))
	}
	if v.Windows, err = a.windows(tx, v.Limits); err != nil {
		return view{}, err
	}
	if err := a.addResults(tx, &v); err != nil {
		return view{}, err
	}
	return view{title: "Overview", name: "overview", nav: "/", live: true, body: v}, nil
}

// addResults adds what came of the last night; of the last run, if there was
// nothing since.
func (a *app) addResults(tx *store.Tx, v *summary) error {
	v.ResultsOf = "The last 24 hours"
	r, err := report.Since(tx, tx.Now().Add(-24*time.Hour))
	if err == nil && len(r.Tasks) == 0 {
		v.ResultsOf = "The last run"
		r, err = report.OfRun(tx, 0)
	}
	slices.Reverse(r.Tasks) // what was worked on last comes first
	v.Results, v.MoreResults = paged(r.Tasks, overviewResults)
	return err
}

// addRun adds what is known of the latest run.
func (a *app) addRun(tx *store.Tx, v *summary) error {
	now := tx.Now()
	run, ok, err := tx.LastRun()
	if err != nil {
		return err
	}
	if ok {
		v.Run = &run
	}
	active, err := a.Active()
	if err != nil {
		return err
	}
	if v.Running = active && ok && run.EndedAt.IsZero(); v.Running {
		v.Limits, v.Elapsed = run.Limits, now.Sub(run.StartedAt.Time).Seconds()
	}
	if v.Agent, err = tx.AgentState(); err != nil {
		return err
	}
	v.AgentOff = v.Agent.WaitUntil.After(now.Time)
	y, m, d := now.Local().Date()
	v.Today, err = tx.CostSince(time.Date(y, m, d, 0, 0, 0, 0, time.Local))
	return err
}

// windows are the account's allowances beside their limits.
func (a *app) windows(tx *store.Tx, l ralph.Limits) (list []window, err error) {
	known, err := tx.UsageWindows()
	for _, u := range known {
		list = append(list, window{u, percent(u.Utilization, 1), l.Usage[u.Name], !u.ResetsAt.After(tx.Now().Time)})
	}
	return list, err
}
