package claude_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ralph/loop/agent"
	"ralph/loop/agent/claude"
)

// TestEventsOfLines has lines of the stream and their events.
func TestEventsOfLines(t *testing.T) {
	t.Parallel()
	use := func(tool, input string) string {
		return fmt.Sprintf(`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":%q,"input":%s}]}}`, tool, input)
	}
	for name, c := range map[string]struct {
		line string
		want []agent.Event
	}{
		"no event":     {"oops", nil},
		"unknown":      {`{"type":"new"}`, nil},
		"words":        {`{"type":"assistant","message":{"content":[{"type":"text","text":"hello"}]}}`, []agent.Event{{Kind: agent.Said, Text: "hello"}}},
		"its prompt":   {`{"type":"user","isReplay":true,"message":{"content":"do it"}}`, []agent.Event{{Kind: agent.Told, Text: "do it"}}},
		"a file":       {use("Read", `{"file_path":"/p/a","offset":"x"}`), []agent.Event{{Kind: agent.Read, Tool: "Read", Text: "a"}}},
		"a search":     {use("Grep", `{"pattern":"a"}`), []agent.Event{{Kind: agent.Read, Tool: "Grep", Text: "a "}}},
		"a page":       {use("WebFetch", `{"url":"u"}`), []agent.Event{{Kind: agent.Read, Tool: "WebFetch", Text: "u"}}},
		"a new file":   {use("Write", `{"file_path":"b","content":"x"}`), []agent.Event{{Kind: agent.Edited, Tool: "Write", Text: "b", Edits: []agent.Edit{{New: "x"}}}}},
		"a command":    {use("Bash", `{"command":"ls\nls"}`), []agent.Event{{Kind: agent.Ran, Tool: "Bash", Text: "ls\nls"}}},
		"an agent":     {use("Task", `{"subagent_type":"Explore","description":"it"}`), []agent.Event{{Kind: agent.Asked, Tool: "Task", Text: "Explore it"}}},
		"a signal":     {use("mcp__ralph__ralph_signal_done", `{"summary":"s"}`), []agent.Event{{Kind: agent.Called, Tool: "signal_done", Text: "s"}}},
		"another tool": {use("mcp__db__query", `{"command":"drop"}`), []agent.Event{{Kind: agent.Called, Tool: "mcp__db__query", Text: "drop"}}},
		"an answer": {
			`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":"<tool_use_error>no</tool_use_error>"}]}}`,
			[]agent.Event{{Kind: agent.Answered, Failed: true, Text: "no"}},
		},
		"its context": {
			`{"type":"assistant","message":{"model":"m","usage":{"input_tokens":1,"output_tokens":2}}}`,
			[]agent.Event{{Kind: agent.Used, Model: "m", Context: 3}},
		},
		"a sub-agent's context": {`{"type":"assistant","parent_tool_use_id":"t","message":{"usage":{"input_tokens":1}}}`, nil},
		"a limit": {
			`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","rateLimitType":"five_hour"}}`,
			[]agent.Event{{Kind: agent.Troubled, Text: "the account's limit is reached (five_hour)"}},
		},
		"the end": {
			`{"type":"result","subtype":"error_max_turns","num_turns":2,"duration_ms":1500}`,
			[]agent.Event{{Kind: agent.Ended, Text: "the limit of turns was reached after 2 steps", Seconds: 1.5}},
		},
		"a full transcript": {
			`{"type":"ralph","subtype":"transcript_full"}`,
			[]agent.Event{{Kind: agent.Noted, Text: "the transcript is too long: a part is left out here"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := claude.NewReader()
			r.Line([]byte(`{"type":"system","subtype":"init","cwd":"/p"}`))
			if diff := cmp.Diff(c.want, r.Line([]byte(c.line))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheMainFieldOfATool(t *testing.T) {
	t.Parallel()
	for tool, want := range map[string]string{
		"Bash": "command", "Read": "file_path", "Edit": "file_path", "Write": "file_path", "MultiEdit": "file_path",
		"NotebookEdit": "notebook_path", "Grep": "", "mcp__db__query": "",
	} {
		if got := claude.MainField(tool); got != want {
			t.Errorf("%s: got %q, want %q", tool, got, want)
		}
	}
}
