package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ralph/internal/state"
)

// newSlots is a project on a branch main whose workers work in slots.
func newSlots(t *testing.T, script, config string) *scriptedProject {
	t.Helper()
	s := newScriptedProject(t, script, "sandbox: off\nplace: {kind: slot}\n"+config)
	s.git("checkout", "-q", "-b", "main")
	s.commits("file.txt", "base\n")
	return s
}

func (s *scriptedProject) git(args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "git", args...)
	cmd.Dir, cmd.Env = s.dir, s.env
	return wantStatus(s.t, cmd, 0)
}

// commits commits a file where people work.
func (s *scriptedProject) commits(name, text string) {
	s.t.Helper()
	s.write(name, text)
	s.git("add", "-A")
	s.git("commit", "-qm", "of a person")
}

var folder = regexp.MustCompile(`(?m)^/.*/places/\d+/tree$`)

// takes claims a task and returns the folder in which it is to be worked on.
func (c *client) takes(args, holds string) (dir string) {
	c.t.Helper()
	text, refused := c.call("claim_task", args)
	if dir = folder.FindString(text); refused || dir == "" || !strings.Contains(text, holds) {
		c.t.Fatalf("claim_task %s: %t %q", args, refused, text)
	}
	return dir
}

// TestAWorkerInASlotOfItsOwn: what it does in the folder that it is told is checked apart
// from people's and lands; what it does elsewhere counts as nothing.
func TestAWorkerInASlotOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newSlots(t, "", "verify: ['! test -e bad']\n")
	add := func(args ...string) { s.ralph(0, append([]string{"task", "add"}, args...)...) }
	c := newClient(t, s.command("mcp", "--profile", "worker", "--name", "codex"))
	put := func(dir, name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const done = `{"summary":"made it"}`

	add("Walk", "--verify", "test -f walked")
	dir := c.takes(`{}`, "You hold TASK-1")
	c.want("claim_task", `{}`, "you hold TASK-1; close or release it first", true)
	put(dir, "bad", "x")
	c.want("ralph_signal_done", done, "Exit status: 1", false)
	if err := os.Remove(filepath.Join(dir, "bad")); err != nil {
		t.Fatal(err)
	}
	put(dir, "walked", "x")
	c.want("ralph_signal_done", done, "TASK-1 is completed: landed on main as", false)
	if !state.Exists(filepath.Join(s.dir, "walked")) || !strings.Contains(s.git("log", "-1", "--format=%s"), "TASK-1: Walk") {
		t.Errorf("it has not landed:\n%s", s.git("log", "--oneline"))
	}
	if out := s.ralph(0, "task", "show", "1"); !strings.Contains(out, "agent not contained") {
		t.Errorf("its receipt does not say that nobody held its agent:\n%s", out)
	}

	add("Elsewhere")
	dir = c.takes(`{}`, "You hold TASK-2")
	s.write("elsewhere", "x")
	c.want("ralph_signal_done", done, "nothing has changed in your folder since this session began:\n\n"+dir, false)
	if err := os.Rename(filepath.Join(s.dir, "elsewhere"), filepath.Join(dir, "elsewhere")); err != nil {
		t.Fatal(err)
	}
	c.want("ralph_signal_done", done, "TASK-2 is completed", false)

	add("Conflict")
	dir = c.takes(`{}`, "You hold TASK-3")
	put(dir, "file.txt", "mine\n")
	s.commits("file.txt", "theirs\n")
	c.want("ralph_signal_done", done, "main has moved, and the change conflicts with it in file.txt", false)
	merge := exec.CommandContext(t.Context(), "sh", "-c", "git add -A && git commit -qm mine && ! git merge -q ralph/main && echo both >file.txt && git commit -qam both")
	merge.Dir, merge.Env = dir, s.env
	wantStatus(t, merge, 0)
	c.want("ralph_signal_done", done, "TASK-3 is completed", false)
	if out := s.git("show", "HEAD:file.txt"); out != "both\n" {
		t.Errorf("what landed is %q", out)
	}

	add("Halves")
	dir = c.takes(`{}`, "You hold TASK-4")
	put(dir, "half", "x")
	c.want("ralph_signal_partial", `{"summary":"half","remaining":"the rest"}`, "TASK-4 is pending", false)
	dir = c.takes(`{}`, "What an earlier session of this task left is in it")
	put(dir, "given", "x")
	c.want("release_task", `{}`, "TASK-4 is back in the queue", false)
	dir = c.takes(`{}`, "What an earlier session of this task left is in it")
	for _, name := range []string{"half", "given"} {
		if !state.Exists(filepath.Join(dir, name)) {
			t.Errorf("what was left is not there: %s", name)
		}
	}
	c.want("ralph_signal_done", done, "TASK-4 is completed", false)

	add("Cancelled")
	dir = c.takes(`{}`, "You hold TASK-5")
	s.ralph(0, "task", "cancel", "5")
	c.want("ralph_signal_done", done, "cancelled the task; what you did stays", true)

	add("Removed")
	if again := c.takes(`{}`, "You hold TASK-6"); again != dir {
		t.Errorf("the slot of a claim that is over is not used again, but %s", again)
	}
	if err := os.RemoveAll(filepath.Dir(dir)); err != nil {
		t.Fatal(err)
	}
	c.want("ralph_signal_done", done, "TASK-6 is pending: the done could not be checked", false)
	add("After it")
	dir = c.takes(`{"task_id":7}`, "You hold TASK-7")
	put(dir, "after", "x")
	c.want("ralph_signal_done", done, "TASK-7 is completed", false)
	if err := c.session.Close(); err != nil {
		t.Error(err)
	}
	if out := s.ralph(0, "place", "list"); strings.Contains(out, "busy") || !strings.Contains(out, "129 ") {
		t.Errorf("a slot is held although nobody works:\n%s", out)
	}
}
