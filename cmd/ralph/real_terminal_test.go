package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"

	"ralph/internal/messagesapi"
)

// escapes are what steers a terminal.
var escapes = regexp.MustCompile(`\x1b(?:\[[0-9;?<>=]*[ -/]*[@-~]|\][^\x07]*\x07|[()][A-Z0-9]|.)`)

// A terminal is a program's screen, as the text that was written to it.
type terminal struct {
	*os.File
	mu   sync.Mutex
	text strings.Builder
}

func newTerminal(t *testing.T, cmd *exec.Cmd) *terminal {
	t.Helper()
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 120})
	if err != nil {
		t.Fatal(err)
	}
	s := &terminal{File: tty}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for b := make([]byte, 32<<10); ; {
			n, err := tty.Read(b)
			s.mu.Lock()
			s.text.Write(b[:n])
			s.mu.Unlock()
			if err != nil {
				return // the program has ended
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
		<-ended
		_ = tty.Close()
	})
	return s
}

// shows reports whether a text has been written since the last one that was found.
func (s *terminal) shows(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, after, ok := strings.Cut(escapes.ReplaceAllString(s.text.String(), ""), text)
	if ok {
		s.text.Reset()
		s.text.WriteString(after)
	}
	return ok
}

// TestRealChatInATerminal: Claude Code on its screen asks the person before a task is
// completed; Esc leaves it claimed, Enter completes it.
func TestRealChatInATerminal(t *testing.T) {
	t.Parallel()
	complete := tools(messagesapi.Tool{Name: "mcp__ralph__agentic_task_complete", Input: map[string]any{"task_id": "TASK-1"}})
	s := newStage(t, turns(bash("echo looked"), complete, complete))
	s.run(0, "task", "add", "Look", "--verify", "true")
	s.run(0, "task", "claim", "1")
	self := s.command("mcp", "--profile", "human")
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"ralph": map[string]any{"command": self.Path, "args": self.Args[1:]}}})
	if err != nil {
		t.Fatal(err)
	}
	// What the first start asks once has been answered.
	state, err := json.Marshal(map[string]any{
		"hasCompletedOnboarding": true, "theme": "dark", "customApiKeyResponses": map[string]any{"approved": []string{"fake"}},
		"projects": map[string]any{s.dir: map[string]any{"hasTrustDialogAccepted": true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.home, ".claude.json"), state, 0o600); err != nil {
		t.Fatal(err)
	}
	chat := exec.CommandContext(t.Context(), realClaude(t), "--mcp-config", string(config), "--allowedTools", "mcp__ralph,Bash", "--", "Let us work on TASK-1.")
	chat.Dir, chat.Env = s.dir, append(s.command().Env, "TERM=xterm-256color")
	screen := newTerminal(t, chat)
	press := func(key string) {
		t.Helper()
		waitFor(t, func() bool { return screen.shows("Decline") })
		if _, err := screen.WriteString(key); err != nil {
			t.Fatal(err)
		}
	}
	press("\x1b")
	waitFor(t, func() bool { return len(s.api.Requests()) > 2 })
	s.has(s.run(0, "task", "show", "1"), "in_progress")
	press("\r")
	waitFor(t, func() bool { return strings.Contains(s.run(0, "task", "show", "1"), "completed") })
	for _, r := range s.api.Requests()[2:3] {
		s.has(r.Text, "the person did not confirm that the task is done; it stays claimed")
	}
}
