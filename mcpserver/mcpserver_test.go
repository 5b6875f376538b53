package mcpserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ralph"
	"ralph/mcpserver"
	"ralph/signals"
)

// connect starts a server that records its signals, and a client of it.
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

func TestALineThatIsNoJSONEndsNoServer(t *testing.T) {
	in, client := io.Pipe()
	answers, out := io.Pipe()
	served := make(chan error)
	go func() { served <- mcpserver.Serve(t.Context(), mcpserver.New(mcpserver.Options{}), in, out) }()
	hello := `{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
		`"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	go func() {
		_, err := io.WriteString(client, "garbage\n"+strings.Repeat("x", 5<<20)+"\n\n"+hello+"\n")
		if err != nil {
			t.Error(err)
		}
	}()
	line, err := bufio.NewReader(answers).ReadString('\n')
	if err != nil || !strings.Contains(line, `"id":7`) {
		t.Errorf("answered %q, %v", line, err)
	}
	if err := errors.Join(client.Close(), <-served); err != nil {
		t.Error(err)
	}
}

func TestThereAreExactlyTheEightTools(t *testing.T) {
	client := connect(t, mcpserver.Options{})
	list, err := client.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
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
		want = append(want, "ralph.signal."+string(v))
	}
	slices.Sort(names)
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
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
