package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/text"
	"ralph/store"
)

func newSession(a *app) *cobra.Command {
	return noun("session", "Look at sessions, and follow your own", newSessionList(a), newSessionShow(a), newSessionLog(a), newSessionStates(a),
		newSessionInfo(a), newSessionWatch(a), newSessionStart(a), newSessionStop(a), newSessionClear(a))
}

func newSessionList(a *app) *cobra.Command {
	var f store.SessionFilter
	var task string
	cmd := &cobra.Command{
		Use: "list", Short: "List sessions, newest first", Example: "  ralph session list --outcome failure", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := narrow(&f, task); err != nil {
				return err
			}
			switch f.Outcome {
			case "", ralph.OutcomeSuccess, ralph.OutcomeFailure, ralph.OutcomeTimeout:
			default:
				return fieldError("--outcome", f.Outcome, ralph.OutcomeSuccess, ralph.OutcomeFailure, ralph.OutcomeTimeout)
			}
			var list []ralph.Session
			if err := a.read(cmd.Context(), func(tx *store.Tx) (err error) {
				if err := tx.CheckTask(f.Task); err != nil {
					return err
				}
				list, err = tx.Sessions(f)
				return err
			}); err != nil {
				return err
			}
			now := ralph.At(time.Now())
			views := []sessionView{}
			for _, s := range list {
				views = append(views, viewSession(s, now))
			}
			return a.print(views, func(w io.Writer) error {
				for _, s := range views {
					state := string(s.State)
					if s.State == ralph.PhaseFailed {
						state += " at " + string(s.Stood)
					}
					if _, err := fmt.Fprintf(w, "%.8s  %s  TASK-%-5d %-22s %-8s %8s %7s %7s  %s\n", s.ID, s.StartedAt.Local().Format("2006-01-02 15:04"), s.TaskID, state, s.Outcome,
						seconds(total(s.Stays)), dollars(s.CostUSD), thousands(s.Tokens.Sum()), oneLine(s.Reason, 120)); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&task, "task", "", "only this task's")
	cmd.Flags().StringVar(&f.Outcome, "outcome", "", "only success, failure or timeout")
	cmd.Flags().IntVar(&f.Limit, "limit", 50, "at most so many")
	return cmd
}

// A sessionView is a session with what follows from its history.
type sessionView struct {
	ralph.Session
	Stood ralph.Phase  `json:"stood_at"` // the last phase before its end
	Stays []ralph.Stay `json:"time_in_state"`

	Evidence ralph.Evidence `json:"evidence"` // what was seen when it was settled, beside what commands said
}

func viewSession(s ralph.Session, now ralph.Time) sessionView {
	v := sessionView{Session: s, Stood: s.Stood(), Stays: s.Stays(now)}
	if d, err := store.Decided(s); err == nil { // else it is not settled
		v.Evidence = d.Evidence
	}
	return v
}

// sayEvidence prints what was seen of a session when it was settled.
func sayEvidence(w io.Writer, e ralph.Evidence) {
	line := func(name, text string) { fmt.Fprintf(w, "%-9s %s\n", name, oneLine(text, 300)) }
	if place := e.Place(); place != "" {
		line("stood", fmt.Sprintf("%s, uncommitted files: %d", place, e.Uncommitted))
	}
	if e.Switched {
		line("began", "on "+cmp.Or(e.Began, "a detached HEAD"))
	}
	for _, c := range e.Lost {
		line("lost", c.String())
	}
	for _, a := range e.Aside {
		line("aside", fmt.Sprintf("commits on %s, which were not verified: %d", a.Branch, a.Commits))
	}
	for _, t := range e.Rewritten {
		line("rewritten", fmt.Sprintf("%s, while `%s` ran", t.File, t.Command))
	}
	for _, t := range e.Drives {
		line("changed", fmt.Sprintf("%s, which `%s` runs", t.File, t.Command))
	}
	for _, list := range []struct {
		name  string
		items []string
	}{{"stashed", e.Stashes}, {"taken", e.Taken}, {"secret", e.Secrets}, {"by check", e.Drift}} {
		for _, i := range list.items {
			line(list.name, i)
		}
	}
}

// total is the time of a session in seconds.
func total(stays []ralph.Stay) (s float64) {
	for _, stay := range stays {
		s += stay.Seconds
	}
	return s
}

// thousands is a number of tokens for people.
func thousands(n int64) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	case n >= 1000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return strconv.FormatInt(n, 10)
}

// sessionOf finds the session that is named, or else the newest, and where its
// files are.
func (a *app) sessionOf(cmd *cobra.Command, args []string) (s ralph.Session, dir string, err error) {
	err = a.with(cmd.Context(), func(p *project, db *store.DB) error {
		return db.View(cmd.Context(), func(tx *store.Tx) error {
			s, err = sessionNamed(tx, args)
			dir = filepath.Join(p.state, "sessions", s.ID)
			return err
		})
	})
	return s, dir, err
}

// sessionNamed is the session of the first argument, or else the newest.
func sessionNamed(tx *store.Tx, args []string) (ralph.Session, error) {
	if len(args) > 0 {
		return tx.Session(args[0])
	}
	list, err := tx.Sessions(store.SessionFilter{Limit: 1})
	if err != nil || len(list) == 0 {
		return ralph.Session{}, errors.Join(err, fmt.Errorf("there has been no session yet: %w", ralph.ErrNotFound))
	}
	return list[0], nil
}

func newSessionShow(a *app) *cobra.Command {
	var prompt, decision bool
	cmd := &cobra.Command{
		Use: "show [ID]", Short: "Show a session, the newest without ID: why it ended, what it changed, how it was checked",
		Example: "  ralph session show\n  ralph session show bcb16b43 --prompt", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, dir, err := a.sessionOf(cmd, args)
			if err != nil {
				return err
			}
			switch {
			case prompt:
				text, err := os.ReadFile(filepath.Join(dir, "prompt.md"))
				if err != nil {
					return err
				}
				_, err = a.out.Write(text)
				return err
			case decision:
				_, err := fmt.Fprintln(a.out, s.Decision)
				return err
			}
			return a.print(viewSession(s, ralph.At(time.Now())), func(w io.Writer) error { return saySession(w, s, dir) })
		},
	}
	cmd.Flags().BoolVar(&prompt, "prompt", false, "print the prompt that it got")
	cmd.Flags().BoolVar(&decision, "decision", false, "print what the rules made of it, as JSON")
	return cmd
}

func saySession(w io.Writer, s ralph.Session, dir string) error {
	cost := dollars(s.CostUSD)
	if !s.CostKnown {
		cost += " (estimated: the agent gave no total)"
	}
	whose := ""
	if s.Worker != "" {
		whose = ", by the worker " + oneLine(s.Worker, 100)
	}
	fmt.Fprintf(w, "session %s on TASK-%d, attempt %d%s\n", s.ID, s.TaskID, s.Attempt, whose)
	if s.CompletedAt.IsZero() {
		fmt.Fprintf(w, "%s, running since %s\n", s.State, s.StartedAt)
	} else {
		why := oneLine(s.Reason, 500)
		if !strings.HasPrefix(why, string(s.Ending)+": ") {
			why = string(s.Ending) + ": " + why
		}
		fmt.Fprintf(w, "%s, %s\n", s.State, why)
		fmt.Fprintf(w, "from %s to %s\n", s.StartedAt, s.CompletedAt)
		if s.Worker == "" { // what a worker used is not told
			t := s.Tokens
			fmt.Fprintf(w, "%s, %d turns, %s tokens (%s in, %s out, cache: %s read, %s written), model %s\n",
				cost, s.Turns, thousands(t.Sum()), thousands(t.Input), thousands(t.Output), thousands(t.CacheRead), thousands(t.CacheCreation), cmp.Or(s.Model, "unknown"))
		}
	}
	for _, stay := range s.Stays(ralph.At(time.Now())) {
		mark := ""
		if stay.Unexpected {
			mark += "  unusual order"
		}
		if stay.Long {
			mark += "  unusually long"
		}
		fmt.Fprintf(w, "%-13s %8s  %s%s\n", stay.Phase, seconds(stay.Seconds), stay.Source, mark)
	}
	if s.Outcome != "" && s.Outcome != ralph.OutcomeSuccess {
		fmt.Fprintf(w, "it stood at %s\n", s.Stood())
	}
	for _, c := range s.Verify {
		fmt.Fprintf(w, "checked  %s: exit %d in %.1f s %s\n", oneLine(c.Command, 100), c.Exit, c.Seconds, c.Error)
		if !c.Passed {
			fmt.Fprintln(w, text.Clean(c.Tail))
		}
	}
	sayEvidence(w, viewSession(s, ralph.At(time.Now())).Evidence)
	for _, f := range s.Files {
		fmt.Fprintf(w, "%-8s %s +%d -%d\n", f.Status, oneLine(f.Path, 200), f.Added, f.Removed)
	}
	for _, list := range []struct {
		name  string
		items []string
	}{{"commit", s.Commits}, {"refused", s.Denials}, {"killed", s.Leftovers}, {"unchanged", s.Unchanged}, {"gone", s.Gone}, {"!", s.Notes}} {
		for _, i := range list.items {
			fmt.Fprintf(w, "%-9s %s\n", list.name, oneLine(i, 200))
		}
	}
	if len(s.Gone) > 0 {
		fmt.Fprintf(w, "files that were not committed are gone; bring them back: ralph snapshot restore %d\n", s.SnapshotID)
	}
	if s.LastWords != "" {
		fmt.Fprintf(w, "last words: %s\n", oneLine(s.LastWords, 500))
	}
	if s.StderrTail != "" {
		fmt.Fprintf(w, "stderr: %s\n", text.Clean(s.StderrTail))
	}
	_, err := fmt.Fprintf(w, "transcript: %s\n", dir)
	return err
}

// narrow takes the flags --task and --limit.
func narrow(f *store.SessionFilter, task string) (err error) {
	if task != "" {
		if f.Task, err = ralph.ParseTaskID(task); err != nil {
			return err
		}
	}
	if f.Limit < 1 {
		return usage(&ralph.FieldError{Field: fmt.Sprintf("--limit %d", f.Limit), Problem: "must be at least 1"})
	}
	return nil
}

func newSessionStates(a *app) *cobra.Command {
	f := store.SessionFilter{}
	var task string
	cmd := &cobra.Command{
		Use: "states", Short: "Show the time that sessions spent in each state, and where failed ones stood",
		Example: "  ralph session states\n  ralph session states --task 12", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := narrow(&f, task); err != nil {
				return err
			}
			var list []ralph.Session
			if err := a.read(cmd.Context(), func(tx *store.Tx) (err error) {
				if err := tx.CheckTask(f.Task); err != nil {
					return err
				}
				list, err = tx.Sessions(f)
				return err
			}); err != nil {
				return err
			}
			rows := ralph.TimeInStates(list, ralph.At(time.Now()))
			return a.print(rows, func(w io.Writer) error {
				fmt.Fprintf(w, "%-13s %8s %9s %9s %6s %7s\n", "", "sessions", "in all", "median", "long", "failed")
				for _, r := range rows {
					if _, err := fmt.Fprintf(w, "%-13s %8d %9s %9s %6d %7d\n", r.State, r.Sessions, seconds(r.Seconds), seconds(r.Median), r.Long, r.Failed); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&task, "task", "", "only this task's sessions")
	cmd.Flags().IntVar(&f.Limit, "limit", 1000, "the latest so many sessions")
	return cmd
}

// seconds is a time for people.
func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	if d >= time.Minute {
		return d.Round(time.Second).String()
	}
	return d.Round(100 * time.Millisecond).String()
}
