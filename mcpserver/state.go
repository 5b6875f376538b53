package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ralph"
	"ralph/store"
)

// StateTool is the tool by which an agent reports what it is doing.
const StateTool = "update_session_state"

// A StateChange is what an agent reports.
type StateChange struct {
	SessionID string // "" for the session that the server serves
	State     ralph.Phase
	Metadata  map[string]any // nil if none was given
}

// A StateReply is what it is told.
type StateReply struct {
	Success        bool        `json:"success"`
	PreviousState  ralph.Phase `json:"previousState"`
	NewState       ralph.Phase `json:"newState"`
	TransitionedAt ralph.Time  `json:"transitionedAt"`
}

// addState serves the tool.
func addState(server *mcp.Server, o Options) {
	states := make([]any, len(ralph.ReportedPhases))
	for i, p := range ralph.ReportedPhases {
		states[i] = string(p)
	}
	count := func(what string) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "integer", Description: "Tests that " + what + "."}
	}
	no := false
	schema := closed([]string{"state"}, map[string]*jsonschema.Schema{
		"sessionId": {Type: "string", Description: "Your session; leave it out."},
		"state":     {Type: "string", Enum: states, Description: "The phase that begins now."},
		"metadata": {Type: "object", Description: "What there is to say about it.", Properties: map[string]*jsonschema.Schema{
			"files": {Type: "array", Items: &jsonschema.Schema{Type: "string"}, Description: "The files that it is about."},
			"testResults": {Type: "object", Description: "What the tests came to.", Properties: map[string]*jsonschema.Schema{
				"passed": count("pass"), "failed": count("fail"), "skipped": count("were skipped"),
			}},
			"error": {Type: "string", Description: "What went wrong, if something did."},
		}},
	})
	server.AddTool(&mcp.Tool{
		Name: StateTool,
		Description: "Update the current state of a Ralph session for UI progress tracking. Call this at each phase transition: " +
			"analyzing → implementing → testing → committing → reviewing. It decides nothing and ends nothing.",
		InputSchema: schema,
		Annotations: &mcp.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &no},
	}, func(ctx context.Context, req *mcp.CallToolRequest) (result *mcp.CallToolResult, err error) {
		defer func() {
			if r := recover(); r != nil {
				result, err = stateError(fmt.Errorf("internal error: %v", r)), nil
			}
		}()
		change, err := parseState(schema, req.Params.Arguments)
		if err != nil {
			return stateError(err), nil
		}
		reply, err := o.SetState(context.WithoutCancel(ctx), change)
		if err != nil {
			return stateError(err), nil
		}
		b, err := json.MarshalIndent(reply, "", "  ")
		if err != nil {
			return stateError(err), nil
		}
		return told(string(b)), nil
	})
}

func stateError(err error) *mcp.CallToolResult {
	r := told("Error: " + err.Error())
	r.IsError = true
	return r
}

// parseState reads a call. The error names the field and what is accepted.
func parseState(schema *jsonschema.Schema, raw json.RawMessage) (StateChange, error) {
	var in struct {
		SessionID string         `json:"sessionId"`
		State     ralph.Phase    `json:"state"`
		Metadata  map[string]any `json:"metadata"`
	}
	if err := arguments(schema, raw, &in); err != nil {
		return StateChange{}, err
	}
	return StateChange{in.SessionID, in.State, in.Metadata}, ralph.CheckText("metadata", string(raw), false)
}

// setState records what a session reports of itself.
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

// otherSession says why the state of another session cannot be reported.
func otherSession(ctx context.Context, db *store.DB, id, own string) error {
	if err := db.View(ctx, func(tx *store.Tx) error { return tx.OpenSession(id) }); err != nil {
		return err
	}
	return fmt.Errorf("session %s is not the one that this server serves (%s); leave sessionId out", id, own)
}
