package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// PermissionTool is the tool by which the agent's program asks whether the model
// may use another one (decision 2).
const PermissionTool = "ralph.permission"

// A permissionQuestion is what Claude's --permission-prompt-tool sends.
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
	schema := &jsonschema.Schema{
		Type: "object", Required: []string{"tool_name", "input"},
		Properties: map[string]*jsonschema.Schema{
			"tool_name":   {Type: "string", Description: "The tool that is to be used."},
			"input":       {Type: "object", Description: "Its input."},
			"tool_use_id": {Type: "string", Description: "The id of the call."},
		},
	}
	server.AddTool(&mcp.Tool{
		Name: name, InputSchema: schema,
		Description: "For the program that runs you, not for you: it asks here whether a tool may be used. Calling it yourself has no effect.",
	},
		func(ctx context.Context, req *mcp.CallToolRequest) (result *mcp.CallToolResult, err error) {
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

func deny(why string) *mcp.CallToolResult {
	return answer(permissionAnswer{Behavior: "deny", Message: why})
}

func answer(a permissionAnswer) *mcp.CallToolResult {
	b, err := json.Marshal(a)
	if err != nil { // cannot be: the input has been read from JSON
		return text(`{"behavior":"deny","message":"ralph could not answer"}`)
	}
	return text(string(b))
}
