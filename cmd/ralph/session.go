package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/machine"
	"ralph/internal/project"
	"ralph/internal/report"
	"ralph/internal/show"
	"ralph/internal/term"
	"ralph/internal/text"
	"ralph/loop/workspace"
	"ralph/signals"
	"ralph/store"
)

func newSession(a *app) *cobra.Command {
	return noun("session", newSessionList(a), newSessionShow(a), newSessionLog(a), newSessionOpen(a))
}

// sessions reads the sessions that the flags --task and --limit select.
func (a *app) sessions(cmd *cobra.Command, f store.SessionFilter, task string) (list []ralph.Session, err error) {
	if f.Task, err = optionalTask(task); err != nil {
		return nil, err
	}
	if f.Limit < 1 {
		return nil, usage(&ralph.FieldError{Field: fmt.Sprintf("--limit %d", f.Limit), Problem: "must be at least 1"})
	}
	return read(cmd.Context(), a, func(tx *store.Tx) ([]ralph.Session, error) {
		if err := tx.CheckTask(f.Task); err != nil {
			return nil, err
		}
		return tx.Sessions(f)
	})
}

func newSessionList(a *app) *cobra.Command {
	var f store.SessionFilter
	var task string
	var states bool
	cmd := newCommand("list", func(cmd *cobra.Command, _ []string) error {
		err := oneOf("--ended", f.Ended, append([]string{""}, ralph.Ended...)...)
		if err != nil {
			return err
		}
		if states && !cmd.Flags().Changed("limit") {
			f.Limit = 1000
		}
		list, err := a.sessions(cmd, f, task)
		if err != nil {
			return err
		}
		if states {
			return a.sayStates(list)
		}
		now := ralph.At(time.Now())
		views := []show.SessionView{}
		for _, s := range list {
			views = append(views, show.ViewSession(s, now))
		}
		machines := map[string]bool{}
		for _, s := range list {
			if s.Machine != "" { // an undo has none
				machines[s.Machine] = true
			}
		}
		several := len(machines) > 1
		return a.print(views, func(w io.Writer) {
			if len(views) == 0 {
				return
			}
			a.screen().Table(w, term.Table{
				Head: []string{"SESSION", "BEGAN", "TASK", "ENDED", "TIME", "COST", "TOKENS", "WHY"}, Rows: rows(views, several),
				Right: []int{4, 5, 6}, Flex: 7,
			})
		})
	})
	cmd.Flags().StringVar(&task, "task", "", "only those of `TASK`")
	cmd.Flags().StringVar(&f.Ended, "ended", "", "only sessions with this `ENDING`: "+strings.Join(ralph.Ended, ", "))
	cmd.Flags().IntVar(&f.Limit, "limit", 50, "at most `N`")
	cmd.Flags().BoolVar(&states, "states", false, "show the time in each state instead, over the latest 1000")
	return cmd
}

// money returns a session's cost for a column: "~" before an estimate, "?" if it is unknown.
func money(s show.SessionView) string {
	switch cost := text.Money(s.CostUSD); {
	case s.CostKnown || s.CostUSD == 0 && s.Tokens.Sum() == 0:
		return cost
	case s.CostUSD == 0:
		return "?"
	default:
		return "~" + cost
	}
}

// rows returns the cells of sessions in a table; several means that they come from several machines.
func rows(list []show.SessionView, several bool) (rows [][]string) {
	for _, s := range list {
		state := cmp.Or(s.Ended, string(s.State))
		if s.Ended == "stopped" || s.Ended == "lost" {
			state += " at " + string(s.Stood)
		}
		why := text.Line(s.Reason, 200)
		if several && s.Machine != "" {
			why = "on " + s.Machine + ": " + why
		}
		rows = append(rows, []string{
			fmt.Sprintf("%.8s", s.ID), text.When(s.StartedAt.Time, time.Now()), fmt.Sprintf("TASK-%d", s.TaskID), state,
			text.Span(show.Total(s.Stays)), money(s), show.Thousands(s.Tokens.Sum()), why,
		})
	}
	return rows
}

// sessionOf finds the named session, or else the newest, and the folder of its files.
func (a *app) sessionOf(cmd *cobra.Command, args []string) (s ralph.Session, dir string, err error) {
	err = a.with(cmd.Context(), func(p *project.Project, db *store.DB) error {
		return db.View(cmd.Context(), func(tx *store.Tx) error {
			s, err = sessionNamed(tx, args)
			dir = p.Session(s.ID)
			return err
		})
	})
	return s, dir, err
}

