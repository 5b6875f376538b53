package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/text"
	"ralph/store"
)

func newTask(a *app) *cobra.Command {
	return noun("task", "Add, list, show and change tasks",
		newTaskAdd(a), newTaskList(a), newTaskShow(a), newTaskEdit(a), newTaskMove(a),
		newTaskRetry(a), newTaskCancel(a), newTaskBlock(a), newTaskUnblock(a), newTaskGraph(a),
		newTaskClaim(a), newTaskComplete(a), newTaskRelease(a))
}

// taskFlags are what `task add` and `task edit` share.
func taskFlags(cmd *cobra.Command, t *ralph.Task) {
	f := cmd.Flags()
	f.StringVarP(&t.Description, "description", "d", "", "`TEXT`, @FILE, or - for standard input")
	f.StringVar(&t.Feature, "feature", "", "the feature it belongs to")
	f.StringVar(&t.Discipline, "discipline", "", "how it is to be worked on")
	f.IntVar(&t.Priority, "priority", ralph.DefaultPriority, "0 (highest) to 4 (lowest)")
	f.StringArrayVar(&t.Acceptance, "accept", nil, "an acceptance criterion (repeatable)")
	f.StringArrayVar(&t.Verify, "verify", nil, "a shell command that must pass (repeatable)")
	f.StringVar(&t.Model, "model", "", "the model to use")
}

// text reads a text argument: itself, @FILE, or - for standard input.
func (a *app) text(field, arg string) (string, error) {
	switch {
	case arg == "-":
		b, err := io.ReadAll(io.LimitReader(a.in, ralph.MaxText+1))
		return string(b), err
	case strings.HasPrefix(arg, "@"):
		f, err := os.Open(arg[1:])
		if err != nil {
			return "", usage(fmt.Errorf("%s: %w", field, err))
		}
		b, err := io.ReadAll(io.LimitReader(f, ralph.MaxText+1))
		return string(b), errors.Join(err, f.Close())
	}
	return arg, nil
}

func newTaskAdd(a *app) *cobra.Command {
	var t ralph.Task
	var depends []string
	cmd := &cobra.Command{
		Use:     "add TITLE",
		Short:   "Add a task",
		Example: "  ralph task add \"Reject empty URLs\" -d @spec.md --accept \"an empty URL is an error\" --verify \"go test ./...\"",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			t.Title = args[0]
			if err := ralph.CheckTitle("title", t.Title); err != nil {
				return err
			}
			if t.Description, err = a.text("description", t.Description); err != nil {
				return err
			}
			for _, d := range depends {
				id, err := ralph.ParseTaskID(d)
				if err != nil {
					return err
				}
				t.DependsOn = append(t.DependsOn, id)
			}
			var added ralph.Task
			err = a.add(cmd.Context(), func(tx *store.Tx) error {
				id, err := tx.AddTask(t, "human")
				if err != nil {
					return err
				}
				added, err = tx.Task(id)
				return err
			})
			if err != nil {
				return err
			}
			return a.print(added, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "TASK-%d added: %s\n", added.ID, oneLine(added.Title, 100))
				return err
			})
		},
	}
	taskFlags(cmd, &t)
	cmd.Flags().StringArrayVar(&depends, "depends-on", nil, "a task `ID` that must be completed first (repeatable)")
	return cmd
}

