package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/store"
)

func newSuggestion(a *app) *cobra.Command {
	approve := a.change("approve ID", "Put a suggested task into the queue", "  ralph suggestion approve 14", func(tx *store.Tx, t ralph.Task) (string, error) {
		if err := proposed(t); err != nil {
			return "", err
		}
		if err := tx.Move(t.ID, ralph.Pending, ralph.Person, "approved by "+a.person()); err != nil {
			return "", err
		}
		return "is in the queue", tx.Derive(t.ID)
	})
	var reason string
	reject := a.change("reject ID", "Refuse a suggested task", "  ralph suggestion reject 14 --reason \"out of scope\"", func(tx *store.Tx, t ralph.Task) (string, error) {
		if err := proposed(t); err != nil {
			return "", err
		}
		if err := ralph.CheckText("--reason", reason, true); err != nil {
			return "", err
		}
		return "is rejected", tx.Move(t.ID, ralph.Rejected, ralph.Person, "rejected by "+a.person()+": "+reason)
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
			t, err := tx.Task(id)
			if err != nil {
				return err
			}
			return proposed(t)
		})
		if err != nil {
			return err
		}
		return change(cmd, args)
	}
	return noun("suggestion", "Decide on the tasks that agents suggest", newSuggestionList(a), approve, edit, reject)
}

func proposed(t ralph.Task) error {
	if t.Status != ralph.Proposed {
		return fmt.Errorf("TASK-%d is %s, not a suggestion: %w", t.ID, t.Status, ralph.ErrConflict)
	}
	return nil
}

func newSuggestionList(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List suggested tasks", Example: "  ralph suggestion list", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var tasks []ralph.Task
			if err := a.read(cmd.Context(), func(tx *store.Tx) (err error) {
				tasks, err = tx.Tasks(store.TaskFilter{Statuses: []ralph.Status{ralph.Proposed}})
				return err
			}); err != nil {
				return err
			}
			return a.print(tasks, func(w io.Writer) error {
				for _, t := range tasks {
					if _, err := fmt.Fprintf(w, "TASK-%d %s\n  %s\n", t.ID, oneLine(t.Title, 100), oneLine(t.Description, 300)); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}
