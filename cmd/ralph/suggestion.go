package main

import (
	"context"

	"github.com/spf13/cobra"

	"ralph/store"
)

func newSuggestion(a *app) *cobra.Command {
	return noun("suggestion", newSuggestionAdopt(a), newSuggestionSplit(a))
}

func newSuggestionAdopt(a *app) *cobra.Command {
	var title string
	var asTask bool
	cmd := newCommand("adopt COMMENT", onNumber("comment", func(ctx context.Context, id int64) error {
		if asTask || title != "" {
			make := func(tx *store.Tx) (int64, error) { return tx.TaskOf(id, title, a.person()) }
			return showOf(ctx, a, alter, after(make, (*store.Tx).Task), sayAdded)
		}
		return a.respond(ctx, &id, func(tx *store.Tx) error { _, err := tx.Adopt(id, a.person()); return err })
	}))
	cmd.Flags().BoolVar(&asTask, "task", false, "as a task of its own, instead of a word to the task's next session")
	cmd.Flags().StringVar(&title, "title", "", "with --task: another `TITLE` than the suggestion's first line")
	return cmd
}
