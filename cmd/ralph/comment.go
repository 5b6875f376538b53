package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/inbox"
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
	cmd.Flags().StringVar(&kind, "kind", string(ralph.Note), "`KIND`: note, question, blocker, reference or nack")
	cmd.Flags().StringVar(&rationale, "rationale", "", "why, a `TEXT`; a blocker and a nack need it")
	cmd.Flags().StringVar(&reply, "reply-to", "", "the `COMMENT` that this is a reply to")
	return cmd
}

func newAnswer(a *app) *cobra.Command {
	return newCommand("answer COMMENT [TEXT]", func(cmd *cobra.Command, args []string) error {
		var id, task int64
		var err error
		if strings.HasPrefix(strings.ToUpper(args[0]), "TASK-") {
			task, err = ralph.ParseTaskID(args[0])
		} else {
			id, err = number("comment", args[0])
		}
		if err != nil {
			return err
		}
		answer, err := a.text("answer", append(args, "-")[1])
		if err != nil {
			return err
		}
		return a.respond(cmd.Context(), &id, func(tx *store.Tx) error {
			open, err := tx.InboxOf("question")
			if err != nil {
				return err
			}
			open = slices.DeleteFunc(open, func(q store.InboxItem) bool { return q.Ref.ID != id && q.TaskID != task })
			switch {
			case task != 0 && len(open) == 0:
				return usage(fmt.Errorf("TASK-%d has no open question; `ralph inbox` lists them", task))
			case task != 0 && len(open) > 1:
				return usage(fmt.Errorf("TASK-%d has %d open questions: name one of them as `ralph inbox` does, such as Q%d",
					task, len(open), open[0].Ref.ID))
			}
			if _, err := tx.Comment(id); task == 0 && errors.Is(err, ralph.ErrNotFound) {
				return ralph.NotFound("there is no question Q%d; `ralph inbox` lists them", id)
			}
			said := strings.TrimSpace(answer)
			for _, q := range open {
				id = q.Ref.ID
				n, err := strconv.Atoi(said)
				if err == nil && n >= 1 && n <= len(q.Options) && !slices.Contains(q.Options, said) {
					said = q.Options[n-1]
				}
			}
			return tx.Answer(id, said, a.person())
		})
	})
}

// respond answers a comment and prints the new status of its task. id is a pointer because f may only then know the
// number.
func (a *app) respond(ctx context.Context, id *int64, f func(tx *store.Tx) error) error {
	var becomes string
	c, err := alter(ctx, a, func(tx *store.Tx) (c ralph.Comment, err error) {
		if err := f(tx); err != nil {
			return c, err
		}
		if c, err = tx.Comment(*id); err != nil {
			return c, err
		}
		becomes, err = inbox.Becomes(tx, c.TaskID)
		return c, err
	})
	if err != nil {
		return err
	}
	return a.say(c, "answered; %s", becomes)
}

func newResolve(a *app) *cobra.Command {
	return newCommand("resolve COMMENT [DECISION]", func(cmd *cobra.Command, args []string) error {
		id, err := number("comment", args[0])
		if err != nil {
			return err
		}
		return a.respond(cmd.Context(), &id, func(tx *store.Tx) error {
			return a.resolve(tx, id, append(args, "")[1])
		})
	})
}

func (a *app) resolve(tx *store.Tx, id int64, decision string) error {
	decidable, err := tx.Decidable(id)
	if err != nil {
		return err
	}
	if decidable {
		return usage(fmt.Errorf("this is answered with yes or no: `ralph approve C%d`, or `ralph reject C%d`", id, id))
	}
	return tx.Resolve(id, decision, a.person())
}
