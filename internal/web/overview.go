package web

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"ralph"
	"ralph/internal/advice"
	"ralph/internal/report"
	"ralph/loop/agent"
	"ralph/store"
)

// A summary is the content of the overview.
type summary struct {
	Run         *ralph.Run // newest; nil if there was none
	Morning     []string   // its summary, by lines
	Running     bool
	Limits      ralph.Limits       // of the run in progress, or else of the next one
	Elapsed     float64            // seconds since the run began
	Today       float64            // USD since midnight
	Resting     []store.AgentState // agents that are unavailable
	Sessions    []running
	Of          int              // how many sessions the run in progress may have at once
	Free        []advice.Session // the numbers that are free, if it may have several
	Merging     []string         // messages about the merge queue
	Counts      []count
	Queue       []ralph.Task
	Inbox       []item
	More        bool // the inbox has more
	Windows     []window
	Results     []report.Receipt
	ResultsOf   string // "The last 24 hours", or the run
	MoreResults bool
	Empty       bool // there are no tasks
	Startable   bool // a run can be started
}

// Before returns the task that one of the queue goes before when it is moved up; 0 for the first.
func (s summary) Before(n int) int64 {
	if n == 0 {
		return 0
	}
	return s.Queue[n-1].ID
}

// SessionsUsed returns the percentage of a run's maximum number of sessions that has been used.
func (s summary) SessionsUsed() int {
	return percent(float64(s.Run.Sessions), float64(s.Limits.MaxSessions))
}

// A running is a session in progress with its task.
type running struct {
	ralph.Session
	Task ralph.Task
	Now  float64 // seconds since it began
	Used agent.Event
}

// A count is the number of tasks with a status.
type count struct {
	Status ralph.Status
	N      int
}

// A window is an account's usage window and the configured limit.
type window struct {
	ralph.UsageWindow
	Percent, Limit int  // Limit is 0 if there is none
	Over           bool // it has been reset since
}

// LimitText returns the text after the used percentage.
func (w window) LimitText() string {
	switch {
	case w.Over:
		return ", reset since"
	case w.Limit > 0:
		return fmt.Sprintf(" of %d %%", w.Limit)
	}
	return ""
}

// The parts of the queue, the inbox and the results that the overview shows, and the number of
// sessions of which it says what they have used so far.
const (
	overviewUses    = recentJournals / 2
	overviewQueue   = 8
	overviewInbox   = 8
	overviewResults = 30
)

func (a *app) overview(tx *store.Tx, _ *http.Request) (view, error) {
	v := summary{Limits: a.Limits, Startable: a.Start != nil}
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
		one := running{Session: s, Task: t, Now: now.Sub(s.StartedAt.Time).Seconds()}
		if len(v.Sessions) < overviewUses {
			if one.Used, err = a.transcripts.used(s.ID); err != nil {
				return view{}, err
			}
		}
		v.Sessions = append(v.Sessions, one)
	}
	if v.Running {
		v.Of = v.Run.Limits.Parallel
		parallel, err := advice.Sessions(tx, *v.Run)
		if err != nil {
			return view{}, err
		}
		v.Free = slices.DeleteFunc(parallel, func(l advice.Session) bool { return l.Session != nil })
	}
	if v.Merging, err = advice.Merging(tx); err != nil {
		return view{}, err
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
	if v.Inbox, err = rows(tx, inbox); err != nil {
		return view{}, err
	}
	for i := range v.Inbox {
		v.Inbox[i].Open = false
	}
	if v.Windows, err = a.windows(tx, v.Limits); err != nil {
		return view{}, err
	}
	if err := a.addResults(tx, &v); err != nil {
		return view{}, err
	}
	return view{title: "Overview", name: "overview", nav: "/", live: true, body: v}, nil
}

// addResults adds the results of the last 24 hours, or of the last run if there are none.
func (a *app) addResults(tx *store.Tx, v *summary) error {
	v.ResultsOf = "The last 24 hours"
	r, err := report.Since(tx, tx.Now().Add(-24*time.Hour))
	if err == nil && len(r.Tasks) == 0 {
		v.ResultsOf = "The last run"
		r, err = report.OfRun(tx, 0)
	}
	slices.Reverse(r.Tasks) // latest first
	v.Results, v.MoreResults = paged(r.Tasks, overviewResults)
	return err
}

// addRun adds the latest run.
func (a *app) addRun(tx *store.Tx, v *summary) error {
	now := tx.Now()
	run, ok, err := tx.LastRun()
	if err != nil {
		return err
	}
	if ok {
		r, err := report.OfRun(tx, run.ID)
		if err != nil {
			return err
		}
		v.Run, v.Morning = &run, r.Morning()
	}
	if v.Running = ok && tx.Alive(run); v.Running {
		v.Limits, v.Elapsed = run.Limits, now.Sub(run.StartedAt.Time).Seconds()
	}
	if v.Resting, err = tx.Resting(); err != nil {
		return err
	}
	y, m, d := now.Local().Date()
	v.Today, err = tx.CostSince(time.Date(y, m, d, 0, 0, 0, 0, time.Local))
	return err
}

// windows returns the accounts' usage windows with their limits.
func (a *app) windows(tx *store.Tx, l ralph.Limits) (list []window, err error) {
	known, err := tx.UsageWindows()
	for _, u := range known {
		list = append(list, window{u, percent(u.Utilization, 1), l.Usage[u.Name], !u.ResetsAt.After(tx.Now().Time)})
	}
	return list, err
}
