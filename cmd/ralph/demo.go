package main

import (
	"errors"

	"github.com/spf13/cobra"

	"ralph/internal/demo"
)

func newDemo(a *app) *cobra.Command {
	var agent, dir string
	var keep, cheats bool
	cmd := newCommand("demo", func(cmd *cobra.Command, _ []string) error {
		if err := oneOf("--agent", agent, "scripted", "claude", "codex"); err != nil {
			return err
		}
		if cheats {
			if agent != demo.Scripted {
				return usage(errors.New("--cheats is played by the scripted agent"))
			}
			return demo.RunCheats(cmd.Context(), dir, keep, a.environ, a.out, a.err)
		}
		return demo.Run(cmd.Context(), agent, dir, keep, a.environ, a.out, a.err)
	})
	f := cmd.Flags()
	f.StringVar(&agent, "agent", "scripted", "`NAME`: scripted, or claude or codex, which cost money")
	f.BoolVar(&cheats, "cheats", false, "play an agent that cheats; ralph must merge none of its work")
	f.StringVar(&dir, "dir", "", "make the project in `DIR`, which must be new or empty, and keep it")
	f.BoolVar(&keep, "keep", false, "keep the project")
	return cmd
}
