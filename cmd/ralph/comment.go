package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/store"
)

func newComment(a *app) *cobra.Command {
	var kind, rationale, reply string
	cmd := newCommand("comment TASK TEXT", func(cmd *cobra.Command, args []string) error {
		task, err := ralph.ParseTaskID(args[0])
		if err != nil {
			return err
		}
		body, err := a.text("text", args[1])
		if err != nil {
			return err
		}
		c := ralph.Comment{
			TaskID: task, Author: a.person(), AuthorKind: ralph.ByHuman,
			Kind: ralph.CommentKind(kind), Body: body, Rationale: rationale,
		}
		if reply != "" {
			parent, err := number("comment", reply)
			if err != nil {
				return err
			}
			c.ParentID = &parent
		}
		comment := func(tx *store.Tx) (int64, error) { return tx.AddComment(c) }
		return showOf(cmd.Context(), a, alter, after(comment, (*store.Tx).Comment), func(w io.Writer, c ralph.Comment) {
			fmt.Fprintf(w, "comment %d on TASK-%d\n", c.ID, task)
		})
	})
	cmd.Flags().StringVar(&kind, "kind", string(ralph.Note), "note, question, blocker, reference or nack")
	cmd.Flags().StringVar(&rationale, "rationale", "", "why; a blocker and a nack need it")
	cmd.Flags().StringVar(&reply, "reply-to", "", "the `COMMENT` that this is a reply to")
	return cmd
}

func newAnswer(a *app) *cobra.Command {
	return newCommand("answer COMMENT [TEXT]", func(cmd *cobra.Command, args []string) error {
		id, err := number("comment", args[0])
		if err != nil {
			return err
		}
		answer, err := a.text("answer", append(args, "-")[1])
		if err != nil {
			return err
		}
		return a.settle(cmd.Context(), id, func(tx *store.Tx) error {
			return tx.Answer(id, strings.TrimSpace(answer), a.person())
		})
	})
}

// settle settles a comment and says what that makes of its task.
func (a *app) settle(ctx context.Context, id int64, f func(tx *store.Tx) error) error {
	var t ralph.Task
	var stop string // what is asked of the session that works on it
	c, err := alter(ctx, a, func(tx *store.Tx) (c ralph.Comment, err error) {
		if err := f(tx); err != nil {
			return c, err
		}
		if c, err = tx.Comment(id); err != nil {
			return c, err
		}
		if t, err = tx.Task(c.TaskID); err == nil && t.ClaimedBy != "" {
			stop, _, err = tx.StopRequest(t.ClaimedBy)
		}
		return c, err
	})
	if err != nil {
		return err
	}
	becomes := string(t.Status)
	if stop == "cancel" {
		becomes = "being stopped and then cancelled"
	}
	return a.say(c, "settled; TASK-%d is %s", t.ID, becomes)
}

func newResolve(a *app) *cobra.Command {
	var approve, refuse bool
	cmd := newCommand("resolve COMMENT [DECISION]", func(cmd *cobra.Command, args []string) error {
		id, err := number("comment", args[0])
		if err != nil {
			return err
		}
		decision := append(args, "")[1]
		return a.settle(cmd.Context(), id, func(tx *store.Tx) error {
			return a.resolve(tx, id, decision, approve, refuse)
		})
	})
	cmd.PostRunE = func(cmd *cobra.Command, args []string) error {
		if !approve {
			return nil
		}
		return a.endClaims(cmd, args) // a cancellation may have been approved
	}
	cmd.Flags().BoolVar(&approve, "approve", false,
		"a proposal to cancel: cancel the task; a review: accept the change of protected files")
	cmd.Flags().BoolVar(&refuse, "refuse", false, "a proposal to cancel: keep the task; a review: send it back")
	return cmd
}

func (a *app) resolve(tx *store.Tx, id int64, decision string, approve, refuse bool) error {
	decidable, err := tx.Decidable(id)
	switch {
	case err != nil:
		return err
	case decidable && approve == refuse:
		return usage(errors.New("what waits for approval needs one of --approve and --refuse"))
	case decidable:
		return tx.Decide(id, approve, decision, a.person())
	case approve || refuse:
		return usage(fmt.Errorf("comment %d proposes no cancellation and no change of protected files: "+
			"resolve it with words", id))
	}
	return tx.Resolve(id, decision, a.person())
}
