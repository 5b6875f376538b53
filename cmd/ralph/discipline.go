package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/store"
)

func newDiscipline(a *app) *cobra.Command {
	return noun("discipline", "Say how sorts of tasks are worked on", newDisciplinePut(a, false), newDisciplinePut(a, true), newDisciplineList(a), newDisciplineShow(a),
		&cobra.Command{
			Use: "remove NAME", Short: "Remove a discipline; its tasks stay", Example: "  ralph discipline remove backend", Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return a.write(cmd.Context(), func(tx *store.Tx) error { return tx.RemoveDiscipline(args[0]) })
			},
		})
}

func newDisciplinePut(a *app, edit bool) *cobra.Command {
	var n ralph.Discipline
	use, short, done := "add NAME", "Add a discipline", "added"
	if edit {
		use, short, done = "edit NAME", "Change a discipline; what is not given stays", "changed"
	}
	cmd := &cobra.Command{
		Use: use, Short: short, Example: "  ralph discipline " + use[:len(use)-5] + " backend --instructions @backend.md --model opus", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if n.Instructions, err = a.text("instructions", n.Instructions); err != nil {
				return err
			}
			var d ralph.Discipline
			write := a.add
			if edit {
				write = a.write
			}
			if err := write(cmd.Context(), func(tx *store.Tx) error {
				d = n
				d.Name = args[0]
				if edit {
					if d, err = tx.Discipline(args[0]); err != nil {
						return err
					}
					if cmd.Flags().Changed("instructions") {
						d.Instructions = n.Instructions
					}
					if cmd.Flags().Changed("model") {
						d.Model = n.Model
					}
				}
				if err := tx.PutDiscipline(d); err != nil {
					return err
				}
				d, err = tx.Discipline(args[0])
				return err
			}); err != nil {
				return err
			}
			return a.print(d, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "discipline %s %s\n", oneLine(d.Name, 100), done)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&n.Instructions, "instructions", "", "`TEXT`, @FILE, or - for standard input")
	cmd.Flags().StringVar(&n.Model, "model", "", "the model for its tasks")
	return cmd
}

func newDisciplineList(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List disciplines", Example: "  ralph discipline list", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list []ralph.Discipline
			if err := a.read(cmd.Context(), func(tx *store.Tx) (err error) { list, err = tx.Disciplines(); return err }); err != nil {
				return err
			}
			return a.print(list, func(w io.Writer) error {
				for _, d := range list {
					if _, err := fmt.Fprintf(w, "%-20s %-10s %s\n", oneLine(d.Name, 100), oneLine(d.Model, 100), oneLine(d.Instructions, 80)); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

func newDisciplineShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show a discipline", Example: "  ralph discipline show backend", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var d ralph.Discipline
			if err := a.read(cmd.Context(), func(tx *store.Tx) (err error) { d, err = tx.Discipline(args[0]); return err }); err != nil {
				return err
			}
			return a.print(d, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s  %s\n%s\n", oneLine(d.Name, 100), oneLine(d.Model, 100), printable(d.Instructions))
				return err
			})
		},
	}
}
