package main

import (
	"testing"

	"ralph/internal/messagesapi"
)

// state has the agent report a phase.
func state(phase string) messagesapi.Turn {
	return tools(messagesapi.Tool{Name: stateTool, Input: map[string]any{"state": phase, "metadata": map[string]any{"files": []string{"a.txt"}}}})
}

// TestRealStates is a whole session, once with every phase reported, once with
// none: people see the same phases.
func TestRealStates(t *testing.T) {
	t.Parallel()
	s := newStage(t, turns(
		state("analyzing"), bash("ls"), state("implementing"), bash("echo x > a.txt"), state("testing"), bash("go test ./... || true"),
		state("committing"), bash("git add a.txt && git commit -qm a"), state("reviewing"), done("made it"), finished,
		// the second session reports nothing
		bash("cat a.txt"), write("b.txt", "x\n"), bash("go test ./... || true"), bash("git add b.txt && git commit -qm b"), done("made it"), finished,
	))
	s.run(0, "task", "add", "Reported")
	s.run(0, "task", "add", "Observed")
	s.run(0, "run")
	for task, want := range map[string][]string{
		"1": {`"state": "analyzing"`, `"source": "reported"`, `"state": "implementing"`, `"state": "testing"`, `"state": "committing"`, `"state": "reviewing"`, `"state": "done"`},
		"2": {`"state": "analyzing"`, `"source": "observed"`, `"state": "implementing"`, `"state": "testing"`, `"state": "committing"`, `"state": "done"`},
	} {
		s.has(s.run(0, "session", "list", "--task", task, "--json"), want...)
	}
	s.has(s.run(0, "session", "states"), "analyzing", "committing")
}

// TestRealEnforce: with sessions.enforce a file is changed only after a report.
func TestRealEnforce(t *testing.T) {
	t.Parallel()
	s := newStage(t, turns(write("early.txt", "x\n"), state("implementing"), write("late.txt", "x\n"), done("made it"), finished))
	s.configure("sessions: {enforce: true}")
	s.run(0, "task", "add", "Make", "--verify", "test -f late.txt && ! test -f early.txt")
	s.has(s.run(0, "run"), "TASK-1 → completed: done and verified")
}

// write has the agent write a file with its own tool.
func write(path, content string) messagesapi.Turn {
	return tools(messagesapi.Tool{Name: "Write", Input: map[string]any{"file_path": path, "content": content}})
}
