package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/loop"
	"ralph/store"
)

func newLearning(a *app) *cobra.Command {
	cmd := noun("learning", "See and mend what is known about the project", newLearningList(a), newLearningShow(a), newLearningAdd(a), newLearningEdit(a),
		newLearningForget(a), newLearningMerge(a), newLearningPin(a), newLearningReconcile(a))
	cmd.Long = `What sessions learned and people added goes into the prompts of the tasks that it
concerns: pinned ones first, then what fits the task by its words, then what was
seen often and lately.`
	return cmd
}

func newLearningList(a *app) *cobra.Command {
	var f store.LearningFilter
	cmd := &cobra.Command{
		Use: "list", Short: "List what is known", Example: "  ralph learning list --scope project", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch f.Scope {
			case "", ralph.ScopeProject, ralph.ScopeFeature, ralph.ScopeTask:
			default:
				return fieldError("--scope", f.Scope, ralph.ScopeProject, ralph.ScopeFeature, ralph.ScopeTask)
			}
			var list []ralph.Learning
			root := ""
			if err := a.with(cmd.Context(), func(p *project, db *store.DB) error {
				root = p.root
				return db.View(cmd.Context(), func(tx *store.Tx) (err error) { list, err = tx.Learnings(f); return err })
			}); err != nil {
				return err
			}
			var newest ralph.Time
			for _, l := range list {
				if l.LastSeen.After(newest.Time) {
					newest = l.LastSeen
				}
			}
			return a.print(list, func(w io.Writer) error {
				for _, l := range list {
					if err := sayLearning(w, l); err != nil {
						return err
					}
					if why := l.Stale(newest, loop.Gone(root, l)); why != "" {
						fmt.Fprintf(w, "      sinks: %s\n", oneLine(why, 200))
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&f.Scope, "scope", "", "only project, feature or task")
	cmd.Flags().StringVar(&f.Feature, "feature", "", "only this `FEATURE`'s")
	cmd.Flags().BoolVar(&f.Forgotten, "forgotten", false, "those that were forgotten too")
	return cmd
}

func sayLearning(w io.Writer, l ralph.Learning) error {
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
	if l.Status == forgotten {
		marks += ", forgotten"
	}
	_, err := fmt.Fprintf(w, "%4d  %s (%s, %s, seen %d×%s)\n", l.ID, oneLine(l.Text, 300), l.Kind, oneLine(where, 60), l.TimesSeen, marks)
	return err
}

// forgotten is the status of a learning that goes into no prompt any more.
const forgotten = "forgotten"

func newLearningShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show a learning, and the signals that it came from", Example: "  ralph learning show 3", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := learningID(args[0])
			if err != nil {
				return err
			}
			var l ralph.Learning
			var from []ralph.Comment
			err = a.read(cmd.Context(), func(tx *store.Tx) (err error) {
				if l, err = tx.Learning(id); err != nil {
					return err
				}
				for _, c := range l.Comments {
					comment, err := tx.Comment(c)
					if err != nil {
						return err
					}
					from = append(from, comment)
				}
				return nil
			})
			if err != nil {
				return err
			}
			return a.print(l, func(w io.Writer) error {
				if err := sayLearning(w, l); err != nil {
					return err
				}
				if l.Rationale != "" {
					fmt.Fprintf(w, "      because: %s\n", oneLine(l.Rationale, 500))
				}
				for _, id := range append(slices.Clone(l.ContradictedBy), l.Contradicts...) {
					fmt.Fprintf(w, "      in conflict with learning %d (`ralph learning forget`, `edit`, or `reconcile` if both hold)\n", id)
				}
				for _, c := range from {
					fmt.Fprintf(w, "      comment %d on TASK-%d, session %.8s, %s\n", c.ID, c.TaskID, c.SessionID, c.Created.Local().Format("2006-01-02 15:04"))
				}
				return nil
			})
		},
	}
}

func learningID(arg string) (int64, error) {
	id, err := strconv.ParseInt(arg, 10, 64)
	if err != nil || id <= 0 {
		return 0, usage(&ralph.FieldError{Field: fmt.Sprintf("learning %q", arg), Problem: "is not a number; see `ralph learning list`"})
	}
	return id, nil
}

func newLearningAdd(a *app) *cobra.Command {
	var l ralph.Learning
	cmd := &cobra.Command{
		Use: "add TEXT", Short: "Add what you know", Example: "  ralph learning add 'Tests need Redis on port 6379' --kind convention", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if l.Text, err = a.text("text", args[0]); err != nil {
				return err
			}
			l.Author = a.person()
			if l.Feature != "" {
				l.Scope = ralph.ScopeFeature
			}
			return a.changeLearning(cmd, a.add, func(tx *store.Tx) (int64, error) { return tx.Teach(l) })
		},
	}
	cmd.Flags().StringVar(&l.Kind, "kind", "discovery", "discovery, decision or convention")
	cmd.Flags().StringVar(&l.Scope, "scope", ralph.ScopeProject, "project or feature")
	cmd.Flags().StringVar(&l.Feature, "feature", "", "the `FEATURE` that it is for; makes the scope feature")
	cmd.Flags().StringVar(&l.Rationale, "rationale", "", "why it is so")
	return cmd
}

