package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/show"
	"ralph/store"
)

func newTimeline(a *app) *cobra.Command {
	var f store.CommentFilter
	var verbs []string
	cmd := newCommand("timeline TASK", func(cmd *cobra.Command, args []string) error {
		id, err := ralph.ParseTaskID(args[0])
		if err != nil {
			return err
		}
		if f.NoSignals && f.NoComments {
			return usage(errors.New("--signals and --no-signals exclude each other"))
		}
		if f.NoSignals && len(verbs) > 0 {
			return usage(errors.New("--verb and --no-signals exclude each other"))
		}
		for _, v := range verbs {
			if err := oneOf("--verb", ralph.Verb(v), ralph.Verbs...); err != nil {
				return err
			}
			f.Verbs = append(f.Verbs, ralph.Verb(v))
		}
		return showOf(cmd.Context(), a, read, func(tx *store.Tx) ([]ralph.Comment, error) {
			if _, err := tx.Task(id); err != nil {
				return nil, err
			}
			if f.Session != "" {
				s, err := tx.Session(f.Session)
				if err != nil {
					return nil, err
				}
				f.Session = s.ID
			}
			return tx.Timeline(id, f)
		}, func(w io.Writer, comments []ralph.Comment) { show.Timeline(w, comments, a.screen()) })
	})
	cmd.Flags().BoolVar(&f.NoComments, "signals", false, "only agents' signals")
	cmd.Flags().BoolVar(&f.NoSignals, "no-signals", false, "only comments")
	cmd.Flags().StringArrayVar(&verbs, "verb", nil, "only signals of this `VERB` (repeatable)")
	cmd.Flags().StringVar(&f.Session, "session", "", "only those of `SESSION`")
	cmd.Flags().BoolVar(&f.Open, "open", false,
		"only items that wait for a person: open questions, blockers, flags, suggestions, proposals to cancel")
	return cmd
}
