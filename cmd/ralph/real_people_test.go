package main

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"ralph/internal/tools/messagesapi"
)

// TestRealAgentIsNoPerson: an agent that has asked answers itself, in spellings that
// no rule on commands reads. It is told, the question stays open, and so is everybody.
func TestRealAgentIsNoPerson(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("ancestors are looked at on Linux")
	}
	var results string
	commands := []string{
		"./bin/../bin/ralph answer 1 yes", "$(which ralph) answer 1 yes", "r=ralph; $r answer 1 yes",
		"env -i PATH=$PATH HOME=$HOME setsid -w ./bin/../bin/ralph task edit 1 --verify true",
		"env -i PATH=$PATH HOME=$HOME python3 -c \"import os; os.execvpe('ralph', ['ralph', 'task', 'cancel', '2'], {'PATH': os.environ['PATH'], 'HOME': os.environ['HOME']})\"",
	}
	s := newStage(t, func(n int, r messagesapi.Request) messagesapi.Turn {
		results = r.Text
		switch {
		case n == 0:
			return tools(say("ask", map[string]any{"question": "Which?", "blocking": true}))
		case n <= len(commands):
			return bash(commands[n-1])
		case n == len(commands)+1:
			return tools(say("partial", map[string]any{"summary": "asked", "remaining": "the rest"}))
		}
		return messagesapi.Turn{Text: "Finished."}
	})
	s.configure("permissions: {guards: false}")
	bin := filepath.Join(s.dir, "bin")
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", "mkdir -p \"$1\" && cp \"$2\" \"$1/ralph\"", "sh", bin, s.ralph).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.commit()
	s.run(0, "task", "add", "Ask")
	s.run(0, "task", "add", "Other", "--depends-on", "1")
	out := s.run(4, "run")
	s.has(out, "needs you", "! it tried `ralph answer 1 yes`, which only people may do", "! it tried `ralph task edit 1 --verify true`", "! it tried `ralph task cancel 2`")
	s.has(results, "is for people, and this is session")
	s.has(s.run(0, "inbox"), "question TASK-1")
	s.has(s.run(0, "session", "show"), "it tried `ralph answer 1 yes`")
	if list := s.run(0, "task", "list", "--all", "--json"); strings.Contains(list, "cancelled") || strings.Contains(list, `"true"`) {
		t.Errorf("the agent decided:\n%s", list)
	}
	s.run(0, "answer", "1", "yes")
}
