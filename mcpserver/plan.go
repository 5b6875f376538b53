package mcpserver

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ralph"
)

// PlanTools take what a session says that plans. Their errors tell the planner how to correct the call.
type PlanTools struct {
	Task func(ctx context.Context, t ralph.PlannedTask) (said string, err error)
	Ask  func(ctx context.Context, question string, options []string) (said string, err error)
	Done func(ctx context.Context, summary string) error
}

const planInstructions = "These tools are how you make the plan. A task that you only write of is not in it."

// newPlan returns the server of a session that plans.
func newPlan(version string, p PlanTools) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "ralph", Version: version},
		&mcp.ServerOptions{Instructions: planInstructions, Capabilities: &mcp.ServerCapabilities{}})
	serve(server, ralph.PlanTaskTool, spoken, func(ctx context.Context, t ralph.PlannedTask) (any, error) {
		return p.Task(ctx, t)
	})
	serve(server, ralph.PlanAskTool, spoken, func(ctx context.Context, in struct {
		Question string   `json:"question"`
		Options  []string `json:"options"`
	},
	) (any, error) {
		return p.Ask(ctx, in.Question, in.Options)
	})
	serve(server, ralph.PlanDoneTool, spoken, func(ctx context.Context, in struct {
		Summary string `json:"summary"`
	},
	) (any, error) {
		return "Recorded. End your turn now: ralph runs the commands of the plan, and people see it then.",
			p.Done(ctx, in.Summary)
	})
	return server
}
