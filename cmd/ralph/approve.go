package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/inbox"
	"ralph/internal/term"
	"ralph/internal/text"
	"ralph/store"
)

func newApprove(a *app) *cobra.Command {
	var asTask bool
	cmd := newCommand("approve ITEM [WORDS]", func(cmd *cobra.Command, args []string) error {
		if term.Is(a.out) && !a.json {
			list, err := read(cmd.Context(), a, func(tx *store.Tx) ([]store.InboxItem, error) {
				return inbox.Named(tx, args[:1])
			})
			if err == nil {
				err = a.showReviewed(cmd.Context(), a.out, list[0])
			}
			if err != nil {
				return err
			}
		}
		return a.decide(cmd.Context(), args, true, asTask)
	})
	cmd.Flags().BoolVar(&asTask, "task", false, "make a task of a suggestion, instead of telling its own task")
	cmd.PostRunE = a.endClaims
	return cmd
}

func newReject(a *app) *cobra.Command {
	cmd := newCommand("reject ITEM [WORDS]", func(cmd *cobra.Command, args []string) error {
		return a.decide(cmd.Context(), args, false, false)
	})
	cmd.PostRunE = a.endClaims
	return cmd
}

// decide approves or rejects an inbox item by its name in `ralph inbox`. asTask turns a suggestion into a task;
// otherwise its own task follows it.
func (a *app) decide(ctx context.Context, args []string, approve, asTask bool) error {
	words := append(args, "")[1]
	if err := ralph.CheckText("WORDS", words, false); err != nil {
		return err
	}
	list, err := read(ctx, a, func(tx *store.Tx) ([]store.InboxItem, error) { return inbox.Named(tx, args[:1]) })
	if err == nil && list[0].Kind == "plan" {
		return a.decidePlan(ctx, list[0].Title, nil, approve, words)
	}
	if err != nil {
		return err
	}
	var said string
	merges := false
	err = showOf(ctx, a, alter, func(tx *store.Tx) (i store.InboxItem, err error) {
		list, err := inbox.Named(tx, args[:1])
		if err != nil {
			return i, err
		}
		i = list[0]
		if asTask {
			if i.Kind != "suggestion" {
				return i, ralph.Usage(fmt.Errorf("%s (%s) is not a suggestion: leave --task out", i.Item, i.Kind))
			}
			i.Action = "task"
		}
		if said, err = inbox.Decide(tx, i, approve, words, a.person()); err != nil || i.TaskID == 0 {
			return i, err
		}
		t, err := tx.Task(i.TaskID)
		merges = t.Status == ralph.Merging
		return i, err
	}, func(w io.Writer, _ store.InboxItem) { fmt.Fprintln(w, text.Line(said, 300)) })
	if err != nil || !merges {
		return err
	}
	return a.mergeQueued(ctx, list[0].TaskID)
}
