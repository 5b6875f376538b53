package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ralph"
	"ralph/loop"
	"ralph/loop/agent/claude"
	"ralph/store"
)

// A ProgressCall is a call of agentic_task_update_progress.
type ProgressCall struct {
	TaskID        taskID   `json:"task_id"`
	Iteration     float64  `json:"iteration"`
	FilesModified []string `json:"files_modified"`
	TestsStatus   string   `json:"tests_status"`
	Notes         string   `json:"notes"`
	TokensUsed    int64    `json:"tokens_used"`
	TokensLimit   int64    `json:"tokens_limit"`
}

// A CompleteCall is a call of agentic_task_complete.
type CompleteCall struct {
	TaskID    taskID   `json:"task_id"`
	Learnings []string `json:"learnings"`
	Summary   string   `json:"summary"`
}

// A CheckpointCall is a call of agentic_create_checkpoint.
type CheckpointCall struct {
	TaskID        taskID   `json:"task_id"`
	Iteration     float64  `json:"iteration"`
	WorkCompleted []string `json:"work_completed"`
	RemainingWork []string `json:"remaining_work"`
	TokensUsed    int64    `json:"tokens_used"`
	TokensLimit   int64    `json:"tokens_limit"`
}

// An UndoCall is a call of agentic_task_undo.
type UndoCall struct {
	TaskID  taskID `json:"task_id"`
	Reason  string `json:"reason"`
	ByAgent bool   `json:"by_agent"`
}

// HumanTools lists the tools of the human profile, without those for discussion.
var HumanTools = []string{
	"agentic_get_active_task", "agentic_task_show", "agentic_task_update_progress",
	"agentic_task_complete", "agentic_task_undo", "agentic_plan_show", "agentic_plan_decide", "agentic_get_token_status",
	"agentic_create_checkpoint",
}

const humanInstructions = "A person has claimed a task in ralph and works on it with you. " +
	"Begin with agentic_get_active_task, report with agentic_task_update_progress after each iteration, " +
	"and finish with agentic_task_complete, which checks the work: only its answer makes the task complete."

// newHuman returns a server for the chat of a person with a claimed task (human, "MCP tools of this profile"). It
// panics if a schema is invalid, which is a fault of this package.
func newHuman(c *Chats) *mcp.Server {
	h := &chat{Chats: c, headless: claude.Headless(c.Getenv), doubted: map[int64]bool{}}
	server := mcp.NewServer(&mcp.Implementation{Name: "ralph", Version: c.Version},
		&mcp.ServerOptions{Instructions: humanInstructions, Capabilities: &mcp.ServerCapabilities{}})
	serve(server, "agentic_get_active_task", asJSON, h.active)
	serve(server, "agentic_task_show", asJSON, h.show)
	serve(server, "agentic_task_update_progress", asJSON, h.progress)
	serveRequest(server, "agentic_task_complete", asJSON, h.completeAsked)
	serveRequest(server, "agentic_task_undo", asJSON, h.undoAsked)
	serve(server, "agentic_plan_show", asJSON, h.planShown)
	serveRequest(server, "agentic_plan_decide", asJSON, h.planAsked)
	serve(server, "agentic_get_token_status", asJSON, h.tokenStatus)
	serve(server, "agentic_create_checkpoint", asJSON, h.checkpoint)
	addDiscussion(server, discussing(h.discuss).comment, discussing(h.discuss).propose)
	addReading(server, h.Store, func(context.Context) error { return nil }, h.resolve)
	addResources(server, h)
	return server
}

// modern is the first version of the protocol in which a server asks
// through its answer, and gets the person's reply in a second call.
const modern = "2026-07-28"

// completeAsked asks the person in the client's way, if there is one. If the reply comes in a second call, it asks
// before the checks, which would otherwise run twice.
func (c *chat) completeAsked(ctx context.Context, req *mcp.CallToolRequest, in CompleteCall) (any, error) {
	client := req.Session.InitializeParams()
	if client == nil || client.Capabilities == nil || client.Capabilities.Elicitation == nil {
		return c.complete(ctx, in, nil)
	}
	if client.ProtocolVersion < modern {
		return c.complete(ctx, in, func(ctx context.Context, question string) (bool, error) {
			said, err := req.Session.Elicit(ctx, elicitation(question))
			if err != nil {
				return false, fmt.Errorf("the person could not be asked whether TASK-%d is to be completed: %w", in.TaskID, err)
			}
			return agreed(said), nil
		})
	}
	if len(req.Params.InputResponses) == 0 {
		question := fmt.Sprintf("Complete TASK-%d? ralph checks the work first.", in.TaskID)
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"confirm": elicitation(question)}}, nil
	}
	said, ok := req.Params.InputResponses["confirm"].(*mcp.ElicitResult)
	if !ok {
		return nil, errors.New("the answer to the question whether the task is to be completed is missing")
	}
	return c.complete(ctx, in, func(context.Context, string) (bool, error) { return agreed(said), nil })
}

