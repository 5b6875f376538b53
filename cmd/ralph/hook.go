package main

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/loop/agent/claude"
	"ralph/store"
)

// newHook is what the agent asks before it changes a file, where sessions.enforce is
// set: it refuses until the session has reported a phase.
func newHook(a *app) *cobra.Command {
	var path string
	cmd := newCommand("hook", func(cmd *cobra.Command, _ []string) error {
		raw, err := io.ReadAll(io.LimitReader(a.in, 8<<20))
		if err != nil {
			return err
		}
		id, err := claude.HookSession(raw)
		if err != nil {
			return err
		}
		db, err := store.Open(cmd.Context(), path, store.Options{MustExist: true})
		if err != nil {
			return err
		}
		defer db.Close()
		var s ralph.Session
		err = db.View(cmd.Context(), func(tx *store.Tx) (err error) { s, err = tx.Session(id); return err })
		if err != nil {
			return err
		}
		for _, h := range s.History {
			if h.Source == ralph.Reported {
				return nil // it says nothing: the agent goes on by its own rules
			}
		}
		return json.NewEncoder(a.out).Encode(claude.HookDenial("Report your phase before you change files: call " +
			claude.StateTool + ` with {"state": "implementing"}, then try again.`))
	})
	cmd.Hidden = true
	cmd.Flags().StringVar(&path, "database", "", "ralph's database")
	return cmd
}
