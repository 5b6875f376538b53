package follow

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"ralph"
	"ralph/internal/project"
	"ralph/internal/report"
	"ralph/internal/term"
	"ralph/internal/text"
	"ralph/loop"
	"ralph/store"
)

// WriteEnd prints the result of a run.
func WriteEnd(ctx context.Context, w io.Writer, s term.Screen, db *store.DB, result loop.Result) error {
	r, err := store.Read(ctx, db, func(tx *store.Tx) (report.Report, error) { return report.OfRun(tx, result.RunID) })
	if err == nil {
		_, err = fmt.Fprintln(w)
	}
	if err == nil {
		err = r.WriteText(w, s, false)
	}
	return err
}

// A Plan lists the planned work of a run, as JSON.
type Plan struct {
	Pending int          `json:"pending"` // tasks
	Tasks   []ralph.Task `json:"tasks"`   // the first of them
	Limits  ralph.Limits `json:"limits"`

	waiting    int     // tasks that wait for other tasks alone
	unaccepted []int64 // tasks
}

// ReadPlan returns the planned work of a run.
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
		if v.waiting, err = tx.Waiting(); err != nil {
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

// WritePlan prints the scope and the limits of a run; with list, also the next tasks.
func WritePlan(ctx context.Context, out io.Writer, s term.Screen, l *loop.Loop, list bool) error {
	var w bytes.Buffer
	v, err := ReadPlan(ctx, l)
	if err != nil {
		return err
	}
	if len(v.unaccepted) > 0 {
		fmt.Fprintln(&w, s.Hang("! ", loop.Outside(v.unaccepted)))
	}
	said := fmt.Sprintf("%s queued", text.Count(v.Pending, "task"))
	if v.waiting > 0 {
		said += fmt.Sprintf(", %d waiting", v.waiting)
	}
	switch {
	case l.Task != 0:
		said = fmt.Sprintf("TASK-%d alone", l.Task)
	case v.Pending == 0 && !l.Daemon:
		said += `; ralph run "TITLE" --verify COMMAND adds one`
	}
	lim := l.Limits
	switch {
	case l.Task != 0 && len(v.Tasks) == 1 && v.Tasks[0].Role == ralph.RolePlan:
		said = fmt.Sprintf("TASK-%d makes a plan, and changes nothing", l.Task)
	case l.Merger.Pulls:
		said += " → a pull request for each task, into " + text.Line(l.Merger.Into, 200)
	case l.Merger.Branch:
		said += " → a branch for each task"
	default:
		said += " → " + text.Line(l.Merger.Into, 200)
	}
	said += fmt.Sprintf(" · at most %s, %s, %s", text.Money(lim.MaxCostUSD),
		text.Span(lim.MaxSeconds), text.Count(lim.MaxSessions, "session"))
	if !l.Between.IsZero() {
		said += " · only " + l.Between.String()
	}
	fmt.Fprintln(&w, s.Hang("", said))
	if list {
		for _, t := range v.Tasks {
			fmt.Fprintf(&w, "  TASK-%d %s\n", t.ID, s.Clip(text.Line(t.Title, 100), s.Columns-12))
		}
		if more := v.Pending - len(v.Tasks); more > 0 && l.Task == 0 {
			fmt.Fprintf(&w, "  and %d more\n", more)
		}
		fmt.Fprintln(&w, s.Hang("a session: ", fmt.Sprintf("at most %s, %s, idle %s, %s",
			text.Money(lim.SessionCostUSD),
			text.Span(lim.SessionSeconds), text.Span(lim.IdleSeconds), text.Count(lim.SessionTurns, "turn"))))
	}
	agent := "agent: " + project.AgentCommand(l)
	if l.Sandbox != "" {
		agent += " · sandbox: " + l.Sandbox
	}
	fmt.Fprintln(&w, s.Hang("", agent))
	verification := strings.Join(l.Check.Commands, "; ")
	if verification == "" {
		verification = "only a task's own; `ralph init` finds your tests, or set verify in ralph.yaml"
	}
	fmt.Fprintln(&w, s.Hang("checks: ", verification))
	sayWorkspace(ctx, &w, s, l)
	_, err = out.Write(w.Bytes())
	return err
}

// looseNamed is the maximum number of uncommitted files that a run names.
const looseNamed = 5

// sayWorkspace names the uncommitted files, which agents do not see.
func sayWorkspace(ctx context.Context, w io.Writer, s term.Screen, l *loop.Loop) {
	files, err := l.Here.Tree.Uncommitted(ctx)
	if err != nil {
		fmt.Fprintln(w, s.Hang("! ", "uncommitted files cannot be listed: "+text.Line(err.Error(), 300)))
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
	fmt.Fprintln(w, s.Hang("not committed, so agents do not see it: ", strings.Join(names, ", ")+more))
}
