package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ralph"
	"ralph/internal/project"
	"ralph/internal/show"
	"ralph/internal/term"
	"ralph/internal/text"
	"ralph/store"
)

func newTask(a *app) *cobra.Command {
	return noun("task", newTaskAdd(a), newTaskList(a), newTaskShow(a), newTaskEdit(a), newTaskMove(a),
		newRetry(a), newTaskCancel(a), newTaskBlock(a), newTaskUnblock(a), newTaskSplit(a), newTaskGraph(a))
}

// taskFlags adds the flags shared by `task add` and `task edit`.
func taskFlags(cmd *cobra.Command, t *ralph.Task) {
	f := cmd.Flags()
	f.StringVarP(&t.Description, "description", "d", "", "`TEXT`, @FILE, or - for standard input")
	f.StringVar(&t.Feature, "feature", "", "the feature it belongs to, by its `NAME`")
	f.StringVar(&t.Discipline, "discipline", "", "the discipline, by its `NAME`")
	f.IntVar(&t.Priority, "priority", ralph.DefaultPriority, "`N` from 0 (highest) to 4 (lowest)")
	f.StringArrayVar(&t.Acceptance, "accept", nil, "an acceptance `CRITERION` (repeatable)")
	f.StringArrayVar(&t.Verify, "verify", nil, "a shell `COMMAND` that must pass (repeatable)")
	f.StringArrayVar(&t.Files, "files", nil,
		"a `GLOB` of files that it may touch (repeatable): tasks whose files overlap are not worked on at the same time")
	f.StringArrayVar(&t.Allow, "allow", nil,
		"`WHAT` it may change without your approval: tests, or a pattern of files (repeatable)")
	f.StringVar(&t.Model, "model", "", "the `MODEL` to use")
	f.StringVar(&t.Agent, "agent", "", "the agent to use, by its `NAME` in ralph.yaml")
	f.StringVar(&t.Review, "review", "",
		"the agent that reviews its changes, by its `NAME` in ralph.yaml; none for nobody (docs/review.md)")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		for _, file := range slices.Concat(t.Files, t.Allow) {
			if file != "" && !filepath.IsLocal(file) {
				return usage(fmt.Errorf("file %q is outside of the project: write src/**", file))
			}
		}
		return nil
	}
}

func newTaskAdd(a *app) *cobra.Command {
	var t ralph.Task
	var depends []string
	var hidden ralph.Hidden
	cmd := newCommand("add TITLE", func(cmd *cobra.Command, args []string) (err error) {
		titles := args
		if args[0] == "-" {
			if t.Description == "-" {
				return usage(errors.New("standard input is for titles or for the description: give one of them otherwise"))
			}
			if titles, err = a.lines("titles"); err != nil {
				return err
			}
		}
		for _, title := range titles {
			if err := ralph.CheckTitle("title", title); err != nil {
				return err
			}
		}
		if (hidden.Command == "") != (hidden.Title == "") {
			return usage(errors.New("--hidden-verify and --title belong together: the agent is told the title alone"))
		}
		if hidden.Command != "" {
			t.Hidden = []ralph.Hidden{hidden}
		}
		if t.Description, err = a.text("description", t.Description); err != nil {
			return err
		}
		if err := a.checkAgents(cmd.Context(), t); err != nil {
			return err
		}
		for _, d := range depends {
			id, err := ralph.ParseTaskID(d)
			if err != nil {
				return err
			}
			t.DependsOn = append(t.DependsOn, id)
		}
		added, err := add(cmd.Context(), a, func(tx *store.Tx) (list []ralph.Task, err error) {
			for _, t.Title = range titles {
				id, err := tx.AddTask(t, "human")
				if err != nil {
					return nil, err
				}
				task, err := tx.Task(id)
				if err != nil {
					return nil, err
				}
				list = append(list, task)
			}
			return list, nil
		})
		if err != nil {
			return err
		}
		var shown any = added
		if args[0] != "-" {
			shown = added[0]
		}
		return a.print(shown, func(w io.Writer) { each(w, added, sayAdded) })
	})
	taskFlags(cmd, &t)
	cmd.Flags().StringVar(&hidden.Command, "hidden-verify", "",
		"a shell `COMMAND` that must pass and that no session sees")
	cmd.Flags().StringVar(&hidden.Title, "title", "",
		"with --hidden-verify: its subject, in `WORDS` that an agent may read")
	cmd.Flags().StringArrayVar(&depends, "depends-on", nil, "a task `ID` that must be completed first (repeatable)")
	return cmd
}

func sayAdded(w io.Writer, t ralph.Task) {
	fmt.Fprintf(w, "TASK-%d added: %s\n", t.ID, text.Line(t.Title, 100))
}

