package main

import (
	"slices"
	"strings"
	"testing"
)

// undoable makes a project in which TASK-1 has been merged.
func undoable(t *testing.T) *scriptedProject {
	t.Helper()
	s := newScriptedProject(t, "task Second\n  write second.txt \"x\"\n  done {\"summary\": \"made it\"}\n"+
		"task *\n  run echo x >> a.txt\n  done {\"summary\": \"made it\"}\n", "verify: ['true']\n")
	s.ralph(0, "task", "add", "First")
	s.has(s.ralph(0, "run"), "TASK-1 merged into")
	s.has(s.git("ls-tree", "--name-only", "HEAD"), "a.txt")
	return s
}

// TestABrowserUndoesMergedWork: from the list of merged tasks, in a real repository. A run merges the reverse, and does
// the task again with the reason.
func TestABrowserUndoesMergedWork(t *testing.T) {
	t.Parallel()
	needChromium(t)
	s := undoable(t)
	s.ralph(0, "task", "add", "Second")
	s.ralph(0, "run")
	d := serveProject(t, s, "127.0.0.1:0")
	p := newTab(t)
	p.signIn(s, d)
	p.open(d.url)
	p.click(`#d1 a[href$="#diff-h"]`)
	p.reads("#diff-h", "The change")
	p.open(d.url)
	p.click(`#d1 a[aria-label="Undo TASK-1"]`)
	p.write("#undo-why", "in capitals, please")
	p.click(`form[action="/tasks/1/undo"] button`)
	p.reads(".flash", "TASK-1: the reverse of its change is being verified and merged.")
	p.reads(".lead", "Cancelled")
	s.has(s.ralph(0, "prompt", "1", "--json"), "in capitals, please")
	if files := s.git("ls-tree", "--name-only", "HEAD"); strings.Contains(files, "a.txt") {
		t.Errorf("the branch has\n%s", files)
	}
	p.open(d.url + "/tasks/1")
	p.click(`details:has(form[action="/tasks/1/undo"]) summary`)
	p.click(`form[action="/tasks/1/undo"] button`)
	p.reads(".lead", "Merged")
	s.has(s.git("ls-tree", "--name-only", "HEAD"), "a.txt")
	s.has(s.git("log", "--format=%s"), "TASK-1: undo First", "TASK-1: bring back First")
}

// TestAChatUndoesATask: the person is asked, and a client that cannot ask is refused.
func TestAChatUndoesATask(t *testing.T) {
	t.Parallel()
	s := undoable(t)
	s.chat(nil).want("agentic_task_undo", `{"task_id":1}`, "a person has to say so, and this client cannot ask them: `ralph undo 1`", true)
	p := &person{answer: "decline"}
	c := s.chat(p)
	c.want("agentic_task_undo", `{"task_id":1}`, "the person did not confirm it: TASK-1 stays as it is", true)
	if want := []string{"Undo the merged changes of TASK-1, and cancel the task?"}; !slices.Equal(p.asked, want) {
		t.Errorf("the person was asked %q, want %q", p.asked, want)
	}
	p.answer = "accept"
	c.want("agentic_task_undo", `{"task_id":2}`, "TASK-2: not found", true)
	c.want("agentic_task_undo", `{"task_id":"TASK-1","reason":"not wanted"}`, "TASK-1: the reverse of its change is being verified and merged", false)
	events := s.follow(0)
	for e := events.next(); e.Type != "task.status_changed" || !strings.Contains(string(e.Payload), `"to":"cancelled"`); e = events.next() {
	}
	events.interrupt()
	s.has(s.ralph(0, "task", "show", "1"), "cancelled: undone by", "not wanted")
	if files := s.git("ls-tree", "--name-only", "HEAD"); strings.Contains(files, "a.txt") {
		t.Errorf("the branch has\n%s", files)
	}
	p.slow = func() { s.ralph(0, "undo", "1") } // another person brings it back
	c.want("agentic_task_undo", `{"task_id":1}`, "it was changed after the person was asked: TASK-1 stays as it is", true)
}
