package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/store"
)

func newToken(a *app) *cobra.Command {
	return noun("token", "See how full contexts are, and keep where work stands", newTokenStatus(a), newTokenCheckpoint(a))
}

// A tokenStatus is how full the context of one session's model is.
type tokenStatus struct {
	Task      string `json:"task"`
	SessionID string `json:"session_id"`
	contextUse
}

func newTokenStatus(a *app) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "status", Short: "Show how full the contexts of the sessions are that are open",
		Long: `Show how many tokens of its model's context each open session has in use: a person's by the
transcript of the chat, where that is Claude Code, else by what the chat reports; one of the
loop's by the agent's own stream.`,
		Example: "  ralph token status --format json", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch format {
			case "text":
			case "json":
				a.json = true
			default:
				return fieldError("--format", format, "text", "json")
			}
			list := []tokenStatus{}
			err := a.with(cmd.Context(), func(p *project, db *store.DB) error {
				return db.View(cmd.Context(), func(tx *store.Tx) error {
					open, err := tx.OpenSessions()
					if err != nil {
						return err
					}
					for _, s := range open {
						u, err := a.contextOf(tx, p, s)
						if err != nil {
							return err
						}
						list = append(list, tokenStatus{fmt.Sprintf("TASK-%d", s.TaskID), s.ID, u})
					}
					return nil
				})
			})
			if err != nil {
				return err
			}
			return a.print(list, func(w io.Writer) error {
				if len(list) == 0 {
					_, err := fmt.Fprintln(w, "no session is open")
					return err
				}
				for _, s := range list {
					if _, err := fmt.Fprintf(w, "%s (session %.8s): %s\n  %s\n", s.Task, s.SessionID, sayUse(s.contextUse), s.Advice); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text or json")
	return cmd
}

func newTokenCheckpoint(a *app) *cobra.Command {
	k := ralph.Checkpoint{Source: ralph.CheckpointReported}
	cmd := &cobra.Command{
		Use: "checkpoint ID", Short: "Keep where the work on a claimed task stands, for the next chat or session",
		Example: "  ralph token checkpoint 12 --iteration 4 --completed \"the parser\" --remaining \"its tests\"", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := ralph.ParseTaskID(args[0])
			if err != nil {
				return err
			}
			if k.Iteration < 0 {
				return usage(&ralph.FieldError{Field: fmt.Sprintf("--iteration %d", k.Iteration), Problem: "must be at least 0"})
			}
			var made madeCheckpoint
			err = a.with(cmd.Context(), func(p *project, db *store.DB) error {
				err := db.Tx(cmd.Context(), func(tx *store.Tx) error {
					s, err := tx.ClaimOfPerson(id)
					if err != nil {
						return err
					}
					made, err = a.addCheckpoint(tx, p, s, k)
					return err
				})
				if err == nil {
					a.writeMirror(p, db)
				}
				return err
			})
			if err != nil {
				return err
			}
			return a.print(made, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "checkpoint %d of %s: %s\n", made.Checkpoint, made.Task, made.Resume)
				return err
			})
		},
	}
	cmd.Flags().IntVar(&k.Iteration, "iteration", 0, "which iteration of the work it is")
	cmd.Flags().StringArrayVar(&k.Completed, "completed", nil, "what is done (repeatable)")
	cmd.Flags().StringArrayVar(&k.Remaining, "remaining", nil, "what is left to do (repeatable)")
	return cmd
}
