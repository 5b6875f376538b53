package mcpserver

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ralph"
	"ralph/loop/agent"
)

const planInstructions = "These tools are how you make the plan. A task that you only write of is not in it."

// newPlan returns the server of a session that plans.
func newPlan(version string, p agent.Plan) *mcp.Server {
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