// undoAsked undoes a task's merged changes if the person agrees in the client's own way: a model cannot agree for them.
func (c *chat) undoAsked(ctx context.Context, req *mcp.CallToolRequest, in UndoCall) (any, error) {
	if err := ralph.CheckText("reason", in.Reason, false); err != nil {
		return nil, err
	}
	to, err := store.Read(ctx, c.Store, func(tx *store.Tx) (to ralph.Status, err error) {
		_, to, err = tx.Undoable(int64(in.TaskID))
		return to, err
	})
	if err != nil {
		return nil, err
	}
	question := fmt.Sprintf("Undo the merged changes of TASK-%d, and cancel the task?", in.TaskID)
	if to == ralph.Completed {
		question = fmt.Sprintf("Bring back the work of TASK-%d, which was undone?", in.TaskID)
	}
	pending, err := c.agrees(ctx, req, question, string(to), fmt.Sprintf("`ralph undo %d` in a terminal does it, as does "+
		"the task's page of the dashboard", in.TaskID), fmt.Sprintf("TASK-%d stays as it is", in.TaskID))
	if err != nil || pending != nil {
		return pending, err
	}
	said, err := c.Loop.AskUndo(ctx, int64(in.TaskID),
		loop.Undoing{By: c.Person, Why: in.Reason, Agent: in.ByAgent, To: to})
	if err == nil {
		err = c.Merge(ctx)
	}
	return map[string]string{"result": said}, err
}

// agrees asks the person in the client's own way, because a model cannot agree for them. A client that answers in a
// second call gets the question first, as pending, and returns it in that call. An error means that nothing may be
// done: the client cannot ask, and elsewhere names another way; or the person refused, and stays names the unchanged
// things.
func (c *chat) agrees(
	ctx context.Context, req *mcp.CallToolRequest, question, about, elsewhere, stays string,
) (pending any, err error) {
	client := req.Session.InitializeParams()
	if client == nil || client.Capabilities == nil || client.Capabilities.Elicitation == nil || c.headless {
		return nil, fmt.Errorf("a person has to say so, and this client cannot ask them: %s", elsewhere)
	}
	var yes bool
	switch {
	case client.ProtocolVersion < modern:
		said, err := req.Session.Elicit(ctx, elicitation(question))
		if err != nil {
			return nil, fmt.Errorf("the person could not be asked: %w; %s", err, stays)
		}
		yes = agreed(said)
	case len(req.Params.InputResponses) == 0:
		return &mcp.CallToolResult{
			InputRequests: mcp.InputRequestMap{"confirm": elicitation(question)}, RequestState: about,
		}, nil
	default:
		said, ok := req.Params.InputResponses["confirm"].(*mcp.ElicitResult)
		if yes = ok && agreed(said); yes && req.Params.RequestState != about {
			return nil, ralph.Conflict("it was changed after the person was asked: %s", stays)
		}
	}
	if !yes {
		return nil, fmt.Errorf("the person did not confirm it: %s", stays)
	}
	return nil, nil //nolint:nilnil // nothing is pending, and nothing is wrong
}

// elicitation asks for yes or no only, which every form supports.
func elicitation(question string) *mcp.ElicitParams {
	form := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}}
	return &mcp.ElicitParams{Message: question, RequestedSchema: form}
}

// agreed reports whether the person said yes.
func agreed(said *mcp.ElicitResult) bool { return said.Action == "accept" }

// addResources adds the task, its timeline and its prompt as resources,
// and the prompt work-on-task.
func addResources(server *mcp.Server, h *chat) {
	for _, r := range []struct {
		name, about, suffix string
		read                func(context.Context, int64) (string, error)
	}{
		{"task", "A task with its description, criteria, dependencies and learnings", "", h.taskText},
		{"timeline", "A task's comments and signals, oldest first", "/timeline", h.timelineText},
		{"prompt", "The prompt for a chat that works on the task", "/prompt", h.promptText},
	} {
		read := func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			id, err := resourceTask(req.Params.URI, r.suffix)
			if err != nil {
				return nil, mcp.ResourceNotFoundError(req.Params.URI)
			}
			s, err := r.read(ctx, id)
			if errors.Is(err, ralph.ErrNotFound) {
				return nil, mcp.ResourceNotFoundError(req.Params.URI)
			}
			text := &mcp.ResourceContents{URI: req.Params.URI, MIMEType: "text/markdown", Text: s}
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{text}}, err
		}
		server.AddResource(&mcp.Resource{
			URI:         "ralph://task/active" + r.suffix,
			Name:        "active-" + r.name,
			Description: r.about + " (the claimed task).",
			MIMEType:    "text/markdown",
		}, read)
		server.AddResourceTemplate(&mcp.ResourceTemplate{
			URITemplate: "ralph://task/{id}" + r.suffix,
			Name:        r.name,
			Description: r.about + ".",
			MIMEType:    "text/markdown",
		}, read)
	}
	server.AddPrompt(&mcp.Prompt{
		Name: "work-on-task", Description: "Work on the task that is claimed in ralph.",
		Arguments: []*mcp.PromptArgument{{
			Name: "task_id", Description: "The task, if several are claimed: 12, #12 or TASK-12.",
		}},
	}, func(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		var id int64
		if s := strings.TrimSpace(req.Params.Arguments["task_id"]); s != "" {
			var err error
			if id, err = ralph.ParseTaskID(s); err != nil {
				return nil, err
			}
		}
		s, err := h.promptText(ctx, id)
		if err != nil {
			return nil, err
		}
		return &mcp.GetPromptResult{
			Description: "Work on the task that is claimed in ralph.",
			Messages:    []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: s}}},
		}, nil
	})
}

// resourceTask returns the task of "ralph://task/12/timeline"; 0 for the active one.
func resourceTask(uri, suffix string) (int64, error) {
	id := strings.TrimSuffix(strings.TrimPrefix(uri, "ralph://task/"), suffix)
	if id == "active" {
		return 0, nil
	}
	return ralph.ParseTaskID(id)
}
