package mcpserver_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ralph"
	"ralph/mcpserver"
)

func TestTheLoopsProfileHasTheseToolsAndNoOthers(t *testing.T) {
	client := connect(t, mcpserver.Options{
		SetState: func(context.Context, mcpserver.StateChange) (mcpserver.StateReply, error) {
			return mcpserver.StateReply{}, nil
		},
		Comment: func(context.Context, mcpserver.CommentCall) (int64, error) { return 0, nil },
		Propose: func(context.Context, mcpserver.AmendmentCall) (int64, error) { return 0, nil },
		Permit:  func(context.Context, string, json.RawMessage) (bool, string, error) { return true, "", nil },
	})
	list, err := client.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	want := []string{"comment_on_task", "propose_task_amendment", "ralph.permission"}
	for _, v := range ralph.Verbs {
		want = append(want, "ralph.signal."+string(v))
	}
	want = append(want, "update_session_state")
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	for _, tool := range list.Tools {
		if tool.Name == "comment_on_task" && !strings.Contains(tool.Description, "it should not exist → nack") {
			t.Errorf("the description does not say which kind to use: %s", tool.Description)
		}
	}
}

func TestDiscussionCallsAreCheckedAndPassedOn(t *testing.T) {
	var comments []mcpserver.CommentCall
	var proposals []mcpserver.AmendmentCall
	client := connect(t, mcpserver.Options{
		Comment: func(_ context.Context, c mcpserver.CommentCall) (int64, error) {
			comments = append(comments, c)
			return 7, nil
		},
		Propose: func(_ context.Context, c mcpserver.AmendmentCall) (int64, error) {
			if _, err := ralph.ParsePatch(c.Patch); err != nil {
				return 0, err
			}
			proposals = append(proposals, c)
			return 3, nil
		},
	})
	for _, tt := range []struct {
		name, tool, args, reply string
		refused                 bool
	}{
		{"a comment", "comment_on_task", `{"task_id":12,"kind":"note","body":"x"}`, "Recorded comment 7 on TASK-12.", false},
		{"another form of the id", "comment_on_task", `{"task_id":"TASK-12","kind":"reference","body":"#4","parent_comment_id":2}`, "comment 7", false},
		{"no id", "comment_on_task", `{"task_id":"the first","kind":"note","body":"x"}`, "is not a task id", true},
		{"an unknown field", "comment_on_task", `{"task_id":12,"kind":"note","body":"x","mood":1}`, "mood is not a field (accepted: body, kind, parent_comment_id, rationale, task_id)", true},
		{"null for what may be left out", "comment_on_task", `{"task_id":12,"kind":"note","body":"x","rationale":null,"parent_comment_id":null}`, "comment 7", false},
		{"nothing at all", "comment_on_task", ``, "task_id is required", true},
		{"no kind", "comment_on_task", `{"task_id":12,"body":"x"}`, "kind is required (accepted: note, question, blocker, reference, nack)", true},
		{"an unknown kind", "comment_on_task", `{"task_id":12,"kind":"rant","body":"x"}`, "kind is not one of the accepted values (accepted: note, question, blocker, reference, nack)", true},
		{"a blank body", "comment_on_task", `{"task_id":12,"kind":"note","body":" "}`, "body is required and must not be blank", true},
		{"a body that is no text", "comment_on_task", `{"task_id":12,"kind":"note","body":5}`, "body must be string, not integer", true},
		{"a body that is too long", "comment_on_task", `{"task_id":12,"kind":"note","body":"` + strings.Repeat("x", ralph.MaxText+1) + `"}`, "body is longer than 64 KiB", true},
		{"half an id", "comment_on_task", `{"task_id":1.5,"kind":"note","body":"x"}`, "task_id must be integer or string, not number", true},
		{"no patch", "propose_task_amendment", `{"task_id":12,"rationale":"r"}`, "patch is required", true},
		{"a patch that is a text", "propose_task_amendment", `{"task_id":12,"patch":"title","rationale":"r"}`, "patch must be object, not string", true},
		{"a blank rationale", "propose_task_amendment", `{"task_id":12,"patch":{"title":"t"},"rationale":""}`, "rationale is required and must not be blank", true},
		{"criteria that are no list", "propose_task_amendment", `{"task_id":12,"patch":{"contracts":{"acceptance":"a"}},"rationale":"r"}`, "patch.contracts.acceptance must be array, not string", true},
		{"a criterion that is no text", "propose_task_amendment", `{"task_id":12,"patch":{"contracts":{"verify":["a",1]}},"rationale":"r"}`, "patch.contracts.verify[1] must be string, not integer", true},
		{"an amendment", "propose_task_amendment", `{"task_id":"#12","patch":{"title":"t"},"rationale":"r"}`, "Proposed amendment 3 of TASK-12; a person decides.", false},
		{"an amendment of what is not to be amended", "propose_task_amendment", `{"task_id":12,"patch":{"status":"completed"},"rationale":"r"}`, "patch.status is not a field (accepted: contracts, description, priority, title)", true},
		{"an empty amendment", "propose_task_amendment", `{"task_id":12,"patch":{},"rationale":"r"}`, "patch changes nothing", true},
		{"a priority out of range", "propose_task_amendment", `{"task_id":12,"patch":{"priority":9},"rationale":"r"}`, "patch.priority must be a number from 0", true},
		{"an empty contract", "propose_task_amendment", `{"task_id":12,"patch":{"contracts":{}},"rationale":"r"}`, "patch.contracts changes nothing", true},
		{"a blank criterion", "propose_task_amendment", `{"task_id":12,"patch":{"contracts":{"acceptance":[" "]}},"rationale":"r"}`, "patch.contracts.acceptance is required", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := len(comments) + len(proposals)
			r, err := client.CallTool(t.Context(), call(tt.tool, tt.args))
			if err != nil {
				t.Fatal(err)
			}
			text := r.Content[0].(*mcp.TextContent).Text
			if r.IsError != tt.refused || !strings.Contains(text, tt.reply) {
				t.Errorf("got %t %q, want %t %q", r.IsError, text, tt.refused, tt.reply)
			}
			if kept := len(comments)+len(proposals) > before; kept == tt.refused {
				t.Errorf("kept: %t", kept)
			}
		})
	}
}

// call calls a tool with these arguments, or without any.
func call(tool, args string) *mcp.CallToolParams {
	p := &mcp.CallToolParams{Name: tool}
	if args != "" {
		p.Arguments = json.RawMessage(args)
	}
	return p
}
