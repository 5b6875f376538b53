package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"

	"ralph/internal/tools/messagesapi"
	"ralph/loop/workspace"
)

// escapes match terminal controls.
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
	s.run(0, "chat", "claim", "1")
	self := s.command("mcp", "--profile", "chat")
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"ralph": map[string]any{"command": self.Path, "args": self.Args[1:]}}})
	if err != nil {
		t.Fatal(err)
	}
	// The questions of the first start are answered.
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
	s.has(s.run(0, "task", "show", "1"), "running")
	press("\r")
	waitFor(t, func() bool { return strings.Contains(s.run(0, "task", "show", "1"), "merged") })
	for _, r := range s.api.Requests()[2:3] {
		s.has(r.Text, "the person did not confirm that the task is done; it stays claimed")
	}
}

// TestRealSessionGoesOnInATerminal: a person opens a stopped session in its agent's own terminal. The agent knows the
// conversation, the person lets it continue, and the task is merged.
func TestRealSessionGoesOnInATerminal(t *testing.T) {
	on(t, func(t *testing.T, newStage stageMaker) {
		name := filepath.Base(t.Name())
		s := newStage(t, func(_ int, r messagesapi.Request) messagesapi.Turn {
			lacks := func(text string) bool { return !strings.Contains(r.Body, text) }
			switch opened := !lacks("A person goes on with you"); {
			case lacks("touch half.txt"):
				return bash("touch half.txt")
			case lacks("the other half"):
				return tools(say("partial", map[string]any{"summary": "half of it", "remaining": "the other half"}))
			case !opened:
				return finished
			case lacks("please-finish-it"):
				return messagesapi.Turn{Text: "I stopped HALFWAY."}
			case lacks("cp half.txt"):
				return bash("cp half.txt made.txt")
			case lacks("the person said so"):
				return done("the person said so")
			}
			return messagesapi.Turn{Text: "It is MERGED."}
		})
		workspace := filepath.Join(filepath.Dir(filepath.Dir(s.workspace())), strconv.Itoa(workspace.FirstWorker), "tree")
		state, err := json.Marshal(map[string]any{ // what the first start asks once has been answered
			"hasCompletedOnboarding": true, "theme": "dark", "customApiKeyResponses": map[string]any{"approved": []string{"fake"}},
			"projects": map[string]any{workspace: map[string]any{"hasTrustDialogAccepted": true}},
		})
		if err != nil {
			t.Fatal(err)
		}
		s.file(filepath.Join(s.home, ".claude.json"), string(state))
		s.file(filepath.Join(s.home, ".claude", "settings.json"), `{"permissions": {"allow": ["Bash"]}}`)
		if name == "codex" {
			path := filepath.Join(s.home, ".codex", "config.toml")
			config, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s.file(path, fmt.Sprintf("approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\n%s\n[projects.%q]\ntrust_level = \"trusted\"\n"+
				"[notice.model_migrations]\n\"gpt-5.5\" = \"gpt-6-sol\"\n", config, workspace)) // it would offer another model first
		}
		s.run(0, "task", "add", "Make", "--verify", "test -f made.txt && test -f half.txt")
		s.run(5, "run", "--max-sessions", "1")
		open := s.command("session", "open")
		open.Env = append(open.Env, "TERM=xterm-256color")
		screen := newTerminal(t, open)
		t.Cleanup(func() {
			if t.Failed() {
				screen.mu.Lock()
				defer screen.mu.Unlock()
				t.Logf("the screen: %s", escapes.ReplaceAllString(screen.text.String(), ""))
			}
		})
		waitFor(t, func() bool { return screen.shows("HALFWAY") })
		if _, err := screen.WriteString("please-finish-it"); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool {
			_, err := screen.WriteString("\r") // until it is sent: one that comes with what was typed is a line of it
			return err != nil || slices.ContainsFunc(s.api.Requests(), func(r messagesapi.Request) bool {
				return strings.Contains(r.Body, "please-finish-it")
			})
		})
		waitFor(t, func() bool { return screen.shows("MERGED") })
		waitFor(t, func() bool {
			_, err := screen.WriteString("\x03") // until it has ended
			return err != nil || screen.shows("TASK-1 is merged")
		})
		s.has(s.run(0, "task", "show", "1"), "merged into main")
		s.has(s.git("ls-tree", "--name-only", "main"), "half.txt", "made.txt")
	}, "claude", "codex")
}
