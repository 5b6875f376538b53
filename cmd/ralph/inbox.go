package main

import (
	"fmt"
	"io"
	"strings"

	"ralph/internal/advice"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/text"
	"ralph/store"
)

func newInbox(a *app) *cobra.Command {
	var interactive bool
	cmd := newCommand("inbox", func(cmd *cobra.Command, _ []string) error {
		if interactive {
			return a.settleAll(cmd)
		}
		return showOf(cmd.Context(), a, read, advice.Inbox, func(w io.Writer, inbox []store.InboxItem) {
			if len(inbox) == 0 {
				fmt.Fprintln(w, "nothing waits for you")
			}
			for _, i := range inbox {
				sayItem(w, i, false)
				fmt.Fprintf(w, "           → %s\n", i.Command)
			}
		})
	})
	cmd.Flags().BoolVarP(&interactive, "interactive", "i", false, "settle them one after the other")
	return cmd
}

// sayItem prints what waits; its options with numbers, if one is to be chosen.
func sayItem(w io.Writer, i store.InboxItem, numbered bool) {
	fmt.Fprintf(w, "%s %s\n", ralph.Named(fmt.Sprintf("%-10s", i.Kind), i.TaskID), text.VisibleLine(i.Title))
	sayWhole(w, "           ", i.Text)
	for _, l := range i.Diff {
		fmt.Fprintf(w, "           %s\n", printable(l))
	}
	if !i.Expires.IsZero() {
		fmt.Fprintf(w, "           answers itself with deny at %s\n", i.Expires.Local().Format("15:04:05"))
	}
	for n, o := range i.Options {
		mark := " "
		if o == i.Preferred {
			mark = "*"
		}
		if numbered {
			mark += fmt.Sprintf(" %d", n+1)
		}
		fmt.Fprintf(w, "           %s %s\n", mark, text.VisibleLine(o))
	}
}

// sayWhole prints a text with all its lines, each behind the same blanks.
func sayWhole(w io.Writer, before, text string) {
	for l := range strings.Lines(strings.Trim(printable(text), "\n")) {
		fmt.Fprintln(w, strings.TrimRight(before+l, " \t\n"))
	}
}
