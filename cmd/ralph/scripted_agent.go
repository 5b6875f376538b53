package main

import (
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/loop/agent/scripted"
)

// newScriptedAgent makes the stand-in for claude that `ralph demo` and the tests use.
func newScriptedAgent(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "scripted-agent [CLAUDE'S ARGUMENTS]", Hidden: true, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			if status := scripted.Main(ctx, args, a.in, a.out, a.err, os.Getenv); status != 0 {
				return &ralph.ExitError{Status: status}
			}
			return nil
		},
	}
}
