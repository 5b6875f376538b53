package web

import (
	"net/http"

	"ralph"
	"ralph/internal/report"
	"ralph/store"
)

// runsListed is how many runs are on a page.
const runsListed = 50

// A runRow is a run with how long it took.
type runRow struct {
	ralph.Run
	Seconds float64
	Lost    bool // it has no end and no process
	Look    look
}

func newRunRow(run ralph.Run, active bool, latest int64, now ralph.Time) runRow {
	row := runRow{Run: run, Look: look{"●", "ended", "gray"}}
	end := run.EndedAt
	switch {
	case end.IsZero() && active && run.ID == latest:
		end, row.Look = now, look{"▶", run.State, "green"}
	case end.IsZero():
		row.Lost, row.Look = true, look{"✕", "lost", "red"}
	case run.ExitStatus != nil && *run.ExitStatus == ralph.ExitOK:
		row.Look = look{"✓", "all done", "green"}
	case run.ExitStatus != nil:
		row.Look = lookOfExit(*run.ExitStatus)
	}
	if !row.Lost {
		row.Seconds = end.Sub(run.StartedAt.Time).Seconds()
	}
	return row
}

// lookOfExit is how an exit status of a run is shown.
func lookOfExit(status int) look {
	switch status {
	case ralph.ExitFailed:
		return look{"✕", "failed tasks", "red"}
	case ralph.ExitWaiting:
		return look{"❓", "waits for people", "yellow"}
	case ralph.ExitLimit:
		return look{"⊘", "a limit was reached", "orange"}
	case ralph.ExitAgent:
		return look{"⚠", "agent not usable", "red"}
	case ralph.ExitStopped:
		return look{"■", "stopped", "gray"}
	}
	return look{"✕", "ralph failed", "red"}
}

// A runsView is a page of the list of runs.
type runsView struct {
	Runs  []runRow
	Pager pager
}

func (a *app) runs(tx *store.Tx, r *http.Request) (view, error) {
	list, err := tx.Runs(runsListed+1, (pageOf(r)-1)*runsListed)
	if err != nil {
		return view{}, err
	}
	active, err := a.Active()
	if err != nil {
		return view{}, err
	}
	last, _, err := tx.LastRun()
	var v runsView
	list, more := paged(list, runsListed)
	for _, run := range list {
		v.Runs = append(v.Runs, newRunRow(run, active, last.ID, tx.Now()))
	}
	v.Pager = newPager(r, more)
	return view{title: "Runs", name: "runs", nav: "/runs", live: true, body: v}, err
}

// A runView is a run's page.
type runView struct {
	runRow
	Report report.Report
	Tasks  []report.Receipt // a page of them
	Pager  pager
}

// runTasks is how many tasks are on a page of a run.
const runTasks = 50

func (a *app) run(tx *store.Tx, r *http.Request) (view, error) {
	id, err := pathID(r)
	if err != nil {
		return view{}, err
	}
	run, err := tx.Run(id)
	if err != nil {
		return view{}, err
	}
	active, err := a.Active()
	if err != nil {
		return view{}, err
	}
	last, _, err := tx.LastRun()
	if err != nil {
		return view{}, err
	}
	v := runView{runRow: newRunRow(run, active, last.ID, tx.Now())}
	if v.Report, err = a.Report(tx, id); err != nil {
		return view{}, err
	}
	tasks := v.Report.Tasks
	more := false
	v.Tasks, more = paged(tasks[min(len(tasks), (pageOf(r)-1)*runTasks):], runTasks)
	v.Pager = newPager(r, more)
	return view{title: "Run " + r.PathValue("id"), name: "run", nav: "/runs", live: true, body: v}, nil
}
