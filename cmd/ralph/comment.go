package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/store"
)

// commentID reads "12" or "#12".
func commentID(s string) (int64, error) {
	id, err := strconv.ParseInt(strings.TrimPrefix(s, "#"), 10, 64)
	if err != nil || id <= 0 {
		return 0, &ralph.FieldError{Field: fmt.Sprintf("comment id %q", s), Problem: "is not a number; see `ralph inbox` or `ralph timeline`"}
	}
	return id, nil
}

func newComment(a *app) *cobra.Command {
	var kind, rationale, reply string
	cmd := &cobra.Command{
		Use: "comment TASK TEXT", Short: "Comment on a task; a running session hears it at once",
		Example: "  ralph comment 12 \"also test unicode URLs\"\n  ralph comment 12 @notes.md --kind reference",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			task, err := ralph.ParseTaskID(args[0])
			if err != nil {
				return err
			}
			body, err := a.text("text", args[1])
			if err != nil {
				return err
			}
			c := ralph.Comment{TaskID: task, Author: a.person(), AuthorKind: ralph.ByHuman, Kind: ralph.CommentKind(kind), Body: body, Rationale: rationale}
			if reply != "" {
				parent, err := commentID(reply)
				if err != nil {
					return err
				}
				c.ParentID = &parent
			}
			err = a.write(cmd.Context(), func(tx *store.Tx) error {
				id, err := tx.AddComment(c)
				if err != nil {
					return err
				}
				c, err = tx.Comment(id)
				return err
			})
			if err != nil {
				return err
			}
			return a.print(c, func(w io.Writer) error { _, err := fmt.Fprintf(w, "comment %d on TASK-%d\n", c.ID, task); return err })
		},
	}
	cmd.Flags().StringVar(&kind, "kind", string(ralph.Note), "note, question, blocker, reference or nack")
	cmd.Flags().StringVar(&rationale, "rationale", "", "why; a blocker and a nack need it")
	cmd.Flags().StringVar(&reply, "reply-to", "", "the `COMMENT` that this is a reply to")
	return cmd
}

func newAnswer(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "answer COMMENT [TEXT]", Short: "Answer an agent's question", Example: "  ralph answer 31 \"reject with an error\"\n  ralph answer 31 - < answer.md",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := commentID(args[0])
			if err != nil {
				return err
			}
			answer, err := a.text("answer", append(args, "-")[1])
			if err != nil {
				return err
			}
			return a.settle(cmd, id, func(tx *store.Tx) error { return tx.Answer(id, strings.TrimSpace(answer), a.person()) })
		},
	}
}

// settle settles a comment and says what that makes of its task.
func (a *app) settle(cmd *cobra.Command, id int64, f func(tx *store.Tx) error) error {
	var c ralph.Comment
	var t ralph.Task
	var stop string // what is asked of the session that works on it
	err := a.write(cmd.Context(), func(tx *store.Tx) (err error) {
		if err := f(tx); err != nil {
			return err
		}
		if c, err = tx.Comment(id); err != nil {
			return err
		}
		if t, err = tx.Task(c.TaskID); err == nil && t.ClaimedBy != "" {
			stop, _, err = tx.StopRequest(t.ClaimedBy)
		}
		return err
	})
	if err != nil {
		return err
	}
	return a.print(c, func(w io.Writer) error {
		becomes := string(t.Status)
		if stop == "cancel" {
			becomes = "being stopped and then cancelled"
		}
		_, err := fmt.Fprintf(w, "settled; TASK-%d is %s\n", t.ID, becomes)
		return err
	})
}

func newResolve(a *app) *cobra.Command {
	var approve, refuse bool
	cmd := &cobra.Command{
		Use: "resolve COMMENT [DECISION]", Short: "Resolve a blocker or a suggestion, or decide on a proposal to cancel",
		Example: "  ralph resolve 31 \"the key is in the vault now\"\n  ralph resolve 40 --approve",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := commentID(args[0])
			if err != nil {
				return err
			}
			decision := append(args, "")[1]
			return a.settle(cmd, id, func(tx *store.Tx) error { return a.resolve(tx, id, decision, approve, refuse) })
		},
	}
	cmd.PostRunE = func(cmd *cobra.Command, args []string) error {
		if !approve {
			return nil
		}
		return a.endClaims(cmd, args) // a cancellation may have been approved
	}
	cmd.Flags().BoolVar(&approve, "approve", false, "a proposal to cancel: cancel the task; a review: accept the change of protected files")
	cmd.Flags().BoolVar(&refuse, "refuse", false, "a proposal to cancel: keep the task; a review: send it back")
	return cmd
}

func (a *app) resolve(tx *store.Tx, id int64, decision string, approve, refuse bool) error {
	decidable, err := tx.Decidable(id)
	if err != nil {
		return err
	}
	if !decidable {
		if approve || refuse {
			return usage(fmt.Errorf("comment %d proposes no cancellation and no change of protected files: resolve it with words", id))
		}
		return tx.Resolve(id, decision, a.person())
	}
	if approve == refuse {
		return usage(errors.New("what waits for approval needs one of --approve and --refuse"))
	}
	return tx.Decide(id, approve, decision, a.person())
}
