package web

import (
	"fmt"
	"net/http"
	"time"

	"ralph"
	"ralph/internal/advice"
	"ralph/internal/report"
	"ralph/internal/text"
	"ralph/loop/agent"
	"ralph/store"
)

// A summary is the content of the overview.
type summary struct {
	Run       *ralph.Run // newest; nil if there was none
	Running   bool
	Limits    ralph.Limits       // of the run in progress, or else of the next one
	Elapsed   float64            // seconds since the run began
	Today     float64            // USD since midnight
	Spending  float64            // USD that sessions in progress have spent so far, about
	Resting   []store.AgentState // agents that are unavailable
	Sessions  []running
	Of        int      // how many sessions the run in progress may have at once
	Free      int      // how many of them are not used
	Idle      string   // why
	Merging   []merge  // the merge queue, in order
	Held      []string // why nothing is merged, and how far the branch is behind
	Target    string   // the branch that is merged into
	Counts    []count
	Queue     []ralph.Task
	MoreQueue int // further tasks in the queue
	Inbox     []item
	More      bool // the inbox has more
	Windows   []window
	Merged    []report.Receipt // the latest first
	MoreDone  bool
	Undo      bool // what was merged can be taken back
	Empty     bool // there are no tasks
	Startable bool // a run can be started
}

// A merge is a change in the merge queue.
type merge struct {
	ralph.Change
	Title   string
	Seconds float64 // in its state
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

// About says what sessions in progress have spent besides; "" if that is nothing or unknown.
func (s summary) About() string {
	if s.Spending == 0 {
		return ""
	}
	return " and about " + text.Money(s.Spending) + " in progress"
}

// A running is a session in progress with its task.
type running struct {
	ralph.Session
	Task ralph.Task
	Now  float64 // seconds since it began
	Used agent.Event
	Last shownEntry // the last thing that it said or did; zero if that is unknown

	Quiet float64 // seconds since its agent was last heard of; 0 if that is not long ago
}

// Cost is what an ended session cost, in words; "" for one in progress.
func (r running) Cost() string {
	if r.CompletedAt.IsZero() {
		return ""
	}
	return text.Cost(r.CostUSD, r.CostKnown, r.Tokens.Sum())
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

// The parts of the queue, the inbox and the merged tasks that the overview shows, and the number of
// sessions of which it says what they have used so far.
const (
	overviewUses   = recentJournals / 2
	overviewQueue  = 6
	overviewInbox  = 8
	overviewItems  = 100 // of which rows are made
	overviewMerged = 8
)

func (a *app) overview(tx *store.Tx, _ *http.Request) (view, error) {
	v := summary{Limits: a.Limits, Startable: a.Start != nil, Undo: a.Undo != nil}
	if err := a.addRun(tx, &v); err != nil {
		return view{}, err
	}
	if err := a.addSessions(tx, &v); err != nil {
		return view{}, err
	}
	if err := v.addMerging(tx); err != nil {
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
	v.MoreQueue = counts[ralph.Pending] - len(v.Queue)
	inbox, err := tx.InboxPart("", overviewItems+1, 0)
	if err != nil {
		return view{}, err
	}
	inbox, v.More = paged(inbox, overviewItems)
	waiting, err := rows(tx, withoutBand(inbox))
	if err != nil {
		return view{}, err
	}
	list, more := paged(waiting, overviewInbox)
	v.Inbox, v.More = list, v.More || more
	for i := range v.Inbox {
		if failed(v.Inbox[i].InboxItem) && len(v.Inbox[i].Also) > 0 {
			if err := a.whole(tx, &v.Inbox[i]); err != nil {
				return view{}, err
			}
		}
	}
	if v.Windows, err = a.windows(tx, v.Limits); err != nil {
		return view{}, err
	}
	done, err := tx.Tasks(store.TaskFilter{Merged: true, Limit: overviewMerged + 1})
	if err != nil {
		return view{}, err
	}
	done, v.MoreDone = paged(done, overviewMerged)
	for _, t := range done {
		receipt, err := report.OfTask(tx, t)
		if err != nil {
			return view{}, err
		}
		v.Merged = append(v.Merged, receipt)
	}
	return view{title: "Now", name: "overview", nav: "/", live: true, body: v}, nil
}

// quiet is the silence of an agent from which on it is said.
const quiet = 5 * time.Minute

// addSessions adds the sessions in progress.
func (a *app) addSessions(tx *store.Tx, v *summary) error {
	now := tx.Now()
	open, err := tx.OpenSessions()
	if err != nil {
		return err
	}
	busy := 0
	for _, s := range open {
		t, err := tx.Task(s.TaskID)
		if err != nil {
			return err
		}
		one := running{Session: s, Task: t, Now: now.Sub(s.StartedAt.Time).Seconds()}
		if len(v.Sessions) < overviewUses {
			h, err := a.transcripts.heard(s.ID)
			if err != nil {
				return err
			}
			one.Used, one.Last = h.used, newEntry(h.last)
			v.Spending += h.used.CostUSD
			if silent := now.Sub(h.at); !h.at.IsZero() && silent >= quiet && s.Checking == "" {
				one.Quiet = silent.Seconds()
			}
		}
		if v.Running && s.RunID == v.Run.ID {
			busy++
		}
		v.Sessions = append(v.Sessions, one)
	}
	if v.Running {
		v.Of = max(1, v.Run.Limits.Parallel)
		v.Free, v.Idle = max(0, v.Of-busy), v.Run.Idle
	}
	return nil
}

// addMerging adds the merge queue.
func (s *summary) addMerging(tx *store.Tx) error {
	queue, err := tx.MergeQueue()
	if err != nil {
		return err
	}
	now := tx.Now()
	queue.Paused = "" // the band says so
	s.Target, s.Held = queue.Target, advice.Queue(queue, now.Time)
	list, err := tx.QueuedChanges()
	for _, c := range list {
		t, err := tx.Task(c.TaskID)
		if err != nil {
			return err
		}
		s.Merging = append(s.Merging, merge{c, t.Title, max(0, now.Sub(c.Updated.Time).Seconds())})
	}
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
		v.Run = &run
	}
	if v.Running = ok && tx.Alive(run); v.Running {
		v.Limits, v.Elapsed = run.Limits, now.Sub(run.StartedAt.Time).Seconds()
	}
	if v.Resting, err = tx.Resting(); err != nil {
		return err
	}
	v.Today, err = tx.CostSince(midnight(now.Time))
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