func newTaskList(a *app) *cobra.Command {
	var f store.TaskFilter
	var every bool
	cmd := newCommand("list", func(cmd *cobra.Command, _ []string) error {
		for i, word := range f.Words {
			f.Words[i] = strings.ReplaceAll(word, "_", " ")
			if err := oneOf("--status", f.Words[i], ralph.Words...); err != nil {
				return err
			}
		}
		if f.Limit < 0 {
			return usage(&ralph.FieldError{Field: "--limit", Problem: "must be 0, for all, or more"})
		}
		if a.json && !cmd.Flags().Changed("limit") {
			f.Limit = 0 // programs get the whole list
		}
		open := !every && len(f.Words) == 0
		if open {
			f.Statuses = slices.DeleteFunc(slices.Clone(ralph.Statuses), closed)
		}
		l := show.TaskList{Screen: a.screen()}
		return showOf(cmd.Context(), a, read, func(tx *store.Tx) ([]ralph.Task, error) {
			if f.Feature != "" {
				if _, err := tx.Feature(f.Feature); err != nil {
					return nil, err
				}
			}
			tasks, err := tx.Tasks(f)
			if err == nil && f.Limit > 0 && len(tasks) == f.Limit {
				l.More, err = tx.CountTasks(f)
				l.More -= len(tasks)
			}
			if err == nil && open {
				f.Statuses = slices.DeleteFunc(slices.Clone(ralph.Statuses), func(s ralph.Status) bool { return !closed(s) })
				l.Closed, err = tx.CountTasks(f)
			}
			return tasks, err
		}, func(w io.Writer, tasks []ralph.Task) { l.Write(w, tasks) })
	})
	cmd.Flags().BoolVar(&every, "all", false, "merged and cancelled tasks too")
	cmd.Flags().IntVar(&f.Limit, "limit", 100, "show `N` tasks at most; 0 for all, as with --json")
	cmd.Flags().StringArrayVar(&f.Words, "status", nil,
		"only tasks of this `STATUS` (repeatable): "+strings.Join(ralph.Words, ", "))
	cmd.Flags().StringVar(&f.Feature, "feature", "", "only tasks of this `FEATURE`")
	return cmd
}

// closed reports whether a task needs no attention any more; a failed task needs a person.
func closed(s ralph.Status) bool { return s.Ended() && s != ralph.Failed }

func newTaskShow(a *app) *cobra.Command {
	return newCommand("show ID...", func(cmd *cobra.Command, args []string) error {
		ids, err := parseTasks(args)
		if err != nil {
			return err
		}
		var list []show.TaskView
		err = a.with(cmd.Context(), func(p *project.Project, db *store.DB) error {
			for _, id := range ids {
				v, err := store.Read(cmd.Context(), db, func(tx *store.Tx) (v show.TaskView, err error) {
					if v, err = show.ReadTask(tx, id); err == nil && a.json {
						v.Comments, err = tx.Timeline(id, store.CommentFilter{})
					}
					return v, err
				})
				if err != nil {
					return err
				}
				for _, r := range reverted(cmd.Context(), p, db, id) {
					v.Reverted = r.String()
				}
				list = append(list, v)
			}
			return nil
		})
		if err != nil {
			return err
		}
		return a.print(oneOrAll(list), func(w io.Writer) {
			for i, v := range list {
				if i > 0 {
					fmt.Fprintln(w)
				}
				show.Task(w, a.screen(), v)
			}
		})
	})
}

// oneOrAll returns the only item of a list, or the list, for JSON.
func oneOrAll[T any](list []T) any {
	if len(list) == 1 {
		return list[0]
	}
	return list
}

