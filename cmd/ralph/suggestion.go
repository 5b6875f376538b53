package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/advice"
	"ralph/internal/inbox"
	"ralph/internal/text"
	"ralph/store"
)

func newSuggestion(a *app) *cobra.Command {
	approve := a.change("approve ID", func(tx *store.Tx, t ralph.Task) (string, error) {
		return "is in the queue", tx.ApproveProposal(t.ID, a.person())
	})
	var reason string
	reject := a.change("reject ID", func(tx *store.Tx, t ralph.Task) (string, error) {
		if err := ralph.CheckText("--reason", reason, true); err != nil {
			return "", err
		}
		return "is rejected", tx.RejectProposal(t.ID, reason, a.person())
	})
	reject.Flags().StringVar(&reason, "reason", "", "why, a `TEXT`")
	edit := newTaskEdit(a)
	change := edit.RunE
	edit.RunE = func(cmd *cobra.Command, args []string) error {
		check := onTask(func(ctx context.Context, id int64) error {
			_, err := read(ctx, a, func(tx *store.Tx) (ralph.Task, error) { return tx.Proposal(id) })
			return err
		})
		if err := check(cmd, args); err != nil {
			return err
		}
		return change(cmd, args)
	}
	approve.Hidden, reject.Hidden = true, true // replaced by `ralph approve`, `ralph reject`; removed in the next release
	return noun("suggestion", newSuggestionList(a), approve, edit, reject,
		newSuggestionTask(a), newSuggestionAdopt(a), newSuggestionSplit(a))
}

// A suggestion is what `ralph suggestion list` prints for each.
type suggestion struct {
	Kind    string `json:"kind"` // new_task, split, refactor, alternative or deprecate
	TaskID  int64  `json:"task_id"`
	Comment int64  `json:"comment_id"` // 0 for a new task
	Title   string `json:"title"`      // of the task
	What    string `json:"what"`
	Command string `json:"command"` // that answers it
}

func newSuggestionList(a *app) *cobra.Command {
	return listing(a, "list", func(tx *store.Tx) ([]suggestion, error) {
		inbox, err := advice.Inbox(tx)
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
		return list, err
	},
		func(w io.Writer, s suggestion) {
			fmt.Fprintf(w, "%-11s TASK-%d %s\n", s.Kind, s.TaskID, text.Line(s.Title, ralph.MaxTitle))
			inbox.Whole(w, "            ", s.What)
			fmt.Fprintf(w, "            → %s\n", s.Command)
		})
}

func newSuggestionTask(a *app) *cobra.Command {
	var title string
	cmd := newCommand("task COMMENT", onNumber("comment", func(ctx context.Context, id int64) error {
		make := func(tx *store.Tx) (int64, error) { return tx.TaskOf(id, title, a.person()) }
		return showOf(ctx, a, alter, after(make, (*store.Tx).Task), sayAdded)
	}))
	cmd.Flags().StringVar(&title, "title", "", "`TITLE`, another one than the suggestion's first line")
	return cmd
}

func newSuggestionAdopt(a *app) *cobra.Command {
	return newCommand("adopt COMMENT", onNumber("comment", func(ctx context.Context, id int64) error {
		return a.respond(ctx, &id, func(tx *store.Tx) error { _, err := tx.Adopt(id, a.person()); return err })
	}))
}
