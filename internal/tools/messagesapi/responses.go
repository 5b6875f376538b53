package messagesapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// responses is OpenAI's Responses API as used by codex. The tools of an MCP server have a namespace, and the shell
// replaces Bash and Write. Newer models get one tool that runs JavaScript, with all others as functions in it.
type responses struct {
	Tools []offered
	Input []struct {
		Content json.RawMessage
		Output  json.RawMessage
		Tools   []offered // tools of newer models
	}
}

type offered struct {
	Name  string
	Tools []struct{ Name string }
}

func (r *responses) offers() (n int) {
	n = len(r.Tools)
	for _, item := range r.Input {
		n += len(item.Tools)
	}
	return n
}

func (r *responses) text(b *strings.Builder) {
	for _, item := range r.Input {
		collect(b, item.Content)
		collect(b, item.Output)
	}
}

// direct reports whether newer models are offered further tools besides the one that runs
// JavaScript.
func (r *responses) direct(name string) bool {
	for _, item := range r.Input {
		for _, o := range item.Tools {
			if rest, ok := strings.CutPrefix(name, o.Name+"__"); ok && slices.Contains(o.Tools, struct{ Name string }{rest}) {
				return true
			}
		}
	}
	return false
}

// call returns a tool call as the model writes it.
func (r *responses) call(t Tool) map[string]any {
	name, input := t.Name, t.Input
	if in, ok := input.(map[string]any); ok {
		switch t.Name {
		case "Bash":
			name, input = "exec_command", map[string]any{"cmd": in["command"]}
		case "Write":
			name = "exec_command"
			input = map[string]any{"cmd": fmt.Sprintf("cat > '%v' <<'EOT'\n%v\nEOT", in["file_path"], in["content"])}
		}
	}
	arguments, err := json.Marshal(input)
	if err != nil {
		arguments = []byte(`{}`)
	}
	if len(r.Tools) == 0 && !r.direct(name) {
		return map[string]any{
			"type": "custom_tool_call", "name": "exec", "namespace": "functions",
			"input": fmt.Sprintf("text(JSON.stringify(await tools.%s(%s)))", name, arguments),
		}
	}
	call := map[string]any{"type": "function_call", "name": name, "arguments": string(arguments)}
	if at := strings.LastIndex(name, "__"); at > 0 {
		call["namespace"], call["name"] = name[:at], name[at+2:]
	}
	return call
}

func (r *responses) fail(w http.ResponseWriter, t Turn) {
	fmt.Fprintf(w, `{"error":{"type":%q,"code":%q,"message":%q,"resets_at":%s}}`, t.Kind, t.Kind, t.Text, t.resets())
}

func (r *responses) stream(event func(kind string, v map[string]any), n int, t Turn) {
	id := fmt.Sprintf("resp_%d", n)
	event("response.created", map[string]any{"response": map[string]any{
		"id": id, "object": "response", "status": "in_progress", "output": []any{},
	}})
	output := []any{}
	item := func(started, done map[string]any, delta string) {
		index := len(output)
		event("response.output_item.added", map[string]any{"output_index": index, "item": started})
		if delta != "" {
			event("response.output_text.delta", map[string]any{
				"output_index": index, "content_index": 0, "item_id": done["id"], "delta": delta,
			})
		}
		event("response.output_item.done", map[string]any{"output_index": index, "item": done})
		output = append(output, done)
	}
	if t.Text != "" {
		message := func(status string, content ...any) map[string]any {
			return map[string]any{
				"type": "message", "id": fmt.Sprintf("msg_%d", n), "role": "assistant", "status": status,
				"content": append([]any{}, content...),
			}
		}
		item(message("in_progress"), message("completed",
			map[string]any{"type": "output_text", "text": t.Text, "annotations": []any{}}), t.Text)
	}
	for i, tool := range t.Tools {
		call := func(status string) map[string]any {
			c := r.call(tool)
			c["id"], c["call_id"], c["status"] = fmt.Sprintf("fc_%d_%d", n, i), fmt.Sprintf("call_%d_%d", n, i), status
			return c
		}
		item(call("in_progress"), call("completed"), "")
	}
	event("response.completed", map[string]any{"response": map[string]any{
		"id": id, "object": "response", "status": "completed", "output": output,
		"usage": map[string]any{
			"input_tokens": 1200, "input_tokens_details": map[string]any{"cached_tokens": 200},
			"output_tokens": 50, "output_tokens_details": map[string]any{"reasoning_tokens": 10}, "total_tokens": 1250,
		},
	}})
}
