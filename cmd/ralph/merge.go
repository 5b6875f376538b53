package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/show"
	"ralph/internal/text"
	"ralph/store"
)

func newMerge(a *app) *cobra.Command {
	all := false
	cmd := newCommand("merge [ID]", func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return onTask(a.showChanges)(cmd, args)
		}
		return showOf(cmd.Context(), a, read, func(tx *store.Tx) (show.MergesView, error) {
			return show.ReadMerges(tx, all)
		}, show.Merges)
	})
	cmd.Flags().BoolVar(&all, "all", false, "those that are not in the queue, too, the newest first")
	return cmd
}

// showChanges prints what became of a task's changes.
func (a *app) showChanges(ctx context.Context, id int64) error {
	return showOf(ctx, a, read, func(tx *store.Tx) ([]ralph.Change, error) {
		if err := tx.CheckTask(id); err != nil {
			return nil, err
		}
		return tx.Changes(id, 0)
	}, func(w io.Writer, list []ralph.Change) {
		for _, c := range list {
			fmt.Fprintf(w, "change %d of TASK-%d: %s\n", c.ID, c.TaskID, c.State)
			for _, l := range [][2]string{
				{"why", c.Reason},
				{"conflicts", strings.Join(c.Conflicts, ", ")},
				{"merged as", c.To},
				{"commit", c.Head},
				{"kept as", c.Ref()},
				{"made on", c.Base},
				{"session", c.SessionID},
			} {
				if l[1] != "" && (l[0] != "merged as" || c.State == ralph.Merged) {
					fmt.Fprintf(w, "  %-10s %s\n", l[0], text.VisibleLine(l[1]))
				}
			}
		}
	})
}

// changeMerging pauses or resumes merging, and prints the queue.
func (a *app) changeMerging(ctx context.Context, change func(tx *store.Tx) error) error {
	return showOf(ctx, a, alter, func(tx *store.Tx) (show.MergesView, error) {
		if err := change(tx); err != nil {
			return show.MergesView{}, err
		}
		return show.ReadMerges(tx, false)
	}, show.Merges)
}
