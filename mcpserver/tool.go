package mcpserver

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// toolsText has the tools as clients see them, by their names, but for the signals,
// which are made of their payloads.
//
//go:embed tools.json
var toolsText []byte

// A described tool is one of them.
type described struct {
	Description string             `json:"description"`
	Input       *jsonschema.Schema `json:"input"`
}

// describedTools are all of them. It panics if one cannot be read, which only a change
// of this package can cause.
var describedTools = sync.OnceValue(func() (tools map[string]described) {
	if err := json.Unmarshal(toolsText, &tools); err != nil {
		panic(err)
	}
	return tools
})

// A telling is how a tool answers: with what it comes to, or why it failed.
type telling func(v any, err error) *mcp.CallToolResult

// serve serves a tool whose input is a T.
func serve[T any](server *mcp.Server, name string, tell telling,
	call func(ctx context.Context, req *mcp.CallToolRequest, in T) (any, error),
) {
	t := describedTools()[name]
	addTool(server, name, t.Description, t.Input, tell, func(ctx context.Context, req *mcp.CallToolRequest) (any, error) {
		var in T
		if err := arguments(t.Input, req.Params.Arguments, &in); err != nil {
			return nil, err
		}
		// The client may be gone before the answer; what it asked for is done all the same.
		return call(context.WithoutCancel(ctx), req, in)
	})
}

// addTool serves a tool. Everything that is wrong with a call is a tool error, which the
// model can read and mend.
func addTool(server *mcp.Server, name, description string, schema *jsonschema.Schema, tell telling,
	call func(ctx context.Context, req *mcp.CallToolRequest) (any, error),
) {
	no := false
	server.AddTool(&mcp.Tool{
		Name: name, Description: description, InputSchema: schema,
		Annotations: &mcp.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &no},
	}, func(ctx context.Context, req *mcp.CallToolRequest) (result *mcp.CallToolResult, err error) {
		defer func() {
			// A panic would end the process and with it the session's only way to speak.
			if r := recover(); r != nil {
				result, err = tell(nil, fmt.Errorf("internal error: %v", r)), nil
			}
		}()
		v, err := call(ctx, req)
		return tell(v, err), nil
	})
}

// told is a text for the client.
func told(s string, failed bool) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}, IsError: failed}
}

// spoken answers in words.
func spoken(v any, err error) *mcp.CallToolResult {
	if err != nil {
		return told("Not recorded: "+err.Error(), true)
	}
	return told(fmt.Sprint(v), false)
}

// asJSON answers with JSON, also if it fails: {"error": …}.
func asJSON(v any, err error) *mcp.CallToolResult {
	if ask, ok := v.(*mcp.CallToolResult); ok && err == nil {
		return ask
	}
	if err != nil {
		v = map[string]string{"error": err.Error()}
	}
	b, bad := json.MarshalIndent(v, "", "  ")
	if bad != nil {
		return told(`{"error": "the answer cannot be written as JSON"}`, true)
	}
	return told(string(b), err != nil)
}

// listed answers with a list as JSON, and with words if it fails.
func listed(v any, err error) *mcp.CallToolResult {
	if err != nil {
		return spoken(nil, err)
	}
	return asJSON(v, nil)
}
