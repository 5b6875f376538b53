package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ralph"
)

// TestAReviewIsKilled before its first word, and after its approval: nothing is lost, no unreviewed change is merged,
// and each conversation has its seen cost.
func TestAReviewIsKilled(t *testing.T) {
	t.Parallel()
	s := newScriptedProject(t, `task review of One
  run cat a.txt; touch "$RALPH_ROOT/.git/read"; until test -e "$RALPH_ROOT/.git/go1"; do sleep 0.02; done
  call review.approve {"checked": "read it"}
  run touch "$RALPH_ROOT/.git/said"; until test -e "$RALPH_ROOT/.git/go2"; do sleep 0.02; done
task One
  write a.txt "a\n"
  done {"summary": "made it"}
`, "sandbox: off\npermissions: {guards: false}\nagents: {critic: {kind: claude}}\nreview: [{agent: critic}]\nverify: ['true']\n")
	s.ralph(0, "task", "add", "One")
	at := func(name string) string { return filepath.Join(s.dir, ".git", name) }
	killAt := func(mark string) {
		t.Helper()
		run := s.command("run")
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { _, err := os.Stat(at(mark)); return err == nil })
		if err := run.Process.Kill(); err != nil {
			t.Error(err)
		}
		if err := run.Wait(); err == nil {
			t.Error("the run was not killed")
		}
		if files := s.git("ls-tree", "--name-only", "HEAD"); strings.Contains(files, "a.txt") {
			t.Errorf("what was not reviewed is merged: %s", files)
		}
		if err := os.Remove(at(mark)); err != nil {
			t.Error(err)
		}
	}
	killAt("read")
	if err := os.WriteFile(at("go1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	killAt("said")
	if err := os.WriteFile(at("go2"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.ralph(0, "run")
	s.has(s.git("ls-tree", "--name-only", "HEAD"), "a.txt")
	s.has(s.ralph(0, "task", "show", "1"), "approved by critic", "read it")
	var list []ralph.Session
	if err := json.Unmarshal([]byte(s.ralph(0, "session", "list", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	lost, reviews := 0, 0
	for _, one := range list {
		if one.Role == ralph.RoleReview {
			reviews++
		}
		if one.Role == ralph.RoleReview && one.Ending == ralph.Lost {
			lost++
			s.has(one.Reason, "ralph or its machine stopped meanwhile")
		}
		if one.CostUSD > 1 {
			t.Errorf("session %s (%s, %s) is charged $%.2f of its limit of $%.2f", one.ID, one.Role, one.Ending, one.CostUSD, one.CostLimitUSD)
		}
	}
	if lost != 2 || reviews != 3 {
		t.Errorf("%d of %d reviews were lost, want 2 of 3", lost, reviews)
	}
}

// TestAnAuthorIsKilledWhileItMends a reviewer's objection: the objection reaches its next session with the work, it is
// made once, and the mended work is reviewed before it is merged.
func TestAnAuthorIsKilledWhileItMends(t *testing.T) {
	t.Parallel()
	s := newScriptedProject(t, `task review of One
when +mended
  run cat a.txt
  call review.approve {"checked": "read it again"}
task review of One
  run cat a.txt
  call review.object {"file": "a.txt", "line": 1, "what": "it is half", "why": "the rest is missing", "severity": "blocking"}
task One
when it is half
  run test "$(cat a.txt b.txt)" = "$(printf 'half\nbegun')"
  write a.txt "mended\n"
  done {"summary": "mended it"}
task One
  write a.txt "half\n"
  done {"summary": "made it"}
turn
  write b.txt "begun\n"
  run touch "$RALPH_ROOT/.git/mends"; until test -e "$RALPH_ROOT/.git/go"; do sleep 0.02; done
`, "sandbox: off\npermissions: {guards: false}\nagents: {critic: {kind: claude}}\nreview: [{agent: critic}]\nverify: ['true']\n")
	s.ralph(0, "task", "add", "One")
	run := s.command("run")
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { _, err := os.Stat(filepath.Join(s.dir, ".git", "mends")); return err == nil })
	if err := run.Process.Kill(); err != nil {
		t.Error(err)
	}
	if err := run.Wait(); err == nil {
		t.Error("the run was not killed")
	}
	s.has(s.ralph(0, "run"), "TASK-1 merged into")
	if got := s.git("show", "HEAD:a.txt") + s.git("show", "HEAD:b.txt"); got != "mended\nbegun\n" {
		t.Errorf("merged is %q", got)
	}
	shown := s.ralph(0, "task", "show", "1")
	s.has(shown, "approved by critic", "read it again")
	var list []ralph.Session
	if err := json.Unmarshal([]byte(s.ralph(0, "session", "list", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	var roles []string
	for _, one := range list {
		roles = append(roles, string(one.Role)+" "+string(one.Ending))
	}
	slices.Sort(roles)
	if want := []string{"review finished", "review finished", "work finished", "work lost"}; !slices.Equal(roles, want) {
		t.Errorf("the sessions are %q, want %q", roles, want)
	}
}

// TestAWorkersChangeIsReviewed by the agent that is configured: an objection reaches the worker as the answer to its done.
func TestAWorkersChangeIsReviewed(t *testing.T) {
	t.Parallel()
	s := newWorkspaces(t, `task review of Insist
  run cat file.txt
  call review.object {"file": "file.txt", "line": 1, "what": "it is wrong", "why": "`+strings.Repeat("so ", 3000)+`it is", "severity": "blocking"}
task review
when echo wrong
  run cat file.txt
  call review.object {"file": "file.txt", "line": 1, "what": "it is wrong", "why": "it says so", "severity": "blocking"}
task review
  run cat file.txt
  call review.approve {"checked": "read it"}
`, "agents: {critic: {kind: claude}}\nreview: [{agent: critic}]\nverify: ['true']\n")
	s.ralph(0, "task", "add", "Change it")
	c := newClient(t, s.command("mcp", "--profile", "worker", "--name", "outside"))
	dir := c.takes(`{}`, "You hold TASK-1")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "file.txt"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("echo wrong\n")
	c.want("ralph_signal_done", `{"summary":"made it"}`, "file.txt:1: it is wrong (it says so)", false)
	write("echo right\n")
	c.want("ralph_signal_done", `{"summary":"mended it"}`, "TASK-1 is completed", false)
	s.has(s.ralph(0, "task", "show", "1"), "approved by critic", "read it")

	// After the last round a person decides, with both sides' words, whole, in the chat, too.
	s.ralph(0, "task", "add", "Insist")
	dir = c.takes(`{}`, "You hold TASK-2")
	write("echo one\n")
	c.want("ralph_signal_done", `{"summary":"it is right"}`, "file.txt:1: it is wrong (so so", false)
	write("echo two\n")
	c.want("ralph_signal_done", `{"summary":"it is right"}`, "TASK-2 is needs_input", false)
	s.chat(nil).want("agentic_task_show", `{"task_id":2}`, `so it is)\n\nThe author says: it is right`, false)
}
