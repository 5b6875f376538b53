package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/advice"
	"ralph/internal/text"
	"ralph/store"
)

func newInbox(a *app) *cobra.Command {
	var interactive bool
	cmd := &cobra.Command{
		Use: "inbox", Short: "List all that waits for a person, with the command that settles it",
		Long: `List all that waits for a person, with the command that settles it. With
--interactive each is asked about, one after the other; what is settled is settled
at once, so that leaving in the middle loses nothing.`,
		Example: "  ralph inbox\n  ralph inbox -i", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if interactive {
				return a.settleAll(cmd)
			}
			var inbox []store.InboxItem
			if err := a.read(cmd.Context(), func(tx *store.Tx) (err error) { inbox, err = inboxOf(tx); return err }); err != nil {
				return err
			}
			return a.print(inbox, func(w io.Writer) error {
				if len(inbox) == 0 {
					_, err := fmt.Fprintln(w, "nothing waits for you")
					return err
				}
				for _, i := range inbox {
					if err := sayItem(w, i, false); err != nil {
						return err
					}
					if _, err := fmt.Fprintf(w, "           → %s\n", i.Command); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVarP(&interactive, "interactive", "i", false, "settle them one after the other")
	return cmd
}

// inboxOf is all that waits for a person, with the commands that settle it.
func inboxOf(tx *store.Tx) ([]store.InboxItem, error) {
	inbox, err := tx.Inbox()
	for n, i := range inbox {
		inbox[n].Command = advice.Command(i)
	}
	return inbox, err
}

// sayItem prints what waits; its options with numbers, if one is to be chosen.
func sayItem(w io.Writer, i store.InboxItem, numbered bool) error {
	_, err := fmt.Fprintf(w, "%s %s\n", ralph.Named(fmt.Sprintf("%-10s", i.Kind), i.TaskID), text.VisibleLine(i.Title))
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
	return err
}

// sayWhole prints a text with all its lines, each behind the same blanks.
func sayWhole(w io.Writer, before, text string) {
	for l := range strings.Lines(strings.Trim(printable(text), "\n")) {
		fmt.Fprintln(w, strings.TrimRight(before+l, " \t\n"))
	}
}