// sessionNamed returns the session with the id in an argument, or the newest one of a task. Without an argument it
// returns an agent's newest session.
func sessionNamed(tx *store.Tx, args []string) (ralph.Session, error) {
	f := store.SessionFilter{Work: true, Limit: 50}
	none := "there has been no session yet"
	if len(args) > 0 {
		task, err := ralph.ParseTaskID(args[0])
		if digits := len(args[0]) >= shortSession && args[0][0] != 'T' && args[0][0] != 't'; err != nil || digits {
			return tx.Session(args[0])
		}
		if err := tx.CheckTask(task); err != nil {
			return ralph.Session{}, err
		}
		f.Task, none = task, fmt.Sprintf("TASK-%d has had no session yet", task)
	}
	list, err := tx.Sessions(f)
	if err != nil || len(list) == 0 {
		return ralph.Session{}, errors.Join(err, ralph.NotFound("%s", none))
	}
	agents := slices.IndexFunc(list, func(s ralph.Session) bool { return s.Origin == ralph.FromLoop })
	return list[max(0, agents)], nil
}

// shortSession is how many digits of a session's id people see. A shorter number names a task.
const shortSession = 8

// onAnotherMachine reports whether another machine has the files of a session, such as its transcript.
func onAnotherMachine(s ralph.Session) bool { return s.Machine != "" && s.Machine != machine.Name() }

// isThere returns an error if a file of a session is missing here: it does not exist, or is on another machine.
func isThere(s ralph.Session, what string) error {
	return fmt.Errorf("the %s of session %.8s is on %s: look at it there: %w", what, s.ID, s.Machine, ralph.ErrNotFound)
}

func newSessionShow(a *app) *cobra.Command {
	var prompt, decision, hidden, verbose bool
	cmd := newCommand("show [SESSION]", func(cmd *cobra.Command, args []string) error {
		s, dir, err := a.sessionOf(cmd, args)
		if err != nil {
			return err
		}
		switch {
		case prompt:
			text, err := os.ReadFile(filepath.Join(dir, "prompt.md"))
			if errors.Is(err, fs.ErrNotExist) && onAnotherMachine(s) {
				return isThere(s, "prompt")
			}
			if err != nil {
				return err
			}
			_, err = a.out.Write(text)
			return err
		case hidden:
			text, err := os.ReadFile(filepath.Join(dir, workspace.HiddenLog))
			if errors.Is(err, fs.ErrNotExist) && onAnotherMachine(s) {
				return isThere(s, "output of hidden checks, if any ran,")
			}
			if errors.Is(err, fs.ErrNotExist) {
				return ralph.NotFound("no hidden check ran on session %s", s.ID)
			}
			if err != nil {
				return err
			}
			_, err = a.out.Write(text)
			return err
		case decision:
			return a.explainDecision(cmd.Context(), s)
		}
		v := show.ViewSession(s, ralph.At(time.Now()))
		r, err := read(cmd.Context(), a, func(tx *store.Tx) (report.Receipt, error) {
			return report.OfTask(tx, ralph.Task{ID: s.TaskID})
		})
		v.Task = &r.Changed
		if err != nil {
			return err
		}
		if onAnotherMachine(s) {
			dir += ", on " + text.Line(s.Machine, 100)
		}
		return a.print(v, func(w io.Writer) { show.Session(w, v, dir, verbose) })
	})
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "add the full id, the time in each state and the folder")
	cmd.Flags().BoolVar(&prompt, "prompt", false, "print the prompt that it got")
	cmd.Flags().BoolVar(&hidden, "hidden", false, "print the output of hidden checks")
	cmd.Flags().BoolVar(&decision, "decision", false, "explain the decision on it, rule by rule")
	return cmd
}

// An explained decision is the output of `ralph session show --decision --json`.
type explained struct {
	Decision signals.Decision `json:"decision"`
	Steps    []signals.Step   `json:"steps"`
}

// explainDecision prints the decision on a session, rule by rule.
func (a *app) explainDecision(ctx context.Context, s ralph.Session) error {
	var v explained
	err := a.with(ctx, func(p *project.Project, db *store.DB) error {
		return db.View(ctx, func(tx *store.Tx) error {
			f, d, err := tx.DecidedFrom(s)
			if err != nil {
				return err
			}
			f.Rules = p.Rules()
			v = explained{d, signals.Explain(f, d)}
			return nil
		})
	})
	if err != nil {
		return err
	}
	return a.print(v, func(w io.Writer) {
		last := ""
		for _, step := range v.Steps {
			name := step.Rule
			if len(name) == 1 {
				name = "rule " + name
			}
			if name == last {
				name = ""
			} else {
				last = name
			}
			fmt.Fprintf(w, "%-11s %s\n", name, text.Line(step.Text, 500))
		}
	})
}

// sayStates prints how long sessions were in each state.
func (a *app) sayStates(list []ralph.Session) error {
	rows := ralph.TimeInStates(list, ralph.At(time.Now()))
	return a.print(rows, func(w io.Writer) {
		t := term.Table{
			Head: []string{"STATE", "SESSIONS", "IN ALL", "MEDIAN", "LONG", "FAILED"}, Right: []int{1, 2, 3, 4, 5},
		}
		for _, r := range rows {
			t.Rows = append(t.Rows, []string{
				string(r.State), strconv.Itoa(r.Sessions), text.Span(r.Seconds), text.Span(r.Median),
				strconv.Itoa(r.Long), strconv.Itoa(r.Failed),
			})
		}
		a.screen().Table(w, t)
	})
}
