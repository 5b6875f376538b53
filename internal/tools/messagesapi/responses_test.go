package messagesapi

import (
	"encoding/json"
	"testing"
)

// TestAToolAsTheModelOfItsAPIWritesIt: scripts name tools as Claude does, for every agent.
func TestAToolAsTheModelOfItsAPIWritesIt(t *testing.T) {
	older := responses{Tools: []offered{{Name: "exec_command"}}}
	for _, tt := range []struct {
		name string
		api  responses
		tool Tool
		want string
	}{
		{
			"a command", older,
			Tool{"Bash", map[string]any{"command": "ls"}},
			`{"arguments":"{\"cmd\":\"ls\"}","name":"exec_command","type":"function_call"}`,
		},
		{
			"a file", older,
			Tool{"Write", map[string]any{"file_path": "a", "content": "b"}},
			`{"arguments":"{\"cmd\":\"cat \\u003e 'a' \\u003c\\u003c'EOT'\\nb\\nEOT\"}","name":"exec_command","type":"function_call"}`,
		},
		{
			"a server's", older,
			Tool{"mcp__ralph__ralph_signal_done", map[string]any{"summary": "x"}},
			`{"arguments":"{\"summary\":\"x\"}","name":"ralph_signal_done","namespace":"mcp__ralph","type":"function_call"}`,
		},
		{
			"in a script",
			responses{},
			Tool{"Bash", map[string]any{"command": "ls"}},
			`{"input":"text(JSON.stringify(await tools.exec_command({\"cmd\":\"ls\"})))","name":"exec","namespace":"functions","type":"custom_tool_call"}`,
		},
	} {
		got, err := json.Marshal(tt.api.call(tt.tool))
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: got  %s, %v\nwant %s", tt.name, got, err, tt.want)
		}
	}
}
