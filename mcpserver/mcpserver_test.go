package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ralph"
	"ralph/mcpserver"
	"ralph/signals"
)

// connect starts a server that remembers what is said, and a client of it.
func connect(t *testing.T, o mcpserver.Options) *mcp.ClientSession {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	server, err := mcpserver.New(o).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(client.Close(), server.Wait()); err != nil {
			t.Error(err)
		}
	})
	return client
}

func TestThereAreExactlyTheEightTools(t *testing.T) {
	for _, underscore := range []bool{false, true} {
		client := connect(t, mcpserver.Options{Underscore: underscore})
		list, err := client.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		prefix := "ralph.signal."
		if underscore {
			prefix = "ralph_signal_"
		}
		var names, want []string
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
			if tool.Description == "" {
				t.Errorf("%s has no description", tool.Name)
			}
			schema, err := json.Marshal(tool.InputSchema)
			if err != nil || !strings.Contains(string(schema), `"additionalProperties":false`) || strings.Contains(string(schema), `"null"`) {
				t.Errorf("%s: schema %s (%v)", tool.Name, schema, err)
			}
		}
		for _, v := range ralph.Verbs {
			want = append(want, prefix+string(v))
		}
		slices.Sort(names)
		slices.Sort(want)
		if !slices.Equal(names, want) {
			t.Errorf("got %v, want %v", names, want)
		}
	}
}

func TestACallIsStoredOrRefusedWithAReason(t *testing.T) {
	var said []signals.Payload
	client := connect(t, mcpserver.Options{Say: func(_ context.Context, p signals.Payload) (int64, error) {
		if p.Body() == "⚠ **Stuck:** closed" {
			return 0, errors.New("session has ended")
		}
		if p.Body() == "⚠ **Stuck:** boom" {
			panic("boom")
		}
		said = append(said, p)
		return 7, nil
	}})
	for _, tt := range []struct {
		tool, args, reply string
		refused           bool
	}{
		{"done", `{"summary":"a"}`, "end your work now", false},
		{"ask", `{"question":"a","blocking":false}`, "comment 7", false},
		{"flag", `{"what":"a","severity":"urgent","category":"bug"}`, "severity is not one of the accepted values (accepted: info, warning, blocking)", true},
		{"done", `{}`, "summary", true},
		{"done", `{"summary":"a","x":1}`, "x is not a field of done", true},
		{"stuck", `{"reason":"closed"}`, "session has ended", true},
		{"stuck", `{"reason":"boom"}`, "internal error", true},
	} {
		before := len(said)
		r, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "ralph.signal." + tt.tool, Arguments: json.RawMessage(tt.args)})
		if err != nil {
			t.Fatal(err)
		}
		text := r.Content[0].(*mcp.TextContent).Text
		if r.IsError != tt.refused || !strings.Contains(text, tt.reply) {
			t.Errorf("%s %s: got %t %q, want %t %q", tt.tool, tt.args, r.IsError, text, tt.refused, tt.reply)
		}
		if stored := len(said) > before; stored == tt.refused {
			t.Errorf("%s %s: stored %t", tt.tool, tt.args, stored)
		}
	}
}

func TestEnvNamesWhatIsMissing(t *testing.T) {
	full := map[string]string{"RALPH_TASK_ID": "12", "RALPH_SESSION_ID": "s", "RALPH_DB_PATH": "/db"}
	for _, missing := range []string{"RALPH_TASK_ID", "RALPH_SESSION_ID", "RALPH_DB_PATH"} {
		_, err := mcpserver.Env(func(name string) string {
			if name == missing {
				return ""
			}
			return full[name]
		})
		if err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("got %v, want an error on %s", err, missing)
		}
	}
	s, err := mcpserver.Env(func(name string) string { return full[name] })
	if err != nil || s.TaskID != 12 || s.Author() != "agent" {
		t.Errorf("got %+v, %v", s, err)
	}
}
