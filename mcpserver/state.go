package mcpserver

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ralph"
	"ralph/store"
)

// StateTool is the tool for an agent's reports of its phase.
const StateTool = "update_session_state"

// A StateChange is the tool's input.
type StateChange struct {
	SessionID string         `json:"sessionId"` // "" for the server's own session
	State     ralph.Phase    `json:"state"`
	Metadata  map[string]any `json:"metadata"` // nil if none was given
}

// A StateReply is the tool's output.
type StateReply struct {
	Success        bool        `json:"success"`
	PreviousState  ralph.Phase `json:"previousState"`
	NewState       ralph.Phase `json:"newState"`
	TransitionedAt ralph.Time  `json:"transitionedAt"`
}

// addState adds the tool.
func addState(server *mcp.Server, set func(ctx context.Context, c StateChange) (StateReply, error)) {
	tell := func(v any, err error) *mcp.CallToolResult {
		if err != nil {
			return told("Error: "+err.Error(), true)
		}
		return asJSON(v, nil)
	}
	serveRequest(server, StateTool, tell, func(ctx context.Context, req *mcp.CallToolRequest, c StateChange) (any, error) {
		if err := ralph.CheckText("metadata", string(req.Params.Arguments), false); err != nil {
			return nil, err
		}
		return set(ctx, c)
	})
}

// setState records the phase that a session reports.
func setState(ctx context.Context, db *store.DB, session string, c StateChange) (reply StateReply, err error) {
	if c.SessionID != "" && c.SessionID != session {
		return reply, otherSession(ctx, db, c.SessionID, session)
	}
	err = db.Tx(ctx, func(tx *store.Tx) error {
		previous, err := tx.ReportState(session, c.State, c.Metadata)
		reply = StateReply{Success: true, PreviousState: previous, NewState: c.State, TransitionedAt: tx.Now()}
		return err
	})
	return reply, err
}

// otherSession explains why the phase of another session cannot be reported.
func otherSession(ctx context.Context, db *store.DB, id, own string) error {
	if err := db.View(ctx, func(tx *store.Tx) error { return tx.OpenSession(id) }); err != nil {
		return err
	}
	return fmt.Errorf("session %s is not the one that this server serves (%s); leave sessionId out", id, own)
}
