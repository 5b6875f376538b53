package mcpserver_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ralph"
	"ralph/mcpserver"
)

func TestStatesAreReportedOrRefusedWithAReason(t *testing.T) {
	at := ralph.At(time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))
	var seen []mcpserver.StateChange
	client := connect(t, mcpserver.Options{SetState: func(_ context.Context, c mcpserver.StateChange) (mcpserver.StateReply, error) {
		if c.SessionID == "gone" {
			return mcpserver.StateReply{}, errors.New("Session gone not found")
		}
		seen = append(seen, c)
		return mcpserver.StateReply{Success: true, PreviousState: ralph.PhaseIdle, NewState: c.State, TransitionedAt: at}, nil
	}})
	for _, tt := range []struct {
		name, args, reply string
		refused           bool
	}{
		{"a phase", `{"state":"analyzing"}`, "{\n  \"success\": true,\n  \"previousState\": \"idle\",\n  \"newState\": \"analyzing\",\n  \"transitionedAt\": \"2026-03-01T10:00:00.000Z\"\n}", false},
		{"a phase with metadata", `{"sessionId":"s","state":"testing","metadata":{"files":["a.go"],"testResults":{"passed":1,"failed":0,"skipped":0},"error":"","more":[1]}}`, `"newState": "testing"`, false},
		{"an unknown session", `{"sessionId":"gone","state":"testing"}`, "Error: Session gone not found", true},
		{"no phase", `{}`, "Error: state is required (accepted: analyzing, implementing, testing, committing, reviewing)", true},
		{"the end, which is ralph's", `{"state":"done"}`, "Error: state is not one of the accepted values", true},
		{"the beginning, which is ralph's", `{"state":"idle"}`, "Error: state is not one of the accepted values", true},
		{"an unknown field", `{"state":"testing","mood":"good"}`, "Error: mood is not a field (accepted: metadata, sessionId, state)", true},
		{"metadata that is no object", `{"state":"testing","metadata":"x"}`, "Error: metadata must be object, not string", true},
		{"files that are no list", `{"state":"testing","metadata":{"files":"a.go"}}`, "Error: metadata.files must be array, not string", true},
		{"a count that is none", `{"state":"testing","metadata":{"testResults":{"passed":"all"}}}`, "Error: metadata.testResults.passed must be integer, not string", true},
		{"null for what may be left out", `{"state":"testing","sessionId":null,"metadata":null}`, `"newState": "testing"`, false},
		{"nothing at all", ``, "Error: state is required (accepted: analyzing, implementing, testing, committing, reviewing)", true},
		{"metadata that is too long", `{"state":"testing","metadata":{"x":"` + strings.Repeat("x", ralph.MaxText) + `"}}`, "metadata is longer than 64 KiB", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := len(seen)
			r, err := client.CallTool(t.Context(), call(mcpserver.StateTool, tt.args))
			if err != nil {
				t.Fatal(err)
			}
			text := r.Content[0].(*mcp.TextContent).Text
			if r.IsError != tt.refused || !strings.Contains(text, tt.reply) {
				t.Errorf("got %t %q, want %t %q", r.IsError, text, tt.refused, tt.reply)
			}
			if recorded := len(seen) > before; recorded == tt.refused {
				t.Errorf("recorded: %t", recorded)
			}
		})
	}
}
