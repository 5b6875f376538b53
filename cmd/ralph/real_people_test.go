package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"ralph/internal/messagesapi"
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
	s.run(0, "task", "add", "Ask")
	s.run(0, "task", "add", "Other", "--depends-on", "1")
	out := s.run(4, "run")
	s.has(out, "→ needs_input", "! it tried `ralph answer 1 yes`, which only people may do", "! it tried `ralph task edit 1 --verify true`", "! it tried `ralph task cancel 2`")
	s.has(results, "is for people, and this is session")
	s.has(s.run(0, "inbox"), "question TASK-1")
	s.has(s.run(0, "session", "show"), "it tried `ralph answer 1 yes`")
	if list := s.run(0, "task", "list", "--json"); strings.Contains(list, "cancelled") || strings.Contains(list, `"true"`) {
		t.Errorf("the agent decided:\n%s", list)
	}
	s.run(0, "answer", "1", "yes")
}

// TestRealConfigurationWaits: what the agent writes to ralph.yaml by Bash rules no run
// before a person has approved it, and what people left may be put back.
func TestRealConfigurationWaits(t *testing.T) {
	t.Parallel()
	partial := tools(say("partial", map[string]any{"summary": "some", "remaining": "the rest"}))
	loosen := bash("sed -i 's/^verify: .*/limits: {max_cost_usd: 1000}/' ralph.yaml")
	s := newStage(t, turns(loosen, partial, finished, loosen, partial, finished, bash("echo x > work.txt"), partial, finished))
	s.configure("permissions: {guards: false}\nverify: ['test -f proof']")
	file := filepath.Join(s.dir, "ralph.yaml")
	people, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s.run(0, "task", "add", "Loosen")
	s.has(s.run(5, "run", "--max-sessions", "1", "--on-red", "go"), "! it changed ralph.yaml, by which runs are configured")
	out := s.run(4, "run")
	s.has(out, "ralph.yaml is as session", "-   verify: ['test -f proof']", "+   limits: {max_cost_usd: 1000}", "`ralph approve config` approves it")
	if strings.Contains(out, "▶") {
		t.Errorf("a session was launched:\n%s", out)
	}
	if err := os.WriteFile(file, people, 0o600); err != nil {
		t.Fatal(err)
	}
	s.has(s.run(5, "run", "--max-sessions", "1", "--on-red", "go"), "verification: test -f proof", "▶ TASK-1", "! it changed ralph.yaml")
	s.run(4, "run")
	s.has(s.run(0, "approve", "config", "--yes"), "approved: ralph.yaml")
	s.has(s.run(5, "run", "--max-sessions", "1", "--on-red", "go"), "verification: nothing checks every task", "$1000.00")
}

// TestRealRewindIsItsOwn: a task's reset takes ralph.yaml and a test back to what they
// were; the next task's done is judged by itself.
func TestRealRewindIsItsOwn(t *testing.T) {
	t.Parallel()
	s := newStage(t, turns(
		bash("git reset -q --hard HEAD~1"), tools(say("stuck", map[string]any{"reason": "I give up"})), messagesapi.Turn{Text: "Finished."},
		bash("echo x > honest.txt"), done("did it"), messagesapi.Turn{Text: "Finished."},
	))
	s.configure("permissions: {guards: false}\nstuck_limit: 1")
	script := "git add ralph.yaml && git commit -qm one && " +
		"echo \"verify: {commands: ['true'], protect: [ralph.yaml, 'tests/**']}\" >> ralph.yaml && mkdir tests && echo wish > tests/check.txt && git add ralph.yaml tests && git commit -qm two"
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir, cmd.Env = s.dir, s.command().Env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.run(0, "task", "add", "Rewind")
	s.run(0, "task", "add", "Honest")
	s.has(s.run(3, "run"), "TASK-1 → failed: stuck", "! it changed ralph.yaml", "which are put back as people left them: tests/check.txt", "TASK-2 → merging: done and verified")
	if text, err := os.ReadFile(filepath.Join(s.dir, "tests", "check.txt")); err != nil || string(text) != "wish\n" {
		t.Errorf("the test is %q, %v", text, err)
	}
}
