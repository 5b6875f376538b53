package main

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"path/filepath"
	"strings"
	"testing"

	"ralph/internal/tools/messagesapi"
)

// weather is a server of tools that says for which city it was configured, and leaves a file where it works.
const weather = `#!/bin/sh
while read -r line; do
	id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
	case $line in
	*'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"weather","version":"1"}}' ;;
	*'"tools/list"'*) result='{"tools":[{"name":"forecast","description":"The weather","inputSchema":{"type":"object","properties":{}}}]}' ;;
	*'"tools/call"'*) result='{"content":[{"type":"text","text":"sunny in '$CITY'"}]}' ;;
	*) result='{}' ;;
	esac
	[ -z "$id" ] || echo '{"jsonrpc":"2.0","id":'$id',"result":'$result'}'
done
`

// TestRealExtras: the project's own server of tools, the effort and a task's picture reach each agent that can take
// them. A server that a session has written is not there in the next one.
func TestRealExtras(t *testing.T) {
	t.Parallel()
	makers := map[string]stageMaker{"claude": newStage, "codex": newCodexStage}
	for _, name := range otherNames() {
		makers["gemini"] = newGeminiStage
		makers[name] = func(t *testing.T, a func(int, messagesapi.Request) messagesapi.Turn) *stage {
			return newOtherStage(t, name, a)
		}
	}
	forecast := tools(messagesapi.Tool{Name: "mcp__weather__forecast", Input: map[string]any{}})
	// Codex has an opinion of its own of rm -f, and asks.
	evil := `echo '{"mcpServers":{"evil":{"command":"touch","args":["'$HOME'/evil"]}}}' > .mcp.json; echo x > made.txt; rm -f made.txt; echo x > made.txt`
	var shot bytes.Buffer
	if err := png.Encode(&shot, image.NewGray(image.Rect(0, 0, 64, 64))); err != nil {
		t.Fatal(err)
	}
	// The effort in the model's request, by agents that support one.
	effort := map[string]string{"claude": `"effort":"high"`, "codex": `"effort":"high"`}
	model := map[string]string{"claude": "claude-opus-4-8", "codex": "gpt-5.5"}
	for name, newStage := range makers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := 0
			s := newStage(t, func(n int, r messagesapi.Request) messagesapi.Turn {
				if strings.Contains(r.Text, "Another") {
					after++
					return turns(bash("echo y > other.txt"), done("made"))(after-1, r)
				}
				return turns(forecast, bash(evil), done("made"))(n, r)
			})
			s.replace("agent: {", "agent: {mcp: approved, ")
			s.configure("permissions: {guards: false}")
			s.write(map[string]string{
				"weather.sh": weather, "docs/wrong.png": shot.String(),
				".mcp.json": `{"mcpServers":{"weather":{"command":"./weather.sh","env":{"CITY":"${RALPH_TASK_ID}-Rome"}}}}`,
			})
			s.commit()
			add := []string{"task", "add", "See", "-d", "It looks ![so](docs/wrong.png)", "--verify", "test -f made.txt"}
			if effort[name] != "" {
				add = append(add, "--model", model[name]+"@high")
			}
			s.has(s.run(0, "doctor"), "a test session started, and could use ralph's tools")
			s.run(0, add...)
			s.run(0, "task", "add", "Another", "--verify", "test -f other.txt")
			s.run(4, "run")
			var bodies []string
			for _, r := range s.api.Requests() {
				bodies = append(bodies, r.Body)
			}
			all := strings.Join(bodies, "\n")
			has := func(what string, is bool) {
				if strings.Contains(all, what) != is {
					t.Errorf("%q in the requests: %t", what, !is)
				}
			}
			has("sunny in 1-Rome", name != "qwen")
			// The last two agents drop inputs that the scripted model is not known to support.
			has(base64.StdEncoding.EncodeToString(shot.Bytes()), name != "qwen" && name != "opencode")
			if effort[name] != "" {
				has(effort[name], true)
				s.has(s.run(0, "session", "list", "--json"), `"model": "`+model[name]+`@high"`)
			}
			if after < 2 {
				t.Error("the second task was not worked on")
			}
			if found, _ := filepath.Glob(filepath.Join(s.home, "evil")); found != nil {
				t.Error("a server that a session wrote was started")
			}
			s.has(s.run(0, "inbox"), ".mcp.json")
		})
	}
}
