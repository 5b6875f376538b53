package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/store"
)

func newSuggestion(a *app) *cobra.Command {
	approve := a.change("approve ID", "Put a suggested task into the queue", "  ralph suggestion approve 14", func(tx *store.Tx, t ralph.Task) (string, error) {
		return "is in the queue", tx.ApproveProposal(t.ID, a.person())
	})
	var reason string
	reject := a.change("reject ID", "Refuse a suggested task", "  ralph suggestion reject 14 --reason \"out of scope\"", func(tx *store.Tx, t ralph.Task) (string, error) {
		if err := ralph.CheckText("--reason", reason, true); err != nil {
			return "", err
		}
		return "is rejected", tx.RejectProposal(t.ID, reason, a.person())
	})
	reject.Flags().StringVar(&reason, "reason", "", "why")
	edit := newTaskEdit(a)
	edit.Short, edit.Example = "Change a suggested task before approving it", "  ralph suggestion edit 14 --title \"Verify the audit chain\""
	change := edit.RunE
	edit.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := ralph.ParseTaskID(args[0])
		if err != nil {
			return err
		}
		err = a.read(cmd.Context(), func(tx *store.Tx) error {
			_, err := tx.Proposal(id)
			return err
		})
		if err != nil {
			return err
		}
		return change(cmd, args)
	}
	return noun("suggestion", "Decide on what agents suggest", newSuggestionList(a), approve, edit, reject, newSuggestionTask(a), newSuggestionAdopt(a), newSuggestionSplit(a))
}

// A suggestion is what `ralph suggestion list` prints of one.
type suggestion struct {
	Kind    string `json:"kind"` // new_task, split, refactor, alternative or deprecate
	TaskID  int64  `json:"task_id"`
	Comment int64  `json:"comment_id"` // 0 for a new task
	Title   string `json:"title"`      // of the task
	What    string `json:"what"`
	Command string `json:"command"` // that settles it
}

func newSuggestionList(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List what agents suggest, each with the commands that settle it", Example: "  ralph suggestion list", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var inbox []store.InboxItem
			if err := a.read(cmd.Context(), func(tx *store.Tx) (err error) { inbox, err = inboxOf(tx); return err }); err != nil {
				return err
			}
			list := []suggestion{}
			for _, i := range inbox {
				switch i.Kind {
				case "proposal":
					list = append(list, suggestion{"new_task", i.TaskID, 0, i.Title, i.Text, i.Command})
				case "suggestion":
					kind, what, _ := strings.Cut(i.Text, ": ")
					list = append(list, suggestion{kind, i.TaskID, i.Ref.ID, i.Title, what, i.Command})
				}
			}
			return a.print(list, func(w io.Writer) error {
				for _, s := range list {
					fmt.Fprintf(w, "%-11s TASK-%d %s\n", s.Kind, s.TaskID, oneLine(s.Title, ralph.MaxTitle))
					sayWhole(w, "            ", s.What)
					if _, err := fmt.Fprintf(w, "            → %s\n", s.Command); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

func newSuggestionTask(a *app) *cobra.Command {
	var title string
	cmd := &cobra.Command{
		Use: "task COMMENT", Short: "Make a task of a suggestion (refactor, deprecate, alternative)", Example: "  ralph suggestion task 31 --title \"Merge the two parsers\"", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := commentID(args[0])
			if err != nil {
				return err
			}
			var t ralph.Task
			err = a.write(cmd.Context(), func(tx *store.Tx) error {
				task, err := tx.TaskOf(id, title, a.person())
				if err != nil {
					return err
				}
				t, err = tx.Task(task)
				return err
			})
			if err != nil {
				return err
			}
			return a.print(t, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "TASK-%d added: %s\n", t.ID, oneLine(t.Title, 100))
				return err
			})
		},
	}
	cmd.Flags().StringVar(&title, "title", "", "another title than the suggestion's first line")
	return cmd
}

func newSuggestionAdopt(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "adopt COMMENT", Short: "Have the task done the way that was suggested", Example: "  ralph suggestion adopt 31", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := commentID(args[0])
			if err != nil {
				return err
			}
			return a.settle(cmd, id, func(tx *store.Tx) error { _, err := tx.Adopt(id, a.person()); return err })
		},
	}
}
