package messagesapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// named returns the offered name and the input of a tool that a script calls by Claude's name.
// Other agents have other names for their own tools and for those of an MCP server.
func named(t Tool, offered []string) (string, map[string]any) {
	in, _ := t.Input.(map[string]any)
	if in == nil {
		in = map[string]any{}
	}
	candidates := map[string][]string{
		"Bash": {"run_shell_command", "bash"}, "Write": {"write_file", "write", "create"},
	}[t.Name]
	for _, name := range append(candidates, t.Name) {
		if slices.Contains(offered, name) {
			return name, spelled(name, in)
		}
	}
	if _, own, ok := strings.Cut(strings.TrimPrefix(t.Name, "mcp__"), "__"); ok {
		for _, name := range offered {
			if strings.HasSuffix(strings.NewReplacer(".", "_", "-", "_").Replace(name), own) {
				return name, in
			}
		}
	}
	return t.Name, in
}

// spelled returns the input of a tool that writes a file, with the tool's own names of the fields.
func spelled(tool string, in map[string]any) map[string]any {
	switch tool {
	case "write":
		return map[string]any{"filePath": in["file_path"], "content": in["content"]}
	case "create":
		return map[string]any{"path": in["file_path"], "file_text": in["content"]}
	}
	return in
}

// gemini is Gemini's API.
type gemini struct {
	Tools []struct {
		Functions []struct{ Name string } `json:"functionDeclarations"`
	}
	Contents []struct {
		Parts []struct {
			Text     string
			Response struct{ Response map[string]any } `json:"functionResponse"`
		}
	}
}

func (g *gemini) names() (names []string) {
	for _, t := range g.Tools {
		for _, f := range t.Functions {
			names = append(names, f.Name)
		}
	}
	return names
}

func (g *gemini) offers() int { return len(g.names()) }

func (g *gemini) text(b *strings.Builder) {
	for _, c := range g.Contents {
		for _, p := range c.Parts {
			b.WriteString(p.Text + "\n")
			for _, said := range p.Response.Response {
				fmt.Fprintln(b, said)
			}
		}
	}
}

func (g *gemini) fail(w http.ResponseWriter, t Turn) {
	status := map[string]string{
		"rate_limit_error": "RESOURCE_EXHAUSTED", "authentication_error": "UNAUTHENTICATED",
		"overloaded_error": "UNAVAILABLE",
	}[t.Kind]
	// A daily quota is reported at once; clients retry the others.
	fmt.Fprintf(w, `{"error":{"code":%d,"message":%q,"status":%q,"details":[{"@type":`+
		`"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"RequestsPerDay"}]}]}}`,
		t.Status, t.Text, cmp.Or(status, t.Kind))
}

func (g *gemini) stream(event func(kind string, v map[string]any), n int, t Turn) {
	parts := []any{}
	if t.Text != "" {
		parts = append(parts, map[string]any{"text": t.Text})
	}
	for _, tool := range t.Tools {
		name, in := named(tool, g.names())
		parts = append(parts, map[string]any{
			"functionCall": map[string]any{"name": name, "args": in}, "thoughtSignature": "c2ln",
		})
	}
	event("", map[string]any{
		"candidates": []any{map[string]any{
			"content": map[string]any{"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0,
		}},
		"modelVersion": "gemini-2.5-pro", "responseId": fmt.Sprint("r", n),
		"usageMetadata": map[string]any{
			"promptTokenCount": 1200, "candidatesTokenCount": 50, "cachedContentTokenCount": 200, "totalTokenCount": 1250,
		},
	})
}

// chat is OpenAI's chat completions, which many agents use.
type chat struct {
	Tools    []struct{ Function struct{ Name string } }
	Messages []struct{ Content json.RawMessage }
}

func (c *chat) names() []string {
	names := make([]string, len(c.Tools))
	for i, t := range c.Tools {
		names[i] = t.Function.Name
	}
	return names
}

func (c *chat) offers() int { return len(c.Tools) }

func (c *chat) text(b *strings.Builder) {
	for _, m := range c.Messages {
		collect(b, m.Content)
	}
}

func (c *chat) fail(w http.ResponseWriter, t Turn) {
	fmt.Fprintf(w, `{"error":{"type":%q,"code":%q,"message":%q}}`, t.Kind, t.Kind, t.Text)
}

func (c *chat) stream(event func(kind string, v map[string]any), n int, t Turn) {
	chunk := func(delta map[string]any, finish any) {
		event("", map[string]any{
			"id": fmt.Sprint("chatcmpl-", n), "object": "chat.completion.chunk", "created": 1, "model": "m",
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
		})
	}
	chunk(map[string]any{"role": "assistant", "content": t.Text}, nil)
	var calls []any
	for i, tool := range t.Tools {
		name, in := named(tool, c.names())
		arguments, err := json.Marshal(in)
		if err != nil {
			arguments = []byte(`{}`)
		}
		calls = append(calls, map[string]any{
			"index": i, "id": fmt.Sprintf("call_%d_%d", n, i), "type": "function",
			"function": map[string]any{"name": name, "arguments": string(arguments)},
		})
	}
	finish := "stop"
	if calls != nil {
		finish = "tool_calls"
		chunk(map[string]any{"tool_calls": calls}, nil)
	}
	chunk(map[string]any{}, finish)
	event("", map[string]any{
		"id": fmt.Sprint("chatcmpl-", n), "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": []any{},
		"usage": map[string]any{
			"prompt_tokens": 1200, "completion_tokens": 50, "total_tokens": 1250,
			"prompt_tokens_details": map[string]any{"cached_tokens": 200},
		},
	})
}
