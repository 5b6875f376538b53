package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ralph"
	"ralph/internal/state"
	"ralph/internal/tools/messagesapi"
	"ralph/loop/agent/claude"
)

// state has the agent report a phase.
func reportsPhase(phase string) messagesapi.Turn {
	return tools(messagesapi.Tool{Name: claude.StateTool, Input: map[string]any{"state": phase, "metadata": map[string]any{"files": []string{"a.txt"}}}})
}

// write has the agent write a file with its own tool.
func write(path, content string) messagesapi.Turn {
	return tools(messagesapi.Tool{Name: "Write", Input: map[string]any{"file_path": path, "content": content}})
}

// TestRealStates is a whole session three times: with every phase reported, with
// none, and with one of them. People see the right phases each time, and where they
// come from.
func TestRealStates(t *testing.T) {
	t.Parallel()
	s := newStage(t, turns(
		reportsPhase("analyzing"), bash("ls"), reportsPhase("implementing"), bash("echo x > a.txt"), reportsPhase("testing"), bash("go test ./... || true"),
		reportsPhase("committing"), bash("git add a.txt && git commit -qm a"), reportsPhase("reviewing"), bash("git show --stat"), done("made it"), finished,

		bash("cat a.txt"), write("b.txt", "x\n"), bash("cat b.txt"), bash("go test ./... || true"), write("b.txt", "xx\n"), bash("go test ./... || true"),
		bash("git add b.txt && git commit -qm b"), done("made it"), finished,

		// Long enough after the report for another state.
		bash("cat a.txt"), reportsPhase("implementing"), bash("sleep 1.5; sed -i s/x/y/ a.txt"), bash("go test ./... || true"), done("made it"), finished,
	))
	for _, task := range []struct {
		title string
		want  []string
	}{
		{"Reported", []string{
			"idle observed", "analyzing reported", "implementing reported", "testing reported", "committing reported", "reviewing reported", "done observed",
		}},
		{"Observed", []string{
			"idle observed", "analyzing observed", "implementing observed", "testing observed", "implementing observed", "testing observed", "committing observed", "done observed",
		}},
		{"Half", []string{"idle observed", "analyzing observed", "implementing reported", "testing observed", "done observed"}},
	} {
		s.run(0, "task", "add", task.title)
		s.has(s.run(0, "run"), "merged into main")
		var list []ralph.Session
		if err := json.Unmarshal([]byte(s.run(0, "session", "list", "--json")), &list); err != nil {
			t.Fatal(err)
		}
		var got []string
		last := list[0].StartedAt
		for _, h := range list[0].History {
			entry := string(h.State) + " " + h.Source
			if h.Unexpected {
				entry += " unexpected"
			}
			got = append(got, entry)
			if h.Timestamp.Before(last.Time) {
				t.Errorf("%s: %s is at %s, before %s", task.title, entry, h.Timestamp, last)
			}
			last = h.Timestamp
			if files, ok := h.Metadata["files"].([]any); h.Source == ralph.Reported && (!ok || len(files) != 1 || files[0] != "a.txt") {
				t.Errorf("%s: %s was reported with other metadata: %v", task.title, entry, h.Metadata)
			}
		}
		if !slices.Equal(got, task.want) {
			t.Errorf("%s:\n got %q\nwant %q", task.title, got, task.want)
		}
		// The events tell the same, but for the beginning and the end, which have events of their own.
		var told []string
		for line := range strings.Lines(s.run(0, "events", "--json", "--type", ralph.EventType(ralph.SessionMoved{}))) {
			var e ralph.Event
			var p struct{ State, Source string }
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(e.Payload, &p); err != nil {
				t.Fatal(err)
			}
			if e.SessionID == list[0].ID {
				told = append(told, p.State+" "+p.Source)
			}
		}
		if want := task.want[1 : len(task.want)-1]; !slices.Equal(told, want) {
			t.Errorf("%s: events\n got %q\nwant %q", task.title, told, want)
		}
	}
	s.has(s.run(0, "session", "list", "--states"), "analyzing", "committing")
}

// TestRealEnforce: with sessions.enforce a file is changed only after a report, and
// the model is told why.
func TestRealEnforce(t *testing.T) {
	t.Parallel()
	edits := turns(write("early.txt", "x\n"), reportsPhase("implementing"), write("late.txt", "x\n"), done("made it"), finished)
	s := newStage(t, edits)
	s.configure("sessions: {enforce: true}")
	s.run(0, "task", "add", "Make", "--verify", "test -f late.txt && ! test -f early.txt")
	s.has(s.run(0, "run"), "TASK-1 merging: done and verified")
	s.has(s.api.Requests()[1].Text, "Report your phase before you change files: call "+claude.StateTool)

	free := newStage(t, edits)
	free.run(0, "task", "add", "Make", "--verify", "test -f late.txt")
	free.has(free.run(0, "run"), "TASK-1 merging: done and verified")
	if !state.Exists(filepath.Join(free.dir, "early.txt")) {
		t.Error("without sessions.enforce an edit was refused")
	}
}
