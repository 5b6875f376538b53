package mcpserver

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ralph/internal/advice"
)

// toolsText describes the tools to clients, by name. The signals' tools
// are not in it: they are derived from their payloads.
//
//go:embed tools.json
var toolsText []byte

// A described tool is an entry of toolsText.
type described struct {
	Description string             `json:"description"`
	Input       *jsonschema.Schema `json:"input"`
}

// describedTools returns all entries. It panics if they cannot be parsed,
// which only a change of this package can cause.
var describedTools = sync.OnceValue(func() (tools map[string]described) {
	if err := json.Unmarshal(toolsText, &tools); err != nil {
		panic(err)
	}
	return tools
})

// A telling formats a tool's answer: its result, or why it failed.
type telling func(v any, err error) *mcp.CallToolResult

// serve adds a tool whose input is a T.
func serve[T any](server *mcp.Server, name string, tell telling, call func(ctx context.Context, in T) (any, error)) {
	serveRequest(server, name, tell, func(ctx context.Context, _ *mcp.CallToolRequest, in T) (any, error) {
		return call(ctx, in)
	})
}

// serveRequest is like serve, for calls that need the request.
func serveRequest[T any](server *mcp.Server, name string, tell telling,
	call func(ctx context.Context, req *mcp.CallToolRequest, in T) (any, error),
) {
	t := describedTools()[name]
	addTool(server, name, t.Description, t.Input, tell, func(ctx context.Context, req *mcp.CallToolRequest) (any, error) {
		var in T
		if err := arguments(t.Input, req.Params.Arguments, &in); err != nil {
			return nil, err
		}
		// The client may be gone before the answer; its request still counts.
		return call(context.WithoutCancel(ctx), req, in)
	})
}

// addTool adds a tool. Every problem with a call is a tool error, which
// the model can read and correct.
func addTool(server *mcp.Server, name, description string, schema *jsonschema.Schema, tell telling,
	call func(ctx context.Context, req *mcp.CallToolRequest) (any, error),
) {
	no := false
	server.AddTool(&mcp.Tool{
		Name: name, Description: description, InputSchema: schema,
		Annotations: &mcp.ToolAnnotations{
			DestructiveHint: &no, OpenWorldHint: &no, ReadOnlyHint: slices.Contains(reading, name),
		},
	}, func(ctx context.Context, req *mcp.CallToolRequest) (result *mcp.CallToolResult, err error) {
		defer func() {
			// A panic would end the process, the session's only way to signal.
			if r := recover(); r != nil {
				result, err = tell(nil, fmt.Errorf("internal error: %v", r)), nil
			}
		}()
		v, err := call(ctx, req)
		return tell(v, err), nil
	})
}

// told returns a text for the client.
func told(s string, failed bool) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}, IsError: failed}
}

// spoken answers in plain text.
func spoken(v any, err error) *mcp.CallToolResult {
	if err != nil {
		return told("Not recorded: "+err.Error(), true)
	}
	return told(fmt.Sprint(v), false)
}

// asJSON answers in JSON, also on failure: {"error": …}.
func asJSON(v any, err error) *mcp.CallToolResult {
	if ask, ok := v.(*mcp.CallToolResult); ok && err == nil {
		return ask
	}
	if err != nil {
		v = map[string]string{"error": advice.Explain(err)}
	}
	b, bad := json.MarshalIndent(v, "", "  ")
	if bad != nil {
		return told(`{"error": "the answer cannot be written as JSON"}`, true)
	}
	return told(string(b), err != nil)
}

// listed answers with a list in JSON, or with plain text on failure.
func listed(v any, err error) *mcp.CallToolResult {
	if err != nil {
		return spoken(nil, err)
	}
	return asJSON(v, nil)
}
