package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/prompt"
	"ralph/store"
)

func newPrompt(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "prompt TASK", Short: "Print what the next session of a task would be told", Example: "  ralph prompt 12", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := ralph.ParseTaskID(args[0])
			if err != nil {
				return err
			}
			var built prompt.Prompt
			err = a.with(cmd.Context(), func(p *project, db *store.DB) error {
				l, err := newLoop(cmd.Context(), a, p, db)
				if err != nil {
					return err
				}
				return db.View(cmd.Context(), func(tx *store.Tx) error {
					t, err := tx.Task(id)
					if err != nil {
						return err
					}
					built, err = l.BuildPrompt(tx, t)
					return err
				})
			})
			if err != nil {
				return err
			}
			v := map[string]any{"text": built.Text, "sections": built.Sections, "left_out": append([]string{}, built.LeftOut...)}
			return a.print(v, func(w io.Writer) error {
				if _, err := io.WriteString(w, built.Text); err != nil {
					return err
				}
				for _, s := range built.Sections {
					fmt.Fprintf(a.err, "%-14s %7d bytes, about %d tokens\n", s.Name, s.Bytes, s.Tokens)
				}
				for _, l := range built.LeftOut {
					fmt.Fprintln(a.err, "left out:", l)
				}
				return nil
			})
		},
	}
}