// changeLearning makes a change and prints the learning as it is then.
func (a *app) changeLearning(cmd *cobra.Command, write func(context.Context, func(tx *store.Tx) error) error, change func(tx *store.Tx) (int64, error)) error {
	var l ralph.Learning
	err := write(cmd.Context(), func(tx *store.Tx) error {
		id, err := change(tx)
		if err != nil {
			return err
		}
		l, err = tx.Learning(id)
		return err
	})
	if err != nil {
		return err
	}
	return a.print(l, func(w io.Writer) error { return sayLearning(w, l) })
}

// editing is a command that changes one learning.
func (a *app) editing(use, short, example string, edit func(l *ralph.Learning)) *cobra.Command {
	return &cobra.Command{
		Use: use + " ID", Short: short, Example: "  " + example, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := learningID(args[0])
			if err != nil {
				return err
			}
			return a.changeLearning(cmd, a.write, func(tx *store.Tx) (int64, error) {
				l, err := tx.Learning(id)
				if err != nil {
					return 0, err
				}
				edit(&l)
				return id, tx.ChangeLearning(l)
			})
		},
	}
}

func newLearningEdit(a *app) *cobra.Command {
	var text, rationale string
	cmd := a.editing("edit", "Change a learning's words", "ralph learning edit 3 --text 'Tests need Redis on port 6380'", func(l *ralph.Learning) {
		if text != "" {
			l.Text = text
		}
		if rationale != "" {
			l.Rationale = rationale
		}
	})
	cmd.Flags().StringVar(&text, "text", "", "what is known")
	cmd.Flags().StringVar(&rationale, "rationale", "", "why it is so")
	cmd.MarkFlagsOneRequired("text", "rationale")
	return cmd
}

func newLearningForget(a *app) *cobra.Command {
	undo := false
	cmd := a.editing("forget", "Leave a learning out of all prompts", "ralph learning forget 3", func(l *ralph.Learning) {
		l.Status = forgotten
		if undo {
			l.Status = "active"
		}
	})
	cmd.Flags().BoolVar(&undo, "undo", false, "remember it again")
	return cmd
}

func newLearningPin(a *app) *cobra.Command {
	undo := false
	cmd := a.editing("pin", "Show a learning before all others of its scope", "ralph learning pin 3", func(l *ralph.Learning) { l.Pinned = !undo })
	cmd.Flags().BoolVar(&undo, "undo", false, "show it where it fits again")
	return cmd
}

func newLearningMerge(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "merge ID INTO", Short: "Make one learning of two", Long: "Make one learning of two that say the same: INTO stays, with the count and the\nsignals of both.",
		Example: "  ralph learning merge 4 3", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			from, err := learningID(args[0])
			if err != nil {
				return err
			}
			into, err := learningID(args[1])
			if err != nil {
				return err
			}
			return a.changeLearning(cmd, a.write, func(tx *store.Tx) (int64, error) { return into, tx.MergeLearnings(from, into) })
		},
	}
}

func newLearningReconcile(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "reconcile ID", Short: "Say that a learning and what seems to contradict it both hold", Example: "  ralph learning reconcile 7", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := learningID(args[0])
			if err != nil {
				return err
			}
			return a.changeLearning(cmd, a.write, func(tx *store.Tx) (int64, error) {
				n, err := tx.Reconcile(id, a.person())
				if err == nil && n == 0 {
					err = fmt.Errorf("learning %d is in no conflict: %w", id, ralph.ErrConflict)
				}
				return id, err
			})
		},
	}
}
