package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ralph"
	"ralph/internal/config"
	"ralph/internal/permission"
	"ralph/store"
)

// PermissionTool is the tool by which the agent's program asks whether the model
// may use another one (decision 2).
const PermissionTool = "ralph.permission"

// A permissionQuestion is what the agent's program sends.
type permissionQuestion struct {
	Tool      string          `json:"tool_name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
}

// A permissionAnswer is what it expects: behavior is "allow" or "deny".
type permissionAnswer struct {
	Behavior string          `json:"behavior"`
	Input    json.RawMessage `json:"updatedInput,omitempty"`
	Message  string          `json:"message,omitempty"`
}

// addPermission serves the tool.
func addPermission(server *mcp.Server, o Options) {
	name := PermissionTool
	if o.Underscore {
		name = strings.ReplaceAll(name, ".", "_")
	}
	t := describedTools()[PermissionTool]
	server.AddTool(&mcp.Tool{Name: name, Description: t.Description, InputSchema: t.Input},
		func(ctx context.Context, req *mcp.CallToolRequest) (result *mcp.CallToolResult, err error) {
			deny := func(why string) *mcp.CallToolResult { return answer(permissionAnswer{Behavior: "deny", Message: why}) }
			defer func() {
				if r := recover(); r != nil {
					result, err = deny(fmt.Sprintf("ralph could not decide: internal error: %v", r)), nil
				}
			}()
			var q permissionQuestion
			if err := json.Unmarshal(req.Params.Arguments, &q); err != nil || q.Tool == "" {
				return deny("ralph could not read the question: it needs tool_name and input"), nil
			}
			allow, why, err := o.Permit(ctx, q.Tool, q.Input)
			switch {
			case err != nil:
				return deny("ralph could not decide: " + err.Error()), nil
			case !allow:
				return deny(why), nil
			}
			return answer(permissionAnswer{Behavior: "allow", Input: q.Input}), nil
		})
}

func answer(a permissionAnswer) *mcp.CallToolResult {
	b, err := json.Marshal(a)
	if err != nil { // cannot be: the input has been read from JSON
		return told(`{"behavior":"deny","message":"ralph could not answer"}`, false)
	}
	return told(string(b), false)
}

// permissionsVariable carries the rules to the server of a session.
const permissionsVariable = "RALPH_PERMISSIONS"

// permitter answers an agent's questions by the rules that its server was given,
// and records each.
func permitter(db *store.DB, s Session) (func(context.Context, string, json.RawMessage) (bool, string, error), error) {
	given, err := permission.ReadRules(s.Permissions)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, tool string, input json.RawMessage) (bool, string, error) {
		a := given.Policy.Decide(tool, input)
		kept := string(input)
		var expires ralph.Time
		if a.Verdict == permission.Ask {
			expires = ralph.At(time.Now().Add(given.Timeout))
		} else if len(kept) > ralph.MaxPermissionInput {
			kept = kept[:ralph.MaxPermissionInput] + "…"
		}
		// The client may go away meanwhile; what was decided is recorded all the same.
		id, err := db.AddPermission(context.WithoutCancel(ctx), ralph.Permission{
			TaskID: s.TaskID, SessionID: s.SessionID, Tool: tool, Input: strings.ToValidUTF8(kept, "\uFFFD"),
			Decision: string(a.Verdict), Rule: a.Rule, Reason: a.Reason, Expires: expires,
		})
		if err != nil || a.Verdict != permission.Ask {
			return a.Verdict == permission.Allow, a.Reason, err
		}
		return awaitPermission(ctx, db, id, given.Timeout)
	}, nil
}

// awaitPermission waits for a person's word, and denies when nobody answers.
func awaitPermission(ctx context.Context, db *store.DB, id int64, limit time.Duration) (bool, string, error) {
	late := time.NewTimer(limit)
	defer late.Stop()
	for {
		changed := db.Changed()
		var p ralph.Permission
		if err := db.View(context.WithoutCancel(ctx), func(tx *store.Tx) (err error) {
			p, err = tx.Permission(id)
			return err
		}); err != nil {
			return false, "", err
		}
		if !p.DecidedAt.IsZero() {
			return p.Decision == string(permission.Allow), p.Reason, nil
		}
		reason := ""
		select {
		case <-changed:
			continue
		case <-late.C:
			reason = fmt.Sprintf("nobody answered within %s. Do without it, or signal blocked (external) and say what you need.",
				config.FormatDuration(limit))
		case <-ctx.Done():
			reason = "the agent did not wait for the answer"
		}
		err := db.Tx(context.WithoutCancel(ctx), func(tx *store.Tx) error {
			return tx.DecidePermission(id, string(permission.Deny), reason, "")
		})
		return false, reason, err
	}
}
