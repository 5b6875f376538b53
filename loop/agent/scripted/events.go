package scripted

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/uuid"
)

// The cost of a step: invented, but of a realistic size.
const (
	stepInput   = 1200 // tokens
	stepOutput  = 50   // tokens
	turnCostUSD = 0.01
	window      = 200_000 // tokens of context
)

// object is a JSON object.
type object = map[string]any

// events prints the events of a session.
type events struct {
	out     io.Writer
	options options
	muted   bool
	began   time.Time // start of the turn
	steps   int       // in the turn
	all     int       // steps in the session
	turns   int       // in the session
	said    string    // last text in the turn
	denials []object  // refused permissions of the session
	err     error     // the first error; nothing is printed after it
}

// print prints an event of the session.
func (e *events) print(event object) {
	event["session_id"], event["uuid"] = e.options.session, uuid.NewString()
	b, err := json.Marshal(event)
	e.err = cmp.Or(e.err, err)
	e.raw(append(b, '\n'))
}

func (e *events) raw(b []byte) {
	if !e.muted && e.err == nil {
		_, e.err = e.out.Write(b)
	}
}

// init starts a turn.
func (e *events) init(servers []serverStatus, tools []tool) {
	e.began, e.steps, e.said = time.Now(), 0, ""
	dir, err := os.Getwd()
	e.err = cmp.Or(e.err, err)
	names := append([]string{}, builtin...)
	for _, t := range tools {
		names = append(names, t.shown)
	}
	e.print(object{
		"type": "system", "subtype": "init", "cwd": dir, "tools": names, "mcp_servers": servers, "model": e.options.model,
		"permissionMode": e.options.mode, "apiKeySource": "none", "claude_code_version": "2.1.197", "output_style": "default",
		"slash_commands": []string{}, "agents": []string{}, "skills": []string{}, "plugins": []string{},
	})
}

// replay shows a user message as it reaches the model.
func (e *events) replay(message json.RawMessage) {
	e.print(object{"type": "user", "message": message, "parent_tool_use_id": nil, "isReplay": true})
}

func (e *events) assistant(block object) {
	e.steps++
	e.all++
	e.print(object{"type": "assistant", "parent_tool_use_id": nil, "message": object{
		"id": fmt.Sprintf("msg_%d", e.all), "type": "message", "role": "assistant",
		"model": e.options.model, "content": []object{block},
		"stop_reason": nil, "stop_sequence": nil, "usage": tokens(stepInput, 1),
	}})
}

func (e *events) say(text string) {
	e.said = text
	e.assistant(object{"type": "text", "text": text})
}

// toolUse shows a tool call; its id goes with the result.
func (e *events) toolUse(name string, input any) (id string) {
	id = fmt.Sprintf("toolu_msg_%d_0", e.all+1)
	e.assistant(object{"type": "tool_use", "id": id, "name": name, "input": input})
	return id
}

func (e *events) toolResult(id string, content any, isError bool) {
	block := object{"type": "tool_result", "tool_use_id": id, "content": content}
	if isError {
		block["is_error"] = true
	}
	e.print(object{
		"type": "user", "parent_tool_use_id": nil, "timestamp": time.Now().UTC().Format(time.RFC3339Nano),
		"message": object{"role": "user", "content": []object{block}}, "tool_use_result": content,
	})
}

// result ends a turn.
func (e *events) result() {
	e.turns++
	e.end(object{
		"subtype": "success", "is_error": false, "api_error_status": nil,
		"result": e.said, "stop_reason": "end_turn", "terminal_reason": "completed",
	})
}

// interrupted ends a turn, or the wait after one, because of SIGINT.
func (e *events) interrupted() {
	e.end(object{
		"subtype": "error_during_execution", "is_error": true, "api_error_status": nil,
		"errors": []string{}, "stop_reason": nil, "terminal_reason": "aborted_tools",
	})
}

// apiError ends a turn with an API error. The status is nil if there was
// no answer; class is the "error" of the message, "" for none.
func (e *events) apiError(text, class string, status any, terminal string) {
	message := object{"type": "assistant", "parent_tool_use_id": nil, "message": object{
		"id": uuid.NewString(), "type": "message", "role": "assistant",
		"model": "<synthetic>", "content": []object{{"type": "text", "text": text}},
		"stop_reason": "stop_sequence", "stop_sequence": "", "usage": tokens(0, 0),
	}}
	if class != "" {
		message["error"] = class
	}
	e.print(message)
	e.end(object{
		"subtype": "success", "is_error": true, "api_error_status": status,
		"result": text, "stop_reason": "stop_sequence", "terminal_reason": terminal,
	})
}

func (e *events) end(result object) {
	cost := turnCostUSD * float64(e.turns)
	result["type"], result["num_turns"], result["total_cost_usd"] = "result", max(e.steps, 1), cost
	result["usage"] = tokens(stepInput*e.steps, stepOutput*e.steps)
	result["permission_denials"] = append([]object{}, e.denials...)
	ms := time.Since(e.began).Milliseconds()
	result["duration_ms"], result["duration_api_ms"] = ms, ms
	result["modelUsage"] = object{e.options.model: object{
		"inputTokens": stepInput * e.all, "outputTokens": stepOutput * e.all,
		"cacheReadInputTokens": 0, "cacheCreationInputTokens": 0,
		"webSearchRequests": 0, "costUSD": cost, "contextWindow": window, "maxOutputTokens": 32_000,
	}}
	e.print(result)
}

func tokens(input, output int) object {
	return object{
		"input_tokens": input, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
		"output_tokens": output, "service_tier": "standard",
	}
}
