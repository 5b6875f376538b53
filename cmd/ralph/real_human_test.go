package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ralph/internal/tools/messagesapi"
)

// TestRealChat: a person's whole session with Claude Code: the task is claimed in the
// terminal, the chat reads it, reports, adds a checkpoint, is refused by a red test,
// and completes it; the terminal follows.
func TestRealChat(t *testing.T) {
	t.Parallel()
	use := func(name string, input map[string]any) messagesapi.Turn {
		return tools(messagesapi.Tool{Name: "mcp__ralph__" + name, Input: input})
	}
	s := newStage(t, turns(
		use("agentic_get_active_task", map[string]any{}),
		use("agentic_task_show", map[string]any{"task_id": "TASK-1"}),
		use("agentic_task_update_progress", map[string]any{"task_id": "TASK-1", "iteration": 1, "tests_status": "failing", "notes": "looked around"}),
		use("agentic_task_complete", map[string]any{"task_id": "TASK-1"}),
		use("agentic_get_token_status", map[string]any{}),
		use("agentic_create_checkpoint", map[string]any{"task_id": "TASK-1", "iteration": 1, "remaining_work": []string{"make a.txt"}}),
		bash("echo x > a.txt"),
		use("agentic_task_complete", map[string]any{"task_id": "TASK-1", "learnings": []string{"a.txt is what counts"}}),
	))
	s.run(0, "task", "add", "Make a.txt", "--verify", "test -f a.txt")
	s.has(s.run(0, "chat", "claim", "1"), "agentic_task_complete")
	_, watched := s.start("chat", "watch")

	// Claude Code in the project's folder, as a person starts it, but for the screen.
	self := s.command("mcp", "--profile", "chat")
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"ralph": map[string]any{"command": self.Path, "args": self.Args[1:]}}})
	if err != nil {
		t.Fatal(err)
	}
	chat := exec.CommandContext(t.Context(), realClaude(t), "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose",
		"--mcp-config", string(config), "--allowedTools", "mcp__ralph,Bash")
	chat.Dir, chat.Env = s.dir, s.command().Env
	message, err := json.Marshal(map[string]any{"type": "user", "message": map[string]string{"role": "user", "content": "Let us work on TASK-1."}})
	if err != nil {
		t.Fatal(err)
	}
	chat.Stdin = strings.NewReader(string(message) + "\n")
	text, err := chat.CombinedOutput()
	if err != nil || !strings.Contains(s.run(0, "task", "show", "1"), "completed") {
		t.Fatalf("the chat did not complete the task: %v\n%s", err, text)
	}
	follow := watched(0)
	s.has(follow, "iteration 1, tests: failing: looked around", "checkpoint kept", "TASK-1 merged")
	seen := ""
	for _, r := range s.api.Requests() {
		seen = r.Text
	}
	s.has(seen, `"id": "TASK-1"`, "progress updated", "Command: test -f a.txt", `"source": "transcript"`, "checkpoint created", `"status": "completed"`)
	s.has(s.run(0, "learning", "list"), "a.txt is what counts")
	if folders, err := filepath.Glob(filepath.Join(s.home, ".claude", "projects", "*")); err != nil || len(folders) != 1 {
		t.Errorf("transcripts of the chat: %q %v", folders, err)
	}
}
