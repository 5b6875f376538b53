package scripted

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// permitted asks the tool of --permission-prompt-tool for permission to
// use a tool, and shows a refusal.
func (a *agent) permitted(ctx context.Context, name, id string, input any) (bool, error) {
	o := a.options
	if o.permissionTool == "" || o.mode == "bypassPermissions" || o.mode == "acceptEdits" && name == "Write" ||
		slices.Contains(strings.Split(o.allowed, ","), name) {
		return true, nil
	}
	i := slices.IndexFunc(a.tools, func(t tool) bool { return t.shown == o.permissionTool })
	if i < 0 {
		return false, fmt.Errorf("MCP tool %s (passed via --permission-prompt-tool) not found", o.permissionTool)
	}
	result, err := a.tools[i].session.CallTool(ctx, &mcp.CallToolParams{
		Name:      a.tools[i].name,
		Arguments: map[string]any{"tool_name": name, "input": input, "tool_use_id": id},
	})
	if err != nil {
		return false, err
	}
	var answer struct{ Behavior, Message string }
	for _, c := range result.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			err = json.Unmarshal([]byte(text.Text), &answer)
		}
	}
	if err != nil {
		return false, fmt.Errorf("answer of %s: %w", o.permissionTool, err)
	}
	if answer.Behavior == "allow" {
		return true, nil
	}
	a.events.denials = append(a.events.denials, object{"tool_name": name, "tool_use_id": id, "tool_input": input})
	a.events.toolResult(id, answer.Message, true)
	return false, nil
}
