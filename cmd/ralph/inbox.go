package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ralph/store"
)

func newInbox(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "inbox", Short: "List all that waits for a person, with the command that settles it", Example: "  ralph inbox", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var inbox []store.InboxItem
			if err := a.read(cmd.Context(), func(tx *store.Tx) (err error) { inbox, err = tx.Inbox(); return err }); err != nil {
				return err
			}
			return a.print(inbox, func(w io.Writer) error {
				if len(inbox) == 0 {
					_, err := fmt.Fprintln(w, "nothing waits for you")
					return err
				}
				for _, i := range inbox {
					fmt.Fprintf(w, "%-10s TASK-%d %s\n           %s\n", i.Kind, i.TaskID, oneLine(i.Title, 80), oneLine(i.Text, 400))
					for _, o := range i.Options {
						mark := " "
						if o == i.Preferred {
							mark = "*"
						}
						fmt.Fprintf(w, "           %s %s\n", mark, oneLine(o, 200))
					}
					if _, err := fmt.Fprintf(w, "           → %s\n", i.Command); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}
