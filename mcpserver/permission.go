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

// PermissionTool is the tool by which the agent's program asks whether the
// model may use another tool (decision 2).
const PermissionTool = "ralph.permission"

// A permissionQuestion is the input of that tool.
type permissionQuestion struct {
	Tool      string          `json:"tool_name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
}

// A permissionAnswer is its output; behavior is "allow" or "deny".
type permissionAnswer struct {
	Behavior string          `json:"behavior"`
	Input    json.RawMessage `json:"updatedInput,omitempty"`
	Message  string          `json:"message,omitempty"`
}

// addPermission adds the tool.
func addPermission(server *mcp.Server, o Options) {
	t := describedTools()[PermissionTool]
	server.AddTool(&mcp.Tool{Name: PermissionTool, Description: t.Description, InputSchema: t.Input},
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
	if err != nil { // cannot happen: the input was parsed from JSON
		return told(`{"behavior":"deny","message":"ralph could not answer"}`, false)
	}
	return told(string(b), false)
}

// permit decides an agent's request by the session's rules, and records it.
func (s Session) permit(ctx context.Context, tool string, input json.RawMessage) (bool, string, error) {
	a := s.Rules.Policy.Decide(tool, input)
	stored := string(input)
	if s.Mask != nil {
		stored = s.Mask(stored)
	}
	var expires ralph.Time
	if a.Verdict == permission.Ask {
		expires = ralph.At(time.Now().Add(s.Rules.Timeout))
	} else if len(stored) > ralph.MaxPermissionInput {
		stored = stored[:ralph.MaxPermissionInput] + "…"
	}
	// The decision is recorded even if the client goes away.
	id, err := s.Store.AddPermission(context.WithoutCancel(ctx), ralph.Permission{
		TaskID: s.TaskID, SessionID: s.SessionID, Tool: tool, Input: strings.ToValidUTF8(stored, "\uFFFD"),
		Decision: string(a.Verdict), Rule: a.Rule, Reason: a.Reason, Expires: expires,
	})
	if err != nil || a.Verdict != permission.Ask {
		return a.Verdict == permission.Allow, a.Reason, err
	}
	return awaitPermission(ctx, s.Store, id, s.Rules.Timeout)
}

// awaitPermission waits for a person's decision, and denies the request without one.
func awaitPermission(ctx context.Context, db *store.DB, id int64, limit time.Duration) (bool, string, error) {
	late := time.NewTimer(limit)
	defer late.Stop()
	for {
		changed := db.Changed()
		p, err := store.Read(context.WithoutCancel(ctx), db, func(tx *store.Tx) (ralph.Permission, error) {
			return tx.Permission(id)
		})
		if err != nil {
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
			reason = fmt.Sprintf("nobody answered within %s. Do without it, or signal blocked (external) and say "+
				"why you need it.",
				config.FormatDuration(limit))
		case <-ctx.Done():
			reason = "the agent did not wait for the answer"
		}
		err = db.Tx(context.WithoutCancel(ctx), func(tx *store.Tx) error {
			return tx.DecidePermission(id, string(permission.Deny), reason, "")
		})
		return false, reason, err
	}
}
