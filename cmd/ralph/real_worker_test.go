package main

import (
	"cmp"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"ralph/internal/tools/messagesapi"
)

// pulls has the real CLI work by itself with ralph's worker profile.
func (s *stage) pulls() string {
	s.t.Helper()
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"ralph": map[string]any{"command": s.ralph, "args": []string{"mcp", "--profile", "worker", "--name", "claude"}, "alwaysLoad": true},
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	like := s.command()
	cmd := exec.CommandContext(s.t.Context(), realClaude(s.t), "-p", "Take a task and do it.", "--mcp-config", string(config), "--strict-mcp-config", "--allowedTools", "mcp__ralph", "Bash")
	cmd.Dir, cmd.Env = like.Dir, append(like.Env, "MCP_TIMEOUT=60000") // the server may begin slowly
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// TestRealWorker: the real CLI pulls a task by itself, has its first done refused, and
// mends it. When it leaves in the middle of another one, that one is queued again.
func TestRealWorker(t *testing.T) {
	t.Parallel()
	claim := tools(messagesapi.Tool{Name: "mcp__ralph__claim_task", Input: map[string]any{}})
	list := turns(
		claim, done("made it"), reportsPhase("implementing"), finished, done("made it, really"), finished,
		claim,
	)
	dir := ""
	s := newStage(t, func(n int, r messagesapi.Request) messagesapi.Turn {
		dir = cmp.Or(folder.FindString(r.Text), dir) // where it is told to work
		switch n {
		case 3:
			return bash("echo x > " + dir + "/a.txt")
		case 7:
			return bash("echo x > " + dir + "/b.txt")
		}
		return list(n, r)
	})
	s.run(0, "task", "add", "Make a.txt", "--verify", "test -f a.txt")
	s.run(0, "task", "add", "Make b.txt")
	s.pulls()
	s.has(s.run(0, "task", "show", "1"), "merged")
	requests := s.api.Requests()
	s.has(requests[1].Text, "You hold TASK-1", "## Your task: TASK-1 Make a.txt")
	s.has(requests[2].Text, "It does not close the task yet", "Exit status: 1")
	s.has(s.run(0, "session", "list"), "finished")
	s.pulls()
	// Its server ends after it, and may be killed while it gives the task back.
	waitFor(t, func() bool { return s.command("chat", "claim", "2").Run() == nil })
	if list := s.run(0, "session", "list", "--task", "2"); !strings.Contains(list, "its worker gave the task back") && !strings.Contains(list, "lost: its worker") {
		t.Errorf("the task was not given back:\n%s", list)
	}
}
