package web

import (
	"net/http"
	"net/url"
	"slices"

	"ralph"
	"ralph/internal/inbox"
	"ralph/internal/report"
	"ralph/store"
)

// runsListed is the number of runs on a page.
const runsListed = 50

// A runRow is a run with its duration.
type runRow struct {
	ralph.Run
	Seconds float64
	Lost    bool // without an end and without a process
	Look    look
}

// newRunRows converts runs.
func newRunRows(tx *store.Tx, runs ...ralph.Run) (rows []runRow) {
	for _, run := range runs {
		rows = append(rows, newRunRow(run, tx.Alive(run), tx.Now()))
	}
	return rows
}

func newRunRow(run ralph.Run, active bool, now ralph.Time) runRow {
	row := runRow{Run: run, Look: look{"●", "ended", "gray"}}
	end := run.EndedAt
	switch {
	case end.IsZero() && active:
		end, row.Look = now, look{"▶", run.State, "green"}
	case end.IsZero():
		row.Lost, row.Look = true, look{"✕", "lost", "red"}
	case run.ExitStatus != nil:
		var known bool
		if row.Look, known = exits[*run.ExitStatus]; !known {
			row.Look = look{"✕", "ralph failed", "red"}
		}
	}
	if !row.Lost {
		row.Seconds = end.Sub(run.StartedAt.Time).Seconds()
	}
	return row
}

// exits has the looks of runs' exit statuses.
var exits = map[int]look{
	ralph.ExitOK: {"✓", "all done", "green"}, ralph.ExitFailed: {"✕", "failed tasks", "red"},
	ralph.ExitWaiting: {"❓", "waits for people", "yellow"}, ralph.ExitLimit: {"⊘", "a limit was reached", "orange"},
	ralph.ExitAgent: {"⚠", "agent not usable", "red"}, ralph.ExitStopped: {"■", "stopped", "gray"},
}

// A runsView is a page of the list of runs.
type runsView struct {
	Runs     []runRow
	Narrowed []narrowed
	Pager    pager
}

func (a *app) runs(tx *store.Tx, r *http.Request) (view, error) {
	q := r.URL.Query()
	active, err := activeOf(q)
	if err != nil {
		return view{}, err
	}
	list, err := tx.Runs(active, runsListed+1, (pageOf(r)-1)*runsListed)
	if err != nil {
		return view{}, err
	}
	list, more := paged(list, runsListed)
	v := runsView{Pager: newPager(r, more), Narrowed: narrowedBy("/runs", q, "active")}
	v.Runs = newRunRows(tx, list...)
	return view{title: "Runs", name: "runs", nav: "/runs", live: true, body: v}, nil
}

// A runView is a run's page.
type runView struct {
	runRow
	Headline []report.Part    // its result
	Rest     []string         // its end and its changes
	Of       url.Values       // the conditions of its sessions
	Causes   []cause          // why tasks failed
	Tasks    []report.Receipt // one page
	Pager    pager
}

// A cause is the reason why some tasks failed or need a person, in the words of the first one.
type cause struct {
	Why   string
	Tasks []report.Receipt
}

// causesOf groups unfinished tasks by reason, the most frequent first.
func causesOf(tasks []report.Receipt) (list []cause) {
	at := map[string]int{}
	for _, t := range tasks {
		if t.Status != ralph.Failed {
			continue
		}
		why := inbox.Cause(store.InboxItem{Kind: "failed", Text: t.Reason})
		n, known := at[why]
		if !known {
			n = len(list)
			at[why] = n
			list = append(list, cause{Why: t.Reason})
		}
		list[n].Tasks = append(list[n].Tasks, t)
	}
	slices.SortStableFunc(list, func(a, b cause) int { return len(b.Tasks) - len(a.Tasks) })
	return list
}

// runTasks is the number of tasks on a page of a run.
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
	rows := newRunRows(tx, run)
	v := runView{runRow: rows[0], Of: conditionsOf(store.SessionFilter{Run: id})}
	worked, err := report.Worked(tx, id)
	if err != nil {
		return view{}, err
	}
	tasks := worked.Tasks
	v.Headline, v.Rest, v.Causes = worked.Headline(), worked.Rest(), causesOf(tasks)
	v.Tasks, v.Pager = pageIn(r, tasks, runTasks)
	return view{title: "Run " + r.PathValue("id"), name: "run", nav: "/runs", live: true, body: v}, nil
}
