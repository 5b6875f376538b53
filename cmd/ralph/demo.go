package main

import (
	"github.com/spf13/cobra"

	"ralph/internal/demo"
)

func newDemo(a *app) *cobra.Command {
	var agent, dir string
	var keep bool
	cmd := newCommand("demo", "Show what ralph does, on a small project of its own",
		"ralph demo\nralph demo --agent claude --keep", func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("--agent", agent, "scripted", "claude"); err != nil {
				return err
			}
			return demo.Run(cmd.Context(), agent == "claude", dir, keep, a.environ, a.out, a.err)
		})
	cmd.Long = `Make a small project in a temporary directory, fill its queue with five tasks, and
run ralph on it: with a scripted agent that takes seconds and costs nothing, or
with claude. Needs git and sh. Exit status 1 means that something did not end as
it should have.`
	f := cmd.Flags()
	f.StringVar(&agent, "agent", "scripted", "scripted or claude, which costs money")
	f.StringVar(&dir, "dir", "", "make the project in `DIR`, which must be new or empty, and keep it")
	f.BoolVar(&keep, "keep", false, "keep the project")
	return cmd
}
