package web

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"ralph"
	"ralph/internal/advice"
	"ralph/internal/inbox"
	"ralph/internal/report"
	"ralph/internal/text"
	"ralph/loop/agent"
	"ralph/store"
)

// A summary is the content of the overview.
type summary struct {
	Run       *ralph.Run // newest; nil if there was none
	Running   bool
	Limits    ralph.Limits       // limits of the run in progress, or else of the next one
	Elapsed   float64            // seconds since the run began
	Today     float64            // USD since midnight
	Forge     string             // its state in a line; "" for none
	Spending  float64            // USD that sessions in progress have spent so far, about
	Resting   []store.AgentState // agents that are unavailable
	Sessions  []running
	Still     int      // number of paused ones
	Of        int      // maximum number of sessions at once in the run in progress
	Free      int      // unused sessions of these
	Idle      string   // the reason
	Merging   []merge  // the merge queue, in order
	Held      []string // the reason why merging is paused, and how far the branch is behind
	Target    string   // the target branch
	Waiting   int      // tasks that wait for other tasks
	Reviews   int      // tasks in review
	Queue     []ralph.Task
	MoreQueue int // further tasks in the queue
	Inbox     []item
	Holds     int     // things that hold work back
	Further   int     // further items below the shown ones
	Reasons   int     // number of reasons why tasks failed
	RetryUSD  float64 // likely cost of retrying all of them; 0 if there are too many to estimate
	Windows   []window
	Merged    []report.Receipt // the latest first
	MoreDone  bool
	Undo      bool // the merged changes can be undone
	Empty     bool // there was neither a task nor a run
	Startable bool // a run can be started
}

// A merge is a change in the merge queue.
type merge struct {
	ralph.Change
	Title   string
	Seconds float64 // in its state
}

// Before returns the task that a task passes when it moves up; 0 for the first.
func (s summary) Before(n int) int64 {
	if n == 0 {
		return 0
	}
	return s.Queue[n-1].ID
}

// SessionsUsed returns the used percentage of a run's maximum number of sessions.
func (s summary) SessionsUsed() int {
	return percent(float64(s.Run.Sessions), float64(s.Limits.MaxSessions))
}

// A running is a session in progress with its task.
type running struct {
	ralph.Session
	Task ralph.Task
	Now  float64 // seconds since it began
	Used agent.Event
	Last shownEntry // its last words or action; zero if unknown

	Asks  string  // the permission that it waits for; "" while it works
	Since float64 // seconds since it stands still

	Quiet float64 // seconds since its agent last did something; 0 if that is short
}

// urgency returns how soon a person should look at the session.
func (r running) urgency() int {
	switch {
	case r.Asks != "":
		return 2
	case r.Quiet > 0:
		return 1
	}
	return 0
}

// Cost returns the cost of an ended session, in words; "" for one in progress.
func (r running) Cost() string {
	if r.CompletedAt.IsZero() {
		return ""
	}
	return text.Cost(r.CostUSD, r.CostKnown, r.Tokens.Sum())
}

// Spent returns the spending of the run in progress so far (USD), or else that of the sessions of a morning.
func (s summary) Spent(m report.Morning) float64 {
	if s.Running && m.Since.IsZero() {
		return s.Run.CostUSD + s.Spending
	}
	return m.CostUSD + s.Spending
}

// Busy returns the number of sessions of the run in progress.
func (s summary) Busy() int { return s.Of - s.Free }

// A count is the number of tasks with a status.
type count struct {
	Word string
	N    int
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

// Lengths of the shown parts of the queue, the inbox and the merged tasks, and the number of sessions with their use so
// far.
const (
	overviewUses   = recentJournals / 2
	overviewQueue  = 5
	overviewInbox  = 7
	overviewItems  = 100 // shown as rows
	overviewMerged = 6
)

func (a *app) overview(tx *store.Tx, _ *http.Request) (view, error) {
	v := summary{Limits: a.Limits, Startable: a.Start != nil, Undo: a.Undo != nil}
	if a.Forge != nil {
		v.Forge = a.Forge()
	}
	if err := a.addRun(tx, &v); err != nil {
		return view{}, err
	}
	if err := a.addSessions(tx, &v); err != nil {
		return view{}, err
	}
	if err := v.addMerging(tx); err != nil {
		return view{}, err
	}
	if err := v.addQueue(tx); err != nil {
		return view{}, err
	}
	if err := v.addInbox(tx); err != nil {
		return view{}, err
	}
	var err error
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

// addQueue adds the first tasks of the queue. It counts the other ones, the waiting ones and the ones in review.
func (s *summary) addQueue(tx *store.Tx) error {
	any, err := tx.Tasks(store.TaskFilter{Latest: true, Limit: 1})
	if err != nil {
		return err
	}
	s.Empty = len(any) == 0 && s.Run == nil
	pending := store.TaskFilter{Statuses: []ralph.Status{ralph.Pending}, Limit: overviewQueue}
	if s.Queue, err = tx.Tasks(pending); err != nil {
		return err
	}
	n, err := tx.CountTasks(pending)
	if err != nil {
		return err
	}
	s.MoreQueue = n - len(s.Queue)
	if s.Waiting, err = tx.Waiting(); err != nil {
		return err
	}
	review := ralph.Task{Status: ralph.Merging, InReview: true}.Word()
	s.Reviews, err = tx.CountTasks(store.TaskFilter{Words: []string{review}})
	return err
}

// addInbox adds the items that wait for a person, the most urgent first.
func (s *summary) addInbox(tx *store.Tx) error {
	list, err := tx.InboxPart(inbox.FilterAll.Kinds(), overviewItems+1, 0)
	if err != nil {
		return err
	}
	list, more := paged(list, overviewItems)
	waiting, err := rows(tx, list)
	if err != nil {
		return err
	}
	if err := price(tx, waiting); err != nil {
		return err
	}
	for _, i := range waiting {
		switch i.Section() {
		case inbox.Holds:
			s.Holds++
		case inbox.Failed:
			s.Reasons++
			s.RetryUSD += i.RetryUSD
		}
	}
	if more {
		s.RetryUSD = 0
	}
	s.Inbox, _ = paged(waiting, overviewInbox)
	s.Further = len(waiting) - len(s.Inbox)
	return nil
}

// quiet is how long an agent is silent before the page mentions it.
const quiet = 5 * time.Minute

// addSessions adds the sessions in progress.
func (a *app) addSessions(tx *store.Tx, v *summary) error {
	now := tx.Now()
	open, err := tx.OpenSessions()
	if err != nil {
		return err
	}
	busy, asks := 0, map[string]store.InboxItem{}
	asked, err := tx.InboxOf("permission")
	if err != nil {
		return err
	}
	for _, i := range asked {
		asks[i.Session] = i
	}
	for _, s := range open {
		t, err := tx.Task(s.TaskID)
		if err != nil {
			return err
		}
		one := running{Session: s, Task: t, Now: now.Sub(s.StartedAt.Time).Seconds()}
		if i, still := asks[s.ID]; still {
			one.Asks, one.Since = newAsked(i.Text).Input, now.Sub(i.Created.Time).Seconds()
			v.Still++
		}
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
	slices.SortStableFunc(v.Sessions, func(a, b running) int { return cmp.Compare(b.urgency(), a.urgency()) })
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
	queue.Paused = "" // the band shows it
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