func newTaskList(a *app) *cobra.Command {
	var statuses []string
	var f store.TaskFilter
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List tasks in the order of the queue",
		Example: "  ralph task list --status pending --status failed",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, s := range statuses {
				if !slices.Contains(ralph.Statuses, ralph.Status(s)) {
					var accepted []string
					for _, k := range ralph.Statuses {
						accepted = append(accepted, string(k))
					}
					return fieldError("--status", s, accepted...)
				}
				f.Statuses = append(f.Statuses, ralph.Status(s))
			}
			var tasks []ralph.Task
			err := a.read(cmd.Context(), func(tx *store.Tx) (err error) {
				if f.Feature != "" {
					if _, err := tx.Feature(f.Feature); err != nil {
						return err
					}
				}
				tasks, err = tx.Tasks(f)
				return err
			})
			if err != nil {
				return err
			}
			return a.print(tasks, func(w io.Writer) error {
				for _, t := range tasks {
					if _, err := fmt.Fprintf(w, "TASK-%-5d %-11s P%d  %s\n", t.ID, t.Status, t.Priority, oneLine(t.Title, 100)); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().StringArrayVar(&statuses, "status", nil, "only tasks of this status (repeatable)")
	cmd.Flags().StringVar(&f.Feature, "feature", "", "only tasks of this feature")
	return cmd
}

// taskView is what `task show --json` prints.
type taskView struct {
	ralph.Task
	Description string          `json:"description"`
	Acceptance  []string        `json:"acceptance"`
	Verify      []string        `json:"verify"`
	Model       string          `json:"model"`
	ExternalID  string          `json:"external_id"`     // where it was imported from
	Source      string          `json:"external_source"` // the format, and what its file calls itself
	Comments    []ralph.Comment `json:"comments"`
	Sessions    []ralph.Session `json:"sessions"`
	Receipt     receipt         `json:"receipt"`
}

// receipt sums up what a task took.
type receipt struct {
	Attempts int           `json:"attempts"`
	Sessions int           `json:"sessions"`
	Seconds  float64       `json:"seconds"`
	CostUSD  float64       `json:"cost_usd"`
	Tokens   ralph.Tokens  `json:"tokens"`
	Verify   []ralph.Check `json:"verify"` // of the latest session
	Shared   bool          `json:"shared"` // others worked in its work tree meanwhile: what changed may be their doing
	Why      string        `json:"why"`
}

func newReceipt(t ralph.Task, sessions []ralph.Session) receipt {
	r := receipt{Attempts: t.Attempts, Sessions: len(sessions), Verify: []ralph.Check{}, Why: t.StatusReason}
	for _, s := range sessions {
		if !s.CompletedAt.IsZero() {
			r.Seconds += s.CompletedAt.Sub(s.StartedAt.Time).Seconds()
		}
		r.CostUSD += s.CostUSD
		r.Shared = r.Shared || s.Shared
		r.Tokens.Input += s.Tokens.Input
		r.Tokens.Output += s.Tokens.Output
		r.Tokens.CacheRead += s.Tokens.CacheRead
		r.Tokens.CacheCreation += s.Tokens.CacheCreation
	}
	if len(sessions) > 0 {
		r.Verify = sessions[0].Verify
	}
	return r
}

func newTaskShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		Short:   "Show a task with its sessions, comments and receipt",
		Example: "  ralph task show 12 --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := ralph.ParseTaskID(args[0])
			if err != nil {
				return err
			}
			var v taskView
			err = a.read(cmd.Context(), func(tx *store.Tx) (err error) { v, err = newTaskView(tx, id); return err })
			if err != nil {
				return err
			}
			return a.print(v, func(w io.Writer) error { return sayTask(w, v) })
		},
	}
}

func newTaskView(tx *store.Tx, id int64) (v taskView, err error) {
	if v.Task, err = tx.Task(id); err != nil {
		return v, err
	}
	if v.Comments, err = tx.Timeline(id, store.CommentFilter{}); err != nil {
		return v, err
	}
	v.Sessions, err = tx.Sessions(store.SessionFilter{Task: id})
	v.Description, v.Acceptance, v.Verify, v.Model = v.Task.Description, v.Task.Acceptance, v.Task.Verify, v.Task.Model
	v.ExternalID, v.Source = v.Task.ExternalID, v.Task.ExternalSource
	v.Receipt = newReceipt(v.Task, v.Sessions)
	return v, err
}

