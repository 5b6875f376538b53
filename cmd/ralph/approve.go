package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/inbox"
	"ralph/internal/show"
	"ralph/internal/text"
	"ralph/store"
)

func newApprove(a *app) *cobra.Command {
	cmd := newCommand("approve ITEM [WORDS]", func(cmd *cobra.Command, args []string) error {
		if show.Terminal(a.out) && !a.json {
			list, err := read(cmd.Context(), a, func(tx *store.Tx) ([]store.InboxItem, error) {
				return inbox.Named(tx, args[:1])
			})
			if err == nil {
				err = a.showReviewed(cmd.Context(), a.out, list[0])
			}
			if err != nil {
				return err
			}
		}
		return a.decide(cmd.Context(), args, true)
	})
	cmd.PostRunE = a.endClaims
	return cmd
}

func newReject(a *app) *cobra.Command {
	cmd := newCommand("reject ITEM [WORDS]", func(cmd *cobra.Command, args []string) error {
		return a.decide(cmd.Context(), args, false)
	})
	cmd.PostRunE = a.endClaims
	return cmd
}

// decide approves or rejects the inbox item of a name that `ralph inbox` shows.
func (a *app) decide(ctx context.Context, args []string, approve bool) error {
	words := append(args, "")[1]
	if err := ralph.CheckText("WORDS", words, false); err != nil {
		return err
	}
	var said string
	return showOf(ctx, a, alter, func(tx *store.Tx) (i store.InboxItem, err error) {
		i, said, err = inbox.Decide(tx, args[0], approve, words, a.person())
		return i, err
	}, func(w io.Writer, _ store.InboxItem) { fmt.Fprintln(w, text.Line(said, 300)) })
}
