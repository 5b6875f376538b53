package main

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ralph/internal/advice"
	"ralph/internal/inbox"
	"ralph/store"
)

func newInbox(a *app) *cobra.Command {
	var interactive bool
	cmd := newCommand("inbox", func(cmd *cobra.Command, _ []string) error {
		if interactive {
			return inbox.Dialogue{
				In: bufio.NewScanner(a.in), Out: a.out, Do: a.again,
				Inbox: func(ctx context.Context) ([]store.InboxItem, error) { return read(ctx, a, advice.Inbox) },
			}.Run(cmd.Context())
		}
		return showOf(cmd.Context(), a, read, advice.Inbox, func(w io.Writer, list []store.InboxItem) {
			if len(list) == 0 {
				fmt.Fprintln(w, "nothing waits for you")
			}
			for _, i := range list {
				inbox.Item(w, i, false)
				fmt.Fprintf(w, "           → %s\n", i.Command)
			}
		})
	})
	cmd.Flags().BoolVarP(&interactive, "interactive", "i", false, "settle them one after the other")
	return cmd
}

// again runs another ralph command in this process.
func (a *app) again(ctx context.Context, args []string) error {
	plain := *a
	plain.json = false
	root := newRoot(&plain)
	if a.chdir != "" {
		args = append([]string{"-C", a.chdir}, args...)
	}
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}
