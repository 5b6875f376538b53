package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/project"
	"ralph/internal/text"
	"ralph/loop/order"
	"ralph/store"
)

func newLearning(a *app) *cobra.Command {
	return noun("learning",
		newLearningList(a), newLearningAdd(a), newLearningEdit(a), newLearningForget(a), newLearningMerge(a))
}

func newLearningList(a *app) *cobra.Command {
	var f store.LearningFilter
	cmd := newCommand("list [ID]", func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return onNumber("learning", a.showLearning)(cmd, args)
		}
		err := oneOf("--scope", f.Scope, "", ralph.ScopeProject, ralph.ScopeFeature, ralph.ScopeTask)
		if err != nil {
			return err
		}
		var list []ralph.Learning
		root := ""
		err = a.with(cmd.Context(), func(p *project.Project, db *store.DB) error {
			root = p.Root
			return db.View(cmd.Context(), func(tx *store.Tx) (err error) { list, err = tx.Learnings(f); return err })
		})
		if err != nil {
			return err
		}
		var newest ralph.Time
		for _, l := range list {
			if l.LastSeen.After(newest.Time) {
				newest = l.LastSeen
			}
		}
		return a.print(list, func(w io.Writer) {
			for _, l := range list {
				sayLearning(w, l)
				if why := l.Stale(newest, order.Gone(root, l)); why != "" {
					fmt.Fprintf(w, "      sinks: %s\n", text.Line(why, 200))
				}
			}
		})
	})
	cmd.Flags().StringVar(&f.Scope, "scope", "", "only of `SCOPE`: project, feature or task")
	cmd.Flags().StringVar(&f.Feature, "feature", "", "only this `FEATURE`'s")
	cmd.Flags().BoolVar(&f.Forgotten, "forgotten", false, "include forgotten ones")
	return cmd
}

func sayLearning(w io.Writer, l ralph.Learning) {
	where := l.Scope
	switch l.Scope {
	case ralph.ScopeFeature:
		where += " " + l.Feature
	case ralph.ScopeTask:
		where += fmt.Sprintf(" TASK-%d", l.TaskID)
	}
	marks := ""
	if l.Pinned {
		marks += ", pinned"
	}
	if l.Status == ralph.Forgotten {
		marks += ", forgotten"
	}
	fmt.Fprintf(w, "%4d  %s (%s, %s, seen %d×%s)\n",
		l.ID, text.Line(l.Text, 300), l.Kind, text.Line(where, 60), l.TimesSeen, marks)
}

// showLearning prints one with the signals that reported it.
func (a *app) showLearning(ctx context.Context, id int64) error {
	var from []ralph.Comment
	return showOf(ctx, a, read, func(tx *store.Tx) (ralph.Learning, error) {
		l, err := tx.Learning(id)
		for _, c := range l.Comments {
			comment, err := tx.Comment(c)
			if err != nil {
				return l, err
			}
			from = append(from, comment)
		}
		return l, err
	}, func(w io.Writer, l ralph.Learning) {
		sayLearning(w, l)
		if l.Rationale != "" {
			fmt.Fprintf(w, "      because: %s\n", text.Line(l.Rationale, 500))
		}
		for _, c := range from {
			fmt.Fprintf(w, "      comment %d on TASK-%d, session %.8s, %s\n",
				c.ID, c.TaskID, c.SessionID, text.When(c.Created.Time, time.Now()))
		}
	})
}

func newLearningAdd(a *app) *cobra.Command {
	var l ralph.Learning
	cmd := newCommand("add TEXT", func(cmd *cobra.Command, args []string) (err error) {
		if l.Text, err = a.text("text", args[0]); err != nil {
			return err
		}
		l.Author = a.person()
		if l.Feature != "" {
			l.Scope = ralph.ScopeFeature
		}
		teach := func(tx *store.Tx) (int64, error) { return tx.Teach(l) }
		return showOf(cmd.Context(), a, add, after(teach, (*store.Tx).Learning), sayLearning)
	})
	cmd.Flags().StringVar(&l.Kind, "kind", "discovery", "`KIND`: discovery, decision or convention")
	cmd.Flags().StringVar(&l.Scope, "scope", ralph.ScopeProject, "`SCOPE`: project or feature")
	cmd.Flags().StringVar(&l.Feature, "feature", "", "the `FEATURE` that it is for; makes the scope feature")
	cmd.Flags().StringVar(&l.Rationale, "rationale", "", "why it is so, a `TEXT`")
	return cmd
}

// changeLearning runs a change and prints the changed learning.
func (a *app) changeLearning(ctx context.Context, change func(tx *store.Tx) (int64, error)) error {
	return showOf(ctx, a, alter, after(change, (*store.Tx).Learning), sayLearning)
}

func newLearningEdit(a *app) *cobra.Command {
	var text, rationale string
	var pin, unpin bool
	var cmd *cobra.Command
	cmd = newCommand("edit ID", onNumber("learning", func(ctx context.Context, id int64) error {
		if err := changesSomething(cmd); err != nil {
			return err
		}
		return a.changeLearning(ctx, func(tx *store.Tx) (int64, error) {
			l, err := tx.Learning(id)
			if err != nil {
				return 0, err
			}
			l.Text, l.Rationale, l.Pinned = cmp.Or(text, l.Text), cmp.Or(rationale, l.Rationale), l.Pinned && !unpin || pin
			return id, tx.ChangeLearning(l)
		})
	}))
	cmd.Flags().StringVar(&text, "text", "", "the learning, a `TEXT`")
	cmd.Flags().StringVar(&rationale, "rationale", "", "why it is so, a `TEXT`")
	cmd.Flags().BoolVar(&pin, "pin", false, "show it before all others of its scope")
	cmd.Flags().BoolVar(&unpin, "unpin", false, "show it where it fits again")
	return cmd
}

func newLearningForget(a *app) *cobra.Command {
	undo := false
	cmd := newCommand("forget ID", onNumber("learning", func(ctx context.Context, id int64) error {
		return a.changeLearning(ctx, func(tx *store.Tx) (int64, error) {
			l, err := tx.Learning(id)
			if err != nil {
				return 0, err
			}
			l.Status = ralph.Forgotten
			if undo {
				l.Status = "active"
			}
			return id, tx.ChangeLearning(l)
		})
	}))
	cmd.Flags().BoolVar(&undo, "undo", false, "remember it again")
	return cmd
}

func newLearningMerge(a *app) *cobra.Command {
	return newCommand("merge ID INTO", func(cmd *cobra.Command, args []string) error {
		from, err := number("learning", args[0])
		if err != nil {
			return err
		}
		into, err := number("learning", args[1])
		if err != nil {
			return err
		}
		return a.changeLearning(cmd.Context(), func(tx *store.Tx) (int64, error) {
			return into, tx.MergeLearnings(from, into)
		})
	})
}