// changesSomething returns an error if an edit was given no flag of its own.
func changesSomething(cmd *cobra.Command) error {
	given := false
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) { given = given || f.Changed })
	if !given {
		return usage(fmt.Errorf("nothing to change: give at least one of the flags of `%s --help`", cmd.CommandPath()))
	}
	return nil
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
		if err := changesSomething(cmd); err != nil {
			return err
		}
		if n.Description, err = a.text("description", n.Description); err != nil {
			return err
		}
		if err := a.checkAgents(cmd.Context(), n); err != nil {
			return err
		}
		edit := func(tx *store.Tx) (before, t ralph.Task, err error) {
			before, err = tx.Task(id)
			t = before
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
				{"agent", func() { t.Agent = n.Agent }},
				{"review", func() { t.Review = n.Review }},
				{"files", func() { t.Files = n.Files }},
				{"allow", func() { t.Allow = n.Allow }},
				{"clear-accept", func() { t.Acceptance = nil }},
				{"clear-verify", func() { t.Verify = nil }},
				{"accept", func() { t.Acceptance = added(t.Acceptance, n.Acceptance) }},
				{"verify", func() { t.Verify = added(t.Verify, n.Verify) }},
			} {
				if cmd.Flags().Changed(f.name) {
					f.set()
				}
			}
			return before, t, err
		}
		if yes, err := a.mayStop(cmd.Context(), edit); err != nil || !yes {
			return err
		}
		return showOf(cmd.Context(), a, alter, func(tx *store.Tx) (e editedTask, err error) {
			before, t, err := edit(tx)
			if err != nil {
				return e, err
			}
			e = editedTask{Task: t, Changes: ralph.Changes(before, t)}
			if len(e.Changes) == 0 {
				return e, nil
			}
			if err := tx.UpdateTask(t); err != nil {
				return e, err
			}
			e.Stopped, err = tx.StopForContract(before, t, false, a.person())
			return e, err
		}, sayEdited)
	})
	taskFlags(cmd, &n)
	cmd.Flags().StringVar(&title, "title", "", "the `TITLE`")
	cmd.Flags().BoolVar(&clearAccept, "clear-accept", false,
		"drop the acceptance criteria; --accept then starts a new list")
	cmd.Flags().BoolVar(&clearVerify, "clear-verify", false,
		"drop the verification commands; --verify then starts a new list")
	return cmd
}

// mayStop asks on a terminal whether an edit may stop the task's session.
func (a *app) mayStop(ctx context.Context, edit func(tx *store.Tx) (before, t ralph.Task, err error)) (bool, error) {
	if a.json || !term.Is(a.in) || !term.Is(a.out) {
		return true, nil
	}
	session, err := read(ctx, a, func(tx *store.Tx) (string, error) {
		before, t, err := edit(tx)
		if err != nil {
			return "", err
		}
		return tx.EndedBy(before, t, false)
	})
	if err != nil || session == "" {
		return err == nil, err
	}
	fmt.Fprintf(a.out, "Session %.8s works on it, and is stopped by this. Go on? [y/N] ", session)
	answer, err := bufio.NewReader(a.in).ReadString('\n')
	yes := err == nil && strings.HasPrefix(strings.ToLower(strings.TrimSpace(answer)), "y")
	return yes, nil //nolint:nilerr // no answer means no
}