func sayTask(w io.Writer, v taskView) error {
	var b strings.Builder
	line := func(name, value string) {
		if value = strings.TrimSpace(printable(value)); value != "" {
			fmt.Fprintf(&b, "%-12s %s\n", name, strings.ReplaceAll(value, "\n", "\n             "))
		}
	}
	fmt.Fprintf(&b, "TASK-%d  %s\n", v.ID, oneLine(v.Title, ralph.MaxTitle))
	line("status", string(v.Status)+"  "+v.StatusReason)
	if v.ExternalID != "" {
		line("imported", oneLine(v.ExternalID+" of "+v.Source, 200))
	}
	line("priority", fmt.Sprint(v.Priority))
	line("feature", v.Feature)
	line("discipline", v.Discipline)
	for _, d := range v.DependsOn {
		line("depends on", fmt.Sprintf("TASK-%d", d))
	}
	for _, c := range v.Acceptance {
		line("accept", c)
	}
	for _, c := range v.Verify {
		line("verify", c)
	}
	line("receipt", fmt.Sprintf("%s, %s, %.0f s, %s", text.Count(v.Receipt.Attempts, "attempt"), text.Count(v.Receipt.Sessions, "session"), v.Receipt.Seconds, dollars(v.Receipt.CostUSD)))
	if v.Receipt.Shared {
		line("shared", "others worked in its work tree meanwhile: what changed may be their doing")
	}
	for _, c := range v.Receipt.Verify {
		said := "passed"
		switch {
		case !c.Passed && c.Error != "":
			said = c.Error
		case !c.Passed:
			said = fmt.Sprintf("exit %d", c.Exit)
		case len(c.Excused) > 0:
			said = fmt.Sprintf("exit %d, excused: %s failed before", c.Exit, oneLine(strings.Join(c.Excused, ", "), 200))
		}
		line("checked", fmt.Sprintf("%s: %s (%.1f s)", oneLine(c.Command, 80), said, c.Seconds))
		if len(c.Failures) > 0 {
			line("", "fails: "+oneLine(strings.Join(c.Failures, ", "), 200))
		}
		if !c.Passed {
			for l := range strings.Lines(text.Clean(c.Tail)) {
				fmt.Fprintf(&b, "             | %s\n", strings.TrimRight(l, "\n"))
			}
		}
	}
	if v.Description != "" {
		fmt.Fprintf(&b, "\n%s\n", printable(v.Description))
	}
	for i := len(v.Sessions) - 1; i >= 0; i-- {
		s := v.Sessions[i]
		fmt.Fprintf(&b, "\nsession %.8s  %s  %s\n", s.ID, s.Outcome, oneLine(s.Reason, 300))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// printable is a text with what would steer a terminal, hide, or turn the order of
// letters around made visible.
func printable(s string) string { return text.Visible(s) }

func newTaskEdit(a *app) *cobra.Command {
	var n ralph.Task
	var title string
	var clearAccept, clearVerify bool
	cmd := &cobra.Command{
		Use:   "edit ID",
		Short: "Change a task; what is not given stays",
		Long: `Change a task; what is not given stays. --accept and --verify add to what the task
has. To replace a list, clear it in the same command. What differs is printed.`,
		Example: "  ralph task edit 12 --priority 0 --accept \"also with IPv6\"\n" +
			"  ralph task edit 12 --clear-verify --verify \"go test ./ip\"",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := ralph.ParseTaskID(args[0])
			if err != nil {
				return err
			}
			if cmd.Flags().NFlag() == 0 {
				return usage(errors.New("nothing to change: give at least one of the flags of `ralph task edit --help`"))
			}
			if n.Description, err = a.text("description", n.Description); err != nil {
				return err
			}
			given := func(name string) bool { return cmd.Flags().Changed(name) }
			var edited editedTask
			err = a.write(cmd.Context(), func(tx *store.Tx) error {
				before, err := tx.Task(id)
				if err != nil {
					return err
				}
				t := before
				for _, f := range []struct {
					name string
					set  func()
				}{
					{"title", func() { t.Title = title }},
					{"description", func() { t.Description = n.Description }},
					{"feature", func() { t.Feature = n.Feature }},
					{"discipline", func() { t.Discipline = n.Discipline }},
					{"priority", func() { t.Priority = n.Priority }},
					{"model", func() { t.Model = n.Model }},
					{"clear-accept", func() { t.Acceptance = nil }},
					{"clear-verify", func() { t.Verify = nil }},
					{"accept", func() { t.Acceptance = added(t.Acceptance, n.Acceptance) }},
					{"verify", func() { t.Verify = added(t.Verify, n.Verify) }},
				} {
					if given(f.name) {
						f.set()
					}
				}
				edited = editedTask{t, ralph.Changes(before, t)}
				if len(edited.Changes) == 0 {
					return nil
				}
				if err := tx.UpdateTask(t); err != nil {
					return err
				}
				_, err = tx.StopForContract(before, t, false, a.person())
				return err
			})
			if err != nil {
				return err
			}
			return a.print(edited, func(w io.Writer) error { return sayEdited(w, edited) })
		},
	}
	taskFlags(cmd, &n)
	cmd.Flags().StringVar(&title, "title", "", "the title")
	cmd.Flags().BoolVar(&clearAccept, "clear-accept", false, "drop the acceptance criteria that it has; --accept then begins a new list")
	cmd.Flags().BoolVar(&clearVerify, "clear-verify", false, "drop the verification commands that it has; --verify then begins a new list")
	return cmd
}

// added is a list with what it does not have yet of more, in a memory of its own.
func added(list, more []string) []string {
	list = slices.Clone(list)
	for _, s := range more {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// editedTask is what `task edit --json` prints.
type editedTask struct {
	ralph.Task
	Changes map[string]ralph.Change `json:"changes"`
}

// sayEdited prints what an edit changed, a line each.
func sayEdited(w io.Writer, e editedTask) error {
	if len(e.Changes) == 0 {
		_, err := fmt.Fprintf(w, "TASK-%d is as it was: it has all of that already\n", e.ID)
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "TASK-%d changed\n", e.ID)
	line := func(sign, name, value string) {
		fmt.Fprintf(&b, "  %s %-11s %s\n", sign, name, strings.ReplaceAll(printable(value), "\n", "\n                "))
	}
	for _, name := range slices.Sorted(maps.Keys(e.Changes)) {
		c := e.Changes[name]
		was, list := c.Before.([]string)
		is, _ := c.After.([]string)
		if !list {
			was, is = shown(c.Before), shown(c.After)
		}
		for _, s := range was {
			if !slices.Contains(is, s) {
				line("-", name, s)
			}
		}
		for _, s := range is {
			if !slices.Contains(was, s) {
				line("+", name, s)
			}
		}
		if list && len(was) == len(is) && len(added(was, is)) == len(was) {
			fmt.Fprintf(&b, "  %s: the order changed\n", name)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// shown is a value as a list of what to show: nothing for an empty text.
func shown(value any) []string {
	if s := fmt.Sprint(value); s != "" {
		return []string{s}
	}
	return nil
}

// change is a command that changes one task and says so.
func (a *app) change(use, short, example string, change func(tx *store.Tx, t ralph.Task) (said string, err error)) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: example,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := ralph.ParseTaskID(args[0])
			if err != nil {
				return err
			}
			var said string
			var t ralph.Task
			err = a.write(cmd.Context(), func(tx *store.Tx) (err error) {
				if t, err = tx.Task(id); err != nil {
					return err
				}
				if said, err = change(tx, t); err != nil {
					return err
				}
				t, err = tx.Task(id)
				return err
			})
			if err != nil {
				return err
			}
			return a.print(t, func(w io.Writer) error { _, err := fmt.Fprintf(w, "TASK-%d %s\n", id, said); return err })
		},
	}
}

func newTaskMove(a *app) *cobra.Command {
	var before, after string
	cmd := a.change("move ID", "Put a task directly before or after another one", "  ralph task move 12 --before 7", func(tx *store.Tx, t ralph.Task) (string, error) {
		if (before == "") == (after == "") {
			return "", usage(errors.New("give one of --before and --after"))
		}
		other, err := ralph.ParseTaskID(before + after)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("moved next to TASK-%d", other), tx.MoveRank(t.ID, other, after != "")
	})
	cmd.Flags().StringVar(&before, "before", "", "the task `ID` to go before")
	cmd.Flags().StringVar(&after, "after", "", "the task `ID` to go after")
	return cmd
}

func newTaskRetry(a *app) *cobra.Command {
	return a.change("retry ID", "Put an ended task back into the queue, every counter at zero", "  ralph task retry 12", func(tx *store.Tx, t ralph.Task) (string, error) {
		return "is back in the queue", tx.Retry(t.ID, "retried by "+a.person())
	})
}

func newTaskCancel(a *app) *cobra.Command {
	cmd := a.change("cancel ID", "Call a task off", "  ralph task cancel 12", func(tx *store.Tx, t ralph.Task) (string, error) {
		stopping, err := tx.Cancel(t.ID, a.person())
		if stopping {
			return "is being stopped and then cancelled", err
		}
		return "is cancelled", err
	})
	cmd.PostRunE = a.endClaims
	return cmd
}

// endClaims ends what people have claimed and what was called off or amended by the
// command that has just run: nobody else watches over it.
func (a *app) endClaims(cmd *cobra.Command, _ []string) error {
	return a.with(cmd.Context(), func(p *project, db *store.DB) error { return a.settleClaims(cmd.Context(), p, db) })
}

// settleClaims ends the claims that are over and that nobody else watches over.
func (a *app) settleClaims(ctx context.Context, p *project, db *store.DB) error {
	var over []ralph.Session
	if err := db.View(ctx, func(tx *store.Tx) (err error) { over, err = tx.LapsedClaims(); return err }); err != nil || len(over) == 0 {
		return err
	}
	l, err := newLoop(ctx, a, p, db)
	if err != nil {
		return err
	}
	if err := l.Lapse(ctx); err != nil {
		return err
	}
	a.writeMirror(p, db)
	return nil
}

func newTaskBlock(a *app) *cobra.Command {
	var reason, on string
	cmd := a.change("block ID", "Hold a task back, for a reason or for another task", "  ralph task block 12 --reason \"waits for the contract\"\n  ralph task block 12 --on 7", func(tx *store.Tx, t ralph.Task) (string, error) {
		if (reason == "") == (on == "") {
			return "", usage(errors.New("give one of --reason and --on"))
		}
		if on != "" {
			other, err := ralph.ParseTaskID(on)
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("waits for TASK-%d", other), tx.AddDependency(t.ID, other, "human")
		}
		id, err := tx.AddComment(ralph.Comment{TaskID: t.ID, Author: a.person(), AuthorKind: ralph.ByHuman, Kind: ralph.Blocker, Body: reason, Rationale: reason})
		return fmt.Sprintf("is blocked; resolve it with `ralph resolve %d DECISION`", id), err
	})
	cmd.Flags().StringVar(&reason, "reason", "", "why it must wait")
	cmd.Flags().StringVar(&on, "on", "", "the task `ID` that it waits for")
	return cmd
}

func newTaskUnblock(a *app) *cobra.Command {
	var on string
	cmd := a.change("unblock ID", "Resolve a task's blockers and drop dependencies that will not complete", "  ralph task unblock 12\n  ralph task unblock 12 --on 7", func(tx *store.Tx, t ralph.Task) (string, error) {
		if on != "" {
			other, err := ralph.ParseTaskID(on)
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("no longer waits for TASK-%d", other), tx.DropDependency(t.ID, other)
		}
		return "is unblocked", tx.Unblock(t.ID, a.person())
	})
	cmd.Flags().StringVar(&on, "on", "", "only the dependency on this task `ID`")
	return cmd
}
