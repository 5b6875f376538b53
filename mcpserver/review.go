package mcpserver

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ralph"
	"ralph/loop/agent"
)

const reviewInstructions = "Report your review with these tools. Nothing else that you write is read."

// newReview returns the server of a session that reviews.
func newReview(version string, r agent.Review) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "ralph", Version: version},
		&mcp.ServerOptions{Instructions: reviewInstructions, Capabilities: &mcp.ServerCapabilities{}})
	if !r.Only {
		serve(server, ralph.ObjectTool, spoken, func(_ context.Context, o ralph.Objection) (any, error) {
			return fmt.Sprintf("Recorded against %s.", o.At()), r.Object(o)
		})
		serve(server, ralph.ApproveTool, spoken, func(_ context.Context, in struct {
			Checked string `json:"checked"`
		},
		) (any, error) {
			return "Recorded: you approve the change.", r.Approve(in.Checked)
		})
	}
	if r.Tests != nil {
		serve(server, ralph.TestsTool, spoken, func(_ context.Context, in struct {
			Asks string `json:"asks"`
			Why  string `json:"why"`
		},
		) (any, error) {
			return "Recorded: " + in.Asks + ".", r.Tests(in.Asks, in.Why)
		})
	}
	return server
}