// added returns a copy of list with the missing elements of more.
func added(list, more []string) []string {
	list = slices.Clone(list)
	for _, s := range more {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// editedTask is the output of `task edit --json`.
type editedTask struct {
	ralph.Task
	Changes map[string]ralph.Edit `json:"changes"`
	Stopped bool                  `json:"stopped"` // the task's session
}

// sayEdited prints the effects of an edit, one line each.
func sayEdited(w io.Writer, e editedTask) {
	if len(e.Changes) == 0 {
		fmt.Fprintf(w, "TASK-%d is as it was: it has all of that already\n", e.ID)
		return
	}
	stopped := ""
	if e.Stopped {
		stopped = "; the session that works on it is stopped, and the next one begins with the new terms"
	}
	fmt.Fprintf(w, "TASK-%d changed%s\n", e.ID, stopped)
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

// shown returns a value as a list to print: nothing for an empty text.
func shown(value any) []string {
	if s := fmt.Sprint(value); s != "" {
		return []string{s}
	}
	return nil
}

// change makes a command that changes tasks and prints the result.
func (a *app) change(use string, change func(tx *store.Tx, t ralph.Task) (string, error)) *cobra.Command {
	return newCommand(use, func(cmd *cobra.Command, args []string) error {
		ids, err := parseTasks(args)
		if err != nil {
			return err
		}
		return a.changeTasks(cmd.Context(), ids, change)
	})
}

// changeTasks changes tasks in one transaction, all or none, and prints the result of each.
func (a *app) changeTasks(
	ctx context.Context, ids []int64, change func(tx *store.Tx, t ralph.Task) (said string, err error),
) error {
	var said []string
	list, err := alter(ctx, a, func(tx *store.Tx) (list []ralph.Task, err error) {
		for _, id := range ids {
			t, err := tx.Task(id)
			if err != nil {
				return nil, err
			}
			line, err := change(tx, t)
			if err != nil {
				return nil, err
			}
			said = append(said, fmt.Sprintf("TASK-%d %s", id, line))
		}
		for _, id := range ids {
			t, err := tx.Task(id)
			if err != nil {
				return nil, err
			}
			list = append(list, t)
		}
		return list, nil
	})
	if err != nil {
		return err
	}
	return a.print(oneOrAll(list), func(w io.Writer) { fmt.Fprintln(w, strings.Join(said, "\n")) })
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
		where := "before"
		if after != "" {
			where = "after"
		}
		said := fmt.Sprintf("is now %s TASK-%d", where, other)
		if err := tx.MoveRank(t.ID, other, after != ""); err != nil {
			return "", err
		}
		now, err := tx.Task(t.ID)
		if now.Priority != t.Priority {
			said += fmt.Sprintf(" (P%d → P%d)", t.Priority, now.Priority)
		}
		return said, err
	})
	cmd.Flags().StringVar(&before, "before", "", "the task `ID` to go before")
	cmd.Flags().StringVar(&after, "after", "", "the task `ID` to go after")
	return cmd
}

func newRetry(a *app) *cobra.Command {
	var r retry
	cmd := newCommand("retry ID... [HOW]", func(cmd *cobra.Command, args []string) error {
		if last := len(args) - 1; last > 0 {
			if _, err := ralph.ParseTaskID(args[last]); err != nil {
				r.how, args = args[last], args[:last]
			}
		}
		for i := 1; i < len(args); i++ {
			if _, err := ralph.ParseTaskID(args[i]); err != nil && !strings.ContainsAny(args[i], "0123456789") {
				how := strings.Join(append(slices.Clone(args[i:]), r.how), " ")
				return usage(fmt.Errorf("several words go in quotes: ralph retry %s %q", strings.Join(args[:i], " "), how))
			}
		}
		ids, err := parseTasks(args)
		if err != nil {
			return err
		}
		if r.how, err = a.text("HOW", r.how); err != nil {
			return err
		}
		if err := errors.Join(r.check(), ralph.CheckText("HOW", r.how, false)); err != nil {
			return err
		}
		if err := a.changeTasks(cmd.Context(), ids, func(tx *store.Tx, t ralph.Task) (string, error) {
			return r.do(tx, t, a.person())
		}); err != nil || !r.asIs {
			return err
		}
		for _, id := range ids {
			if err := a.mergeQueued(cmd.Context(), id); err != nil {
				return err
			}
		}
		return nil
	})
	cmd.Flags().BoolVar(&r.fresh, "fresh", false,
		"start without the work of earlier sessions, even if it waits for its merge")
	cmd.Flags().BoolVar(&r.asIs, "as-is", false, "merge the change of its last session again, as it is")
	cmd.Flags().BoolVar(&r.again, "again", false, "do a completed task once more; its merged work stays")
	return cmd
}

// A retry has the options of a task's next try.
type retry struct {
	how                string // for its next session; may be ""
	fresh, asIs, again bool
}

// check refuses flags that cannot be combined.
func (r retry) check() error {
	switch {
	case r.fresh && r.asIs:
		return usage(errors.New("give one of --fresh and --as-is"))
	case r.asIs && (r.how != "" || r.again):
		return usage(errors.New("--as-is merges the change without a session: leave HOW and --again out"))
	}
	return nil
}

// do retries a task, and describes the result.
func (r retry) do(tx *store.Tx, t ralph.Task, person string) (string, error) {
	id := t.ID
	if r.how != "" {
		if _, err := tx.AddComment(ralph.Comment{
			TaskID: id, Author: person, AuthorKind: ralph.ByHuman, Kind: ralph.Note, Body: r.how,
		}); err != nil {
			return "", err
		}
	}
	switch {
	case r.asIs:
		return "is in the merge queue again, with its change as it is", tx.RetryChange(id, person)
	case r.fresh && t.Status == ralph.Merging:
		return "is out of the merge queue; its next session begins without the work so far", tx.DropChange(id, person)
	}
	if r.fresh {
		if err := tx.ForgetChange(id, "begun anew by "+person); err != nil {
			return "", err
		}
		if t.Status == ralph.Pending {
			return "begins without the work of earlier sessions", nil
		}
	}
	if r.again {
		return "is back in the queue", tx.RetryCompleted(id, "retried by "+person)
	}
	return "is back in the queue", tx.Retry(id, "retried by "+person)
}

func newTaskCancel(a *app) *cobra.Command {
	cmd := a.change("cancel ID...", func(tx *store.Tx, t ralph.Task) (string, error) {
		stopping, err := tx.Cancel(t.ID, a.person())
		if stopping {
			return "is being stopped and then cancelled", err
		}
		return "is cancelled", err
	})
	cmd.PostRunE = a.endClaims
	return cmd
}

// endClaims is decideClaims for use after a command.
func (a *app) endClaims(cmd *cobra.Command, _ []string) error {
	return a.with(cmd.Context(), func(p *project.Project, db *store.DB) error {
		return a.decideClaims(cmd.Context(), p, db)
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
		return fmt.Sprintf("is blocked; resolve it with `ralph resolve C%d \"DECISION\"`", id), err
	})
	cmd.Flags().StringVar(&reason, "reason", "", "why it must wait, a `TEXT`")
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
