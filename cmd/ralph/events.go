package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/follow"
	"ralph/internal/project"
	"ralph/internal/state"
	"ralph/store"
)

func newEvents(a *app) *cobra.Command {
	var on bool
	var since int64
	var types []string
	var task string
	cmd := newCommand("events", func(cmd *cobra.Command, _ []string) (err error) {
		r := follow.Events{After: since, Types: types, JSON: a.json, Out: a.out, Screen: a.screen()}
		if r.Task, err = optionalTask(task); err != nil {
			return err
		}
		for _, t := range types {
			if err := oneOf("--type", t, ralph.EventTypes...); err != nil {
				return err
			}
		}
		if since < 0 {
			return usage(&ralph.FieldError{
				Field: fmt.Sprintf("--since %d", since), Problem: "must be an event's id, or 0 for all",
			})
		}
		return a.with(cmd.Context(), func(p *project.Project, db *store.DB) error {
			if on && p.Blank {
				return state.ErrNoQueue // it would not see a queue that is created later
			}
			r.Store = db
			if err := db.View(cmd.Context(), func(tx *store.Tx) error { return tx.CheckTask(r.Task) }); err != nil {
				return err
			}
			if on && !cmd.Flags().Changed("since") {
				if r.After, err = store.Read(cmd.Context(), db, (*store.Tx).LastEvent); err != nil {
					return err
				}
			}
			if !on {
				return r.Print(cmd.Context())
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return r.Follow(ctx)
		})
	})
	cmd.Flags().BoolVarP(&on, "follow", "f", false, "go on with new events")
	cmd.Flags().Int64Var(&since, "since", 0, "only those after the event of this `NUMBER`")
	cmd.Flags().StringArrayVar(&types, "type", nil, "only events of this `TYPE` (repeatable)")
	cmd.Flags().StringVar(&task, "task", "", "only those of `TASK`")
	return cmd
}
