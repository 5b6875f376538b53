package main

import (
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
	return noun("merge",
		newMergeList(a), newMergeShow(a), newMergeRetry(a), newMergeDrop(a), newMergePause(a), newMergeResume(a))
}

func newMergeList(a *app) *cobra.Command {
	all := false
	cmd := newCommand("list", func(cmd *cobra.Command, _ []string) error {
		return showOf(cmd.Context(), a, read, func(tx *store.Tx) (show.MergesView, error) {
			return show.ReadMerges(tx, all)
		}, show.Merges)
	})
	cmd.Flags().BoolVar(&all, "all", false, "those that are not in the queue, too, the newest first")
	return cmd
}

func newMergeShow(a *app) *cobra.Command {
	return newCommand("show ID", func(cmd *cobra.Command, args []string) error {
		id, err := ralph.ParseTaskID(args[0])
		if err != nil {
			return err
		}
		return showOf(cmd.Context(), a, read, func(tx *store.Tx) ([]ralph.Change, error) {
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
	})
}

func newMergeRetry(a *app) *cobra.Command {
	return a.change("retry ID", func(tx *store.Tx, t ralph.Task) (string, error) {
		return "is in the merge queue again, with its change as it is", tx.RetryChange(t.ID, a.person())
	})
}

func newMergeDrop(a *app) *cobra.Command {
	return a.change("drop ID", func(tx *store.Tx, t ralph.Task) (string, error) {
		return "is out of the merge queue; its next session begins without what was done", tx.DropChange(t.ID, a.person())
	})
}

func newMergePause(a *app) *cobra.Command {
	reason := ""
	cmd := newCommand("pause", func(cmd *cobra.Command, _ []string) error {
		return showOf(cmd.Context(), a, alter, func(tx *store.Tx) (show.MergesView, error) {
			why := "by " + a.person()
			if reason != "" {
				why += ": " + reason
			}
			if err := tx.PauseMerging(why); err != nil {
				return show.MergesView{}, err
			}
			return show.ReadMerges(tx, false)
		}, show.Merges)
	})
	cmd.Flags().StringVar(&reason, "reason", "", "why, a `TEXT`")
	return cmd
}

func newMergeResume(a *app) *cobra.Command {
	return newCommand("resume", func(cmd *cobra.Command, _ []string) error {
		return showOf(cmd.Context(), a, alter, func(tx *store.Tx) (show.MergesView, error) {
			if err := tx.ResumeMerging(a.person()); err != nil {
				return show.MergesView{}, err
			}
			return show.ReadMerges(tx, false)
		}, show.Merges)
	})
}
