package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ralph/internal/config"
	"ralph/internal/project"
	"ralph/internal/show"
	"ralph/internal/state"
	"ralph/loop"
	"ralph/store"
)

func newStatus(a *app) *cobra.Command {
	var all bool
	cmd := newCommand("status", func(cmd *cobra.Command, _ []string) error {
		var v show.StatusView
		err := a.looking(cmd.Context(), func(p *project.Project, db *store.DB) error {
			err := db.View(cmd.Context(), func(tx *store.Tx) (err error) {
				v, err = show.ReadStatus(tx, loop.Midnight)
				v.Running = v.Run != nil && tx.Alive(*v.Run)
				return err
			})
			if err != nil {
				return err
			}
			v.Ports = [2]int{p.Config.Workspace.Ports, config.Fixed.WorkspacePorts}
			v.Strange = loop.Outside(v.Outside)
			if full := state.Full(p.State); full != "" {
				fmt.Fprintf(a.err, "ralph: %s: a run cannot store what happens\n", full)
			}
			if v.Limits = p.Limits(); v.Running {
				v.Limits = v.Run.Limits
			}
			return nil
		})
		if err != nil {
			return err
		}
		return a.print(v, func(w io.Writer) { show.Status(w, v, all) })
	})
	cmd.Flags().BoolVar(&all, "limits", false, "show every limit, and how far it is used")
	return cmd
}
