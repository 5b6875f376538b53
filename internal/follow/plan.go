package follow

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"ralph"
	"ralph/internal/config"
	"ralph/internal/project"
	"ralph/internal/report"
	"ralph/internal/text"
	"ralph/loop"
	"ralph/store"
)

// WriteEnd prints the result of a run.
func WriteEnd(ctx context.Context, w io.Writer, db *store.DB, result loop.Result) error {
	r, err := store.Read(ctx, db, func(tx *store.Tx) (report.Report, error) { return report.OfRun(tx, result.RunID) })
	if err == nil {
		err = r.WriteEnd(w)
	}
	if err != nil || len(result.Reasons) < 2 {
		return err
	}
	for _, why := range result.Reasons[1:] {
		if _, err := fmt.Fprintf(w, "  also: %s\n", why); err != nil {
			return err
		}
	}
	return nil
}

// A Plan is what a run would do, as JSON.
type Plan struct {
	Pending int          `json:"pending"` // tasks
	Tasks   []ralph.Task `json:"tasks"`   // the first of them
	Limits  ralph.Limits `json:"limits"`

	unaccepted []int64 // tasks
}

// ReadPlan returns what a run would do.
func ReadPlan(ctx context.Context, l *loop.Loop) (v Plan, err error) {
	v.Limits = l.Limits
	next := store.TaskFilter{Statuses: []ralph.Status{ralph.Pending}, Limit: 5}
	return v, l.Store.View(ctx, func(tx *store.Tx) (err error) {
		if v.Pending, err = tx.CountTasks(next); err != nil {
			return err
		}
		if v.Tasks, err = tx.Tasks(next); err != nil {
			return err
		}
		if l.Task != 0 {
			only, err := tx.Task(l.Task)
			if err != nil {
				return err
			}
			v.Tasks = slices.DeleteFunc([]ralph.Task{only}, func(t ralph.Task) bool { return t.Status != ralph.Pending })
		}
		v.unaccepted, err = tx.Unaccepted()
		return err
	})
}

// WritePlan prints what a run would do.
func WritePlan(ctx context.Context, out io.Writer, l *loop.Loop) error {
	var w bytes.Buffer
	v, err := ReadPlan(ctx, l)
	if err != nil {
		return err
	}
	pending, queue := v.Pending, v.Tasks
	if len(v.unaccepted) > 0 {
		fmt.Fprintln(&w, "!", loop.Outside(v.unaccepted))
	}
	fmt.Fprintf(&w, "queue: %d pending", pending)
	for _, t := range queue {
		fmt.Fprintf(&w, "\n  TASK-%d %s", t.ID, text.Line(t.Title, 100))
	}
	if pending == 0 {
		fmt.Fprint(&w, " (`ralph run \"TITLE\" --verify COMMAND` adds a task and works on it)")
	}
	if more := pending - len(queue); more > 0 && l.Task == 0 {
		fmt.Fprintf(&w, "\n  and %d more", more)
	}
	lim := l.Limits
	fmt.Fprintf(&w, "\nlimits: %d sessions, %d tasks, %s, $%.2f, $%.2f a day; a session: %s, idle %s, %d turns, $%.2f\n",
		lim.MaxSessions, lim.MaxTasks, span(lim.MaxSeconds), lim.MaxCostUSD, lim.MaxDayCostUSD,
		span(lim.SessionSeconds), span(lim.IdleSeconds), lim.SessionTurns, lim.SessionCostUSD)
	sayWorkspace(ctx, &w, l)
	verification := strings.Join(l.Check.Commands, "; ")
	if verification == "" {
		verification = "nothing checks every task: `ralph init` finds your tests, or set verify in ralph.yaml"
	}
	fmt.Fprintf(&w, "agent: %s\n", project.AgentCommand(l))
	if said := l.Sandbox; said != "" {
		fmt.Fprintf(&w, "sandbox: %s\n", said)
	}
	fmt.Fprintf(&w, "verification: %s\n", verification)
	_, err = out.Write(w.Bytes())
	return err
}

// looseNamed is how many uncommitted files a run names.
const looseNamed = 5

// sayWorkspace prints where a run works, and which uncommitted files are not there.
func sayWorkspace(ctx context.Context, w io.Writer, l *loop.Loop) {
	fmt.Fprintf(w, "agents work in clones of what is committed; what passes is merged into %s\n",
		text.Line(l.Merger.Into, 200))
	files, err := l.Here.Tree.Uncommitted(ctx)
	if err != nil {
		fmt.Fprintf(w, "uncommitted files cannot be listed: %s\n", text.Line(err.Error(), 300))
		return
	}
	if len(files) == 0 {
		return
	}
	var names []string
	for _, f := range files[:min(len(files), looseNamed)] {
		names = append(names, text.Line(f, 100))
	}
	more := ""
	if n := len(files) - len(names); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	fmt.Fprintf(w, "your uncommitted files, left alone: %s%s\n", strings.Join(names, ", "), more)
}

// span formats a duration in seconds for people.
func span(seconds float64) string {
	return config.FormatDuration(time.Duration(seconds * float64(time.Second)))
}
