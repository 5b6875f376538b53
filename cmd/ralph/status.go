package main

import (
	"context"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/config"
	"ralph/internal/machine"
	"ralph/internal/project"
	"ralph/internal/retention"
	"ralph/internal/show"
	"ralph/loop"
	"ralph/loop/agent"
	"ralph/loop/order"
	"ralph/store"
)

// reverted lists the completed tasks whose changes people have reverted; of one task unless task is 0. Unknown facts
// become a warning.
func reverted(ctx context.Context, p *project.Project, db *store.DB, task int64) []ralph.Reverted {
	list, err := p.Reverted(ctx, db, task)
	if err != nil {
		p.Log.Warn("cannot look whether people have reverted merged changes", "error", err)
	}
	return list
}

func newStatus(a *app) *cobra.Command {
	var all bool
	var since string
	cmd := newCommand("status", func(cmd *cobra.Command, _ []string) error {
		var v show.StatusView
		var from ralph.Time
		if since != "" {
			when, err := a.since(cmd.Context(), since)
			if err != nil {
				return err
			}
			from = ralph.At(when)
		}
		err := a.looking(cmd.Context(), func(p *project.Project, db *store.DB) error {
			err := db.View(cmd.Context(), func(tx *store.Tx) (err error) {
				open, err := tx.OpenSessions()
				if err != nil {
					return err
				}
				spent, err := show.Spent(open, func(session string) (io.ReadCloser, error) {
					return retention.Open(filepath.Join(p.Session(session), agent.TranscriptFile))
				})
				if err != nil {
					return err
				}
				v, err = show.ReadStatus(tx, order.Midnight, from, spent)
				v.Running = v.Run != nil && tx.Alive(*v.Run)
				return err
			})
			if err != nil {
				return err
			}
			v.Reverted = append([]ralph.Reverted{}, reverted(cmd.Context(), p, db, 0)...)
			if db.Shared() {
				v.Here = machine.Name()
			}
			v.Ports = [2]int{p.Config.Workspace.Ports, config.Fixed.WorkspacePorts}
			v.Forge = p.ForgeLine(v.Now.Time)
			v.Strange = loop.Outside(v.Outside)
			if v.Limits = p.Limits(); v.Running {
				v.Limits = v.Run.Limits
			}
			return nil
		})
		if err != nil {
			return err
		}
		return a.print(v, func(w io.Writer) { show.Status(w, a.screen(), v, all) })
	})
	cmd.Flags().StringVar(&since, "since", "",
		"sum up all runs since this "+sinceUsage)
	cmd.Flags().BoolVar(&all, "limits", false, "show every limit and its use")
	return cmd
}
