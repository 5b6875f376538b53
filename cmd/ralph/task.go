package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/project"
	"ralph/internal/show"
	"ralph/internal/text"
	"ralph/store"
)

func newTask(a *app) *cobra.Command {
	return noun("task", newTaskAdd(a), newTaskList(a), newTaskShow(a), newTaskEdit(a), newTaskMove(a),
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

func newTaskAdd(a *app) *cobra.Command {
	var t ralph.Task
	var depends []string
	cmd := newCommand("add TITLE", func(cmd *cobra.Command, args []string) (err error) {
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
		begin := func(tx *store.Tx) (int64, error) { return tx.AddTask(t, "human") }
		return showOf(cmd.Context(), a, add, after(begin, (*store.Tx).Task), sayAdded)
	})
	taskFlags(cmd, &t)
	cmd.Flags().StringArrayVar(&depends, "depends-on", nil, "a task `ID` that must be completed first (repeatable)")
	return cmd
}

func sayAdded(w io.Writer, t ralph.Task) {
	fmt.Fprintf(w, "TASK-%d added: %s\n", t.ID, text.Line(t.Title, 100))
}

func newTaskList(a *app) *cobra.Command {
	var statuses []string
	var f store.TaskFilter
	cmd := newCommand("list", func(cmd *cobra.Command, _ []string) error {
		for _, s := range statuses {
			if err := oneOf("--status", ralph.Status(s), ralph.Statuses...); err != nil {
				return err
			}
			f.Statuses = append(f.Statuses, ralph.Status(s))
		}
		return showList(cmd.Context(), a, func(tx *store.Tx) ([]ralph.Task, error) {
			if f.Feature != "" {
				if _, err := tx.Feature(f.Feature); err != nil {
					return nil, err
				}
			}
			return tx.Tasks(f)
		}, func(w io.Writer, t ralph.Task) {
			fmt.Fprintf(w, "TASK-%-5d %-11s P%d  %s\n", t.ID, t.Status, t.Priority, text.Line(t.Title, 100))
		})
	})
	cmd.Flags().StringArrayVar(&statuses, "status", nil, "only tasks of this status (repeatable)")
	cmd.Flags().StringVar(&f.Feature, "feature", "", "only tasks of this feature")
	return cmd
}

func newTaskShow(a *app) *cobra.Command {
	return newCommand("show ID", onTask(func(ctx context.Context, id int64) error {
		return showOf(ctx, a, read, func(tx *store.Tx) (show.TaskView, error) { return show.ReadTask(tx, id) }, show.Task)
	}))
}

func newTaskEdit(a *app) *cobra.Command {
	var n ralph.Task
	var title string
	var clearAccept, clearVerify bool
	cmd := newCommand("edit ID", func(cmd *cobra.Command, args []string) error {
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
		return showOf(cmd.Context(), a, alter, func(tx *store.Tx) (e editedTask, err error) {
			before, err := tx.Task(id)
			if err != nil {
				return e, err
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
				if cmd.Flags().Changed(f.name) {
					f.set()
				}
			}
			e = editedTask{t, ralph.Changes(before, t)}
			if len(e.Changes) == 0 {
				return e, nil
			}
			if err := tx.UpdateTask(t); err != nil {
				return e, err
			}
			_, err = tx.StopForContract(before, t, false, a.person())
			return e, err
		}, sayEdited)
	})
	taskFlags(cmd, &n)
	cmd.Flags().StringVar(&title, "title", "", "the title")
	cmd.Flags().BoolVar(&clearAccept, "clear-accept", false,
		"drop the acceptance criteria that it has; --accept then begins a new list")
	cmd.Flags().BoolVar(&clearVerify, "clear-verify", false,
		"drop the verification commands that it has; --verify then begins a new list")
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
func sayEdited(w io.Writer, e editedTask) {
	if len(e.Changes) == 0 {
		fmt.Fprintf(w, "TASK-%d is as it was: it has all of that already\n", e.ID)
		return
	}
	fmt.Fprintf(w, "TASK-%d changed\n", e.ID)
	line := func(sign, name, value string) {
		fmt.Fprintf(w, "  %s %-11s %s\n", sign, name, strings.ReplaceAll(text.Visible(value), "\n", "\n                "))
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
			fmt.Fprintf(w, "  %s: the order changed\n", name)
		}
	}
}

// shown is a value as a list of what to show: nothing for an empty text.
func shown(value any) []string {
	if s := fmt.Sprint(value); s != "" {
		return []string{s}
	}
	return nil
}

// change is a command that changes one task and says so.
func (a *app) change(use string, change func(tx *store.Tx, t ralph.Task) (string, error)) *cobra.Command {
	return newCommand(use, onTask(func(ctx context.Context, id int64) error {
		var said string
		return showOf(ctx, a, alter, after(func(tx *store.Tx) (int64, error) {
			t, err := tx.Task(id)
			if err == nil {
				said, err = change(tx, t)
			}
			return id, err
		}, (*store.Tx).Task), func(w io.Writer, _ ralph.Task) { fmt.Fprintf(w, "TASK-%d %s\n", id, said) })
	}))
}

func newTaskMove(a *app) *cobra.Command {
	var before, after string
	cmd := a.change("move ID", func(tx *store.Tx, t ralph.Task) (string, error) {
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
	return a.change("retry ID", func(tx *store.Tx, t ralph.Task) (string, error) {
		return "is back in the queue", tx.Retry(t.ID, "retried by "+a.person())
	})
}

func newTaskCancel(a *app) *cobra.Command {
	cmd := a.change("cancel ID", func(tx *store.Tx, t ralph.Task) (string, error) {
		stopping, err := tx.Cancel(t.ID, a.person())
		if stopping {
			return "is being stopped and then cancelled", err
		}
		return "is cancelled", err
	})
	cmd.PostRunE = a.endClaims
	return cmd
}

// endClaims is settleClaims after the command that has just run.
func (a *app) endClaims(cmd *cobra.Command, _ []string) error {
	return a.with(cmd.Context(), func(p *project.Project, db *store.DB) error {
		return a.settleClaims(cmd.Context(), p, db)
	})
}

func newTaskBlock(a *app) *cobra.Command {
	var reason, on string
	cmd := a.change("block ID", func(tx *store.Tx, t ralph.Task) (string, error) {
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
		id, err := tx.AddComment(ralph.Comment{
			TaskID: t.ID, Author: a.person(), AuthorKind: ralph.ByHuman, Kind: ralph.Blocker, Body: reason, Rationale: reason,
		})
		return fmt.Sprintf("is blocked; resolve it with `ralph resolve %d DECISION`", id), err
	})
	cmd.Flags().StringVar(&reason, "reason", "", "why it must wait")
	cmd.Flags().StringVar(&on, "on", "", "the task `ID` that it waits for")
	return cmd
}

func newTaskUnblock(a *app) *cobra.Command {
	var on string
	cmd := a.change("unblock ID", func(tx *store.Tx, t ralph.Task) (string, error) {
		if on == "" {
			return "is unblocked", tx.Unblock(t.ID, a.person())
		}
		other, err := ralph.ParseTaskID(on)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("no longer waits for TASK-%d", other), tx.DropDependency(t.ID, other)
	})
	cmd.Flags().StringVar(&on, "on", "", "only the dependency on this task `ID`")
	return cmd
}
