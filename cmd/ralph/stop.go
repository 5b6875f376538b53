package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/loop"
	"ralph/store"
)

func newStop(a *app) *cobra.Command {
	var now bool
	cmd := control(a, "stop", "End the run after the session in progress", func() string {
		if now {
			return ralph.ControlStopNow
		}
		return ralph.ControlStop
	})
	cmd.Flags().BoolVar(&now, "now", false, "stop the session in progress too")
	return cmd
}

func newPause(a *app) *cobra.Command {
	return control(a, "pause", "Start no further session until `ralph resume`", func() string { return ralph.ControlPause })
}

func newResume(a *app) *cobra.Command {
	return control(a, "resume", "Go on after `ralph pause`", func() string { return ralph.ControlNone })
}

func control(a *app, use, short string, what func() string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: "  ralph " + use, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := a.with(cmd.Context(), func(p *project, db *store.DB) error {
				active, err := loop.Active(p.state)
				if err != nil {
					return err
				}
				if !active {
					return fmt.Errorf("no run is active: %w", ralph.ErrConflict)
				}
				return db.Tx(cmd.Context(), func(tx *store.Tx) error { return tx.Control(what()) })
			})
			if err != nil {
				return err
			}
			return a.print(map[string]string{"control": what()}, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s: the run has been told\n", use)
				return err
			})
		},
	}
}
