package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ralph/internal/state"
	"ralph/internal/tools/messagesapi"
)

// TestRealAmendment: approving an amendment of the contract while the agent works
// stops its session, keeps its files, and is in the next prompt.
func TestRealAmendment(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(n int, _ messagesapi.Request) messagesapi.Turn {
		switch {
		case n == 0:
			// A person decides while the agent's command runs, which goes on for ever.
			return bash("echo half > half.txt && sleep 600")
		case n == 1:
			return bash("echo x > b.txt")
		case n == 2:
			return done("made b.txt")
		}
		return finished
	})
	s.run(0, "task", "add", "Make", "--verify", "test -f a.txt")
	s.run(0, "amendment", "propose", "1", "--patch", `{"contracts":{"verify":["test -f b.txt"]}}`, "--rationale", "it is called b.txt")
	_, wait := s.start("run")
	waitFor(t, func() bool { return state.Exists(filepath.Join(s.workspace(), "half.txt")) })
	s.run(0, "approve", "A1")
	out := wait(0)
	s.has(out, "interrupted: its task was changed", "TASK-1 merging: done and verified")
	if requests := s.api.Requests(); len(requests) < 2 || !strings.Contains(requests[1].Text, "it is called b.txt") {
		t.Error("the amendment is not in the next prompt")
	}
	if _, err := os.Stat(filepath.Join(s.dir, "half.txt")); err != nil {
		t.Errorf("the first session's work is gone: %v", err)
	}
	s.has(s.run(0, "events", "--type", "task.amendment.applied", "--json"), `"claimDropped":true`)
}
