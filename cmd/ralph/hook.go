package main

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/store"
)

// newHook is what Claude asks before it changes a file, where sessions.enforce is
// set: it refuses until the session has reported a phase.
func newHook(a *app) *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use: "hook", Short: "Answer the agent's hook before it changes a file", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			raw, err := io.ReadAll(io.LimitReader(a.in, 8<<20))
			if err != nil {
				return err
			}
			var call struct {
				SessionID string `json:"session_id"`
			}
			if err := json.Unmarshal(raw, &call); err != nil {
				return err
			}
			db, err := store.Open(cmd.Context(), path, store.Options{MustExist: true})
			if err != nil {
				return err
			}
			defer db.Close()
			var s ralph.Session
			if err := db.View(cmd.Context(), func(tx *store.Tx) (err error) { s, err = tx.Session(call.SessionID); return err }); err != nil {
				return err
			}
			for _, h := range s.History {
				if h.Source == ralph.Reported {
					return nil // it says nothing: the agent goes on by its own rules
				}
			}
			return json.NewEncoder(a.out).Encode(map[string]any{"hookSpecificOutput": map[string]string{
				"hookEventName": "PreToolUse", "permissionDecision": "deny",
				"permissionDecisionReason": "Report your phase before you change files: call " + stateTool + ` with {"state": "implementing"}, then try again.`,
			}})
		},
	}
	cmd.Flags().StringVar(&path, "database", "", "ralph's database")
	return cmd
}
