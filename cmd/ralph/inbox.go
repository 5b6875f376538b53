package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"ralph/internal/inbox"
	"ralph/internal/term"
	"ralph/store"
)

func newInbox(a *app) *cobra.Command {
	var interactive bool
	cmd := newCommand("inbox [ITEM]", func(cmd *cobra.Command, args []string) error {
		if interactive {
			d := inbox.Dialogue{
				In: bufio.NewScanner(a.in), Out: a.out, Screen: a.screen(), Do: a.again,
				Inbox:  func(ctx context.Context) ([]store.InboxItem, error) { return look(ctx, a, inbox.All) },
				Change: func(ctx context.Context, i store.InboxItem) error { return a.showReviewed(ctx, a.out, i) },
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			return d.Run(ctx)
		}
		if len(args) > 0 {
			named := func(tx *store.Tx) ([]store.InboxItem, error) { return inbox.Named(tx, args) }
			list, err := read(cmd.Context(), a, named)
			if err != nil || a.json {
				return showOf(cmd.Context(), a, read, named, nil)
			}
			a.showItem(a.out, list[0])
			return a.showReviewed(cmd.Context(), a.out, list[0])
		}
		return showOf(cmd.Context(), a, look, inbox.All, func(w io.Writer, list []store.InboxItem) {
			if len(list) == 0 {
				fmt.Fprintln(w, "nothing waits for you")
			}
			for _, i := range list {
				a.showItem(w, i)
			}
		})
	})
	cmd.Flags().BoolVarP(&interactive, "interactive", "i", false, "answer them one after the other")
	return cmd
}

// showItem writes an item of the inbox, and the commands that answer it.
func (a *app) showItem(w io.Writer, i store.InboxItem) {
	s := a.screen()
	inbox.Item(w, s, i, false, time.Now())
	if len(i.Commands) > 0 {
		const before = "          "
		fmt.Fprintln(w, s.Hang(before, s.Paint(term.Dim, strings.Join(i.Commands, " · "))))
	}
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
