package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/doctor"
	"ralph/internal/show"
)

func newDoctor(a *app) *cobra.Command {
	var noCheck bool
	cmd := newCommand("doctor", func(cmd *cobra.Command, _ []string) error {
		verifying := func(limit string) {
			if show.Terminal(a.err) {
				fmt.Fprintf(a.err, "ralph: runs the verification (%s a command at most; --no-check leaves it out)\n", limit)
			}
		}
		if noCheck {
			verifying = nil
		}
		findings := doctor.Examine(cmd.Context(), a.project, verifying)
		err := a.print(findings, func(w io.Writer) { each(w, findings, sayFinding) })
		for _, f := range findings {
			if !f.OK {
				return errors.Join(err, &ralph.ExitError{Status: ralph.ExitFailure})
			}
		}
		return err
	})
	cmd.Flags().BoolVar(&noCheck, "no-check", false, "do not run the verification commands")
	return cmd
}

func sayFinding(w io.Writer, f doctor.Finding) {
	mark := "ok  "
	switch {
	case !f.OK:
		mark = "FAIL"
	case f.Mend != "":
		mark = "note" // does not prevent a run
	}
	fmt.Fprintf(w, "%s %-16s %s\n", mark, f.Check, f.Found)
	if f.Mend != "" {
		fmt.Fprintf(w, "     %-16s → %s\n", "", f.Mend)
	}
}
