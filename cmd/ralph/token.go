package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/project"
	"ralph/mcpserver"
	"ralph/store"
)

// sayTokens prints the fill of the model's context in each open session.
func (a *app) sayTokens(ctx context.Context) error {
	list := []mcpserver.TokenStatus{}
	err := a.with(ctx, func(p *project.Project, db *store.DB) error {
		chats := a.chats(p, db, nil)
		return db.View(ctx, func(tx *store.Tx) error {
			open, err := tx.OpenSessions()
			if err != nil {
				return err
			}
			for _, s := range open {
				u, err := chats.ContextOf(tx, s, chats.See(s))
				if err != nil {
					return err
				}
				list = append(list, mcpserver.TokenStatus{Task: fmt.Sprintf("TASK-%d", s.TaskID), SessionID: s.ID, ContextUse: u})
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	return a.print(list, func(w io.Writer) {
		if len(list) == 0 {
			fmt.Fprintln(w, "no session is open")
		}
		for _, s := range list {
			fmt.Fprintf(w, "%s (session %.8s): %s\n  %s\n", s.Task, s.SessionID, s.ContextUse.Words(), s.Advice)
		}
	})
}

func newChatCheckpoint(a *app) *cobra.Command {
	k := ralph.Checkpoint{Source: ralph.CheckpointReported}
	cmd := newCommand("checkpoint ID", onTask(func(ctx context.Context, id int64) error {
		if k.Iteration < 0 {
			return usage(&ralph.FieldError{
				Field: fmt.Sprintf("--iteration %d", k.Iteration), Problem: "must be at least 0",
			})
		}
		var made mcpserver.MadeCheckpoint
		err := a.with(ctx, func(p *project.Project, db *store.DB) error {
			chats := a.chats(p, db, nil)
			s, err := store.Read(ctx, db, func(tx *store.Tx) (ralph.Session, error) { return tx.ClaimOfPerson(id) })
			if err != nil {
				return err
			}
			seen := chats.See(s)
			err = db.Tx(ctx, func(tx *store.Tx) error {
				s, err := tx.ClaimOfPerson(id)
				if err == nil {
					made, err = chats.AddCheckpoint(tx, s, seen, k)
				}
				return err
			})
			if err == nil {
				chats.WriteMirror()
			}
			return err
		})
		if err != nil {
			return err
		}
		return a.say(made, "checkpoint %d of %s: %s", made.Checkpoint, made.Task, made.Resume)
	}))
	cmd.Flags().IntVar(&k.Iteration, "iteration", 0, "iteration `N` of the work")
	cmd.Flags().StringArrayVar(&k.Completed, "completed", nil, "a finished part, a `TEXT` (repeatable)")
	cmd.Flags().StringArrayVar(&k.Remaining, "remaining", nil, "a remaining part, a `TEXT` (repeatable)")
	return cmd
}
