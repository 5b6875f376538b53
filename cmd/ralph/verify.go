package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/project"
	"ralph/internal/show"
	"ralph/internal/state"
	"ralph/internal/words"
	"ralph/store"
)

func newVerify(a *app) *cobra.Command {
	verbose := false
	cmd := newCommand("verify [TASK]", func(cmd *cobra.Command, args []string) error {
		task, err := optionalTask(append(args, "")[0])
		if err != nil {
			return err
		}
		said := func(c ralph.Check, output io.ReadSeeker) error {
			switch {
			case a.json:
				return nil
			case verbose:
				return show.Output(a.out, c, output)
			}
			_, err := fmt.Fprintln(a.out, words.Check(c, words.TailLines))
			return err
		}
		return a.with(cmd.Context(), func(p *project.Project, db *store.DB) error {
			checks, _, err := p.Verify(cmd.Context(), db, task, said)
			if err != nil {
				return err
			}
			if len(checks) == 0 {
				return usage(fmt.Errorf("there is nothing to run: set verify in %s, or give the task commands of its own "+
					"(ralph task edit ID --verify COMMAND)", state.ConfigName))
			}
			if a.json {
				err = a.print(checks, nil)
			}
			if !ralph.Green(checks) {
				return &ralph.ExitError{Status: ralph.ExitFailed}
			}
			return err
		})
	})
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "print the whole output of each command")
	return cmd
}
