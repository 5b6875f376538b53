package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/pipe"
)

// hookDenies is the exit status of a hook that denies the use of a tool. Agents read the reason on standard error.
const hookDenies = 2

// newHook is started by an agent within a session before each use of a tool. It asks the run for permission.
func newHook(a *app) *cobra.Command {
	cmd := newCommand("hook", func(cmd *cobra.Command, _ []string) error {
		socket := a.getenv(pipe.Variable)
		if socket == "" {
			return usage(errors.New("agents start hooks in a session of a run; there is none here"))
		}
		question, err := io.ReadAll(a.in)
		why := ""
		if err == nil {
			err = pipe.Ask(cmd.Context(), socket, pipe.Hook, question, &why)
		}
		if err != nil {
			why = "ralph could not decide: " + err.Error()
		}
		if why == "" {
			return nil
		}
		fmt.Fprintln(a.err, why)
		return &ralph.ExitError{Status: hookDenies}
	})
	cmd.Hidden = true
	cmd.Long = "Ask the run for permission, before an agent uses a tool."
	return cmd
}
