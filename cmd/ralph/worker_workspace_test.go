package main

import (
	"database/sql"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ralph/internal/state"
)

// newWorkspaces returns a project on a branch main whose workers work in workspaces.
func newWorkspaces(t *testing.T, script, config string) *scriptedProject {
	t.Helper()
	s := newScriptedProject(t, script, "sandbox: off\n"+config)
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

var folder = regexp.MustCompile(`(?m)^/.*/workspaces/\d+/tree$`)

// takes claims a task and returns the folder in which it is to be worked on.
func (c *client) takes(args, want string) (dir string) {
	c.t.Helper()
	text, refused := c.call("claim_task", args)
	if dir = folder.FindString(text); refused || dir == "" || !strings.Contains(text, want) {
		c.t.Fatalf("claim_task %s: %t %q", args, refused, text)
	}
	return dir
}

// TestAWorkerInAWorkspaceOfItsOwn: its work in the given folder is checked apart from people's and merged; work
// elsewhere does not count.
func TestAWorkerInAWorkspaceOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newWorkspaces(t, "", "verify: ['! test -e bad']\n")
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
	c.want("ralph_signal_done", done, "TASK-1 is completed: merged into main as", false)
	if !state.Exists(filepath.Join(s.dir, "walked")) || !strings.Contains(s.git("log", "-1", "--format=%s"), "TASK-1: Walk") {
		t.Errorf("it has not been merged:\n%s", s.git("log", "--oneline"))
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
	put(dir, "file.txt", "both\n")
	c.want("ralph_signal_done", done, "TASK-3 is completed", false)
	if out := s.git("show", "HEAD:file.txt"); out != "both\n" {
		t.Errorf("what was merged is %q", out)
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
	c.want("ralph_signal_done", done, "cancelled the task; your work stays", true)

	add("Removed")
	if again := c.takes(`{}`, "You hold TASK-6"); again != dir {
		t.Errorf("the workspace of a claim that is over is not used again, but %s", again)
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
	if out := s.ralph(0, "workspace", "list"); strings.Contains(out, "busy") || !strings.Contains(out, "129 ") {
		t.Errorf("a workspace is held although nobody works:\n%s", out)
	}
}

// lapses has half an hour pass for the workers with a name.
func (s *scriptedProject) lapses(name string) {
	s.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(s.state(), "ralph.db")+"?_busy_timeout=30000")
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(s.t.Context(), `
		UPDATE tasks SET claim_expires = '2026-01-01T00:00:00.000Z' WHERE claimed_by IN (SELECT id FROM sessions WHERE worker = $1 AND completed_at = '')`, name); err != nil {
		s.t.Fatal(err)
	}
}

// TestAWorkersWorkspaceOutlivesItsServer: its work is kept for the next session, nobody else gets the workspace before,
// and the finder of a signalled done judges it.
func TestAWorkersWorkspaceOutlivesItsServer(t *testing.T) {
	t.Parallel()
	between := t.TempDir()
	s := newWorkspaces(t, "", "verify: ['true']\npermissions: {writable: ["+between+"]}\n")
	put := func(dir, name string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	connect := func(name string) (*exec.Cmd, *client) {
		cmd := s.command("mcp", "--profile", "worker", "--name", name)
		return cmd, newClient(t, cmd)
	}
	kill := func(cmd *exec.Cmd, c *client) {
		t.Helper()
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.session.Wait() // it was killed
	}
	const done = `{"summary":"made it"}`

	s.ralph(0, "task", "add", "Killed")
	s.ralph(0, "task", "add", "Other")
	cmd, c := connect("killed")
	dir := c.takes(`{}`, "You hold TASK-1")
	put(dir, "half")
	kill(cmd, c)
	_, other := connect("other")
	if got := other.takes(`{}`, "You hold TASK-2"); got == dir {
		t.Error("another worker gets the workspace in which an agent may still work")
	} else {
		put(got, "other")
	}
	other.want("ralph_signal_done", done, "TASK-2 is completed", false)
	s.lapses("killed")
	dir = other.takes(`{}`, "You hold TASK-1")
	if !state.Exists(filepath.Join(dir, "half")) {
		t.Error("what was made in the workspace is lost")
	}
	other.want("ralph_signal_done", done, "TASK-1 is completed", false)

	// Its server lives, but nothing was heard of it for too long.
	s.ralph(0, "task", "add", "Silent")
	_, silent := connect("silent")
	dir = silent.takes(`{}`, "You hold TASK-3")
	put(dir, "silent")
	s.lapses("silent")
	got := other.takes(`{}`, "What an earlier session of this task left is in it")
	if got == dir || !state.Exists(filepath.Join(got, "silent")) {
		t.Errorf("it goes on in %s without what was made in %s", got, dir)
	}
	silent.want("ralph_signal_done", done, "your claim on TASK-3 is over: it has lapsed", true)
	other.want("ralph_signal_done", done, "TASK-3 is completed", false)
	s.ralph(0, "task", "add", "After")
	if again := silent.takes(`{}`, "You hold TASK-4"); again != dir && again != got {
		t.Errorf("the workspaces of claims that are over are not used again, but %s", again)
	}
	silent.want("release_task", `{}`, "TASK-4 is back in the queue", false)

	// Killed while its done is checked, and only then found.
	s.ralph(0, "task", "cancel", "4")
	s.ralph(0, "task", "add", "Checked", "--verify", "test -f checked && touch "+between+"/running && until test -f "+between+"/proceed; do sleep 0.1; done")
	cmd, c = connect("checked")
	dir = c.takes(`{}`, "You hold TASK-5")
	put(dir, "checked")
	go func() {
		_, _ = c.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "ralph_signal_done", Arguments: json.RawMessage(done)}) // it is killed
	}()
	waitFor(t, func() bool { return state.Exists(filepath.Join(between, "running")) })
	kill(cmd, c)
	put(between, "proceed")
	s.lapses("checked")
	other.want("get_next_actionable", `{}`, "No task can be claimed now", false)
	if out := s.ralph(0, "task", "show", "5"); !strings.Contains(out, "merged into main") || !state.Exists(filepath.Join(s.dir, "checked")) {
		t.Errorf("the done of a killed server is not judged and merged:\n%s", out)
	}
	for _, c := range []*client{other, silent} {
		if err := c.session.Close(); err != nil {
			t.Error(err)
		}
	}
	s.ralph(0, "db", "check")
	wantDeserted(t, s.dir)
}

// TestAWorkersClaimIsOverWhateverBecomesOfItsWorkspace: after a failure that follows the decision, the worker still
// learns that the done was recorded, and the claim ends.
func TestAWorkersClaimIsOverWhateverBecomesOfItsWorkspace(t *testing.T) {
	t.Parallel()
	s := newWorkspaces(t, "", "verify: ['true']\n")
	s.ralph(0, "task", "add", "One")
	s.ralph(0, "task", "add", "Two")
	c := newClient(t, s.command("mcp", "--profile", "worker"))
	dir := c.takes(`{}`, "You hold TASK-1")
	if err := os.WriteFile(filepath.Join(dir, "one"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	sessions, err := filepath.Glob(filepath.Join(s.state(), "sessions", "*"))
	if err != nil || len(sessions) != 1 {
		t.Fatal(sessions, err)
	}
	for _, lock := range []string{filepath.Join(sessions[0], "ending.lock"), filepath.Join(s.state(), "merge.lock")} {
		if err := os.Mkdir(lock, 0o700); err != nil { // neither can be taken
			t.Fatal(err)
		}
	}
	c.want("ralph_signal_done", `{"summary":"made it"}`, "TASK-1 is merging: done and verified (agent not contained): made it; not merged yet: lock of the merge queue", false)
	if err := os.Remove(filepath.Join(s.state(), "merge.lock")); err != nil {
		t.Fatal(err)
	}
	if again := c.takes(`{}`, "You hold TASK-2"); again != dir {
		t.Errorf("its workspace is not used again, but %s", again)
	}
	if out := s.ralph(0, "task", "show", "1"); !strings.Contains(out, "merged into main") {
		t.Errorf("what waited has not been merged:\n%s", out)
	}
	if err := c.session.Close(); err != nil {
		t.Error(err)
	}
}

// TestAPersonDecidesOnAWorkersWorkspace: changed protected files wait for a person, whose no brings
// the task back, and whose yes has it merged in the next worker's server.
func TestAPersonDecidesOnAWorkersWorkspace(t *testing.T) {
	t.Parallel()
	s := newWorkspaces(t, "", "verify: {commands: ['true'], protect: [file.txt], protect_mode: review}\n")
	s.ralph(0, "task", "add", "Change it")
	c := newClient(t, s.command("mcp", "--profile", "worker", "--name", "codex"))
	change := func(want string) {
		dir := c.takes(`{}`, want)
		if err := os.WriteFile(filepath.Join(dir, "file.txt"), []byte("changed\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		c.want("ralph_signal_done", `{"summary":"made it"}`, "TASK-1 is needs_input", false)
	}
	review := func() string {
		t.Helper()
		m := regexp.MustCompile(`ralph approve (C\d+)`).FindStringSubmatch(s.ralph(0, "inbox"))
		if m == nil {
			t.Fatal(s.ralph(0, "inbox"))
		}
		return m[1]
	}
	change("You hold TASK-1")
	s.ralph(0, "reject", review(), "leave it alone")
	if out := s.git("show", "HEAD:file.txt"); out != "base\n" {
		t.Errorf("what was rejected was merged: %q", out)
	}
	change("leave it alone")
	s.ralph(0, "approve", review())
	c.want("get_next_actionable", `{}`, "No task can be claimed now", false)
	if out := s.git("show", "HEAD:file.txt"); out != "changed\n" {
		t.Errorf("what was approved was not merged: %q\n%s", out, s.ralph(0, "task", "show", "1"))
	}
	if err := c.session.Close(); err != nil {
		t.Error(err)
	}
}

// TestAWorkersServerMergesIntoOneBranch: while another branch is the target, it hands out no task. Changes that wait
// while merging is paused are merged when a worker looks for a task.
func TestAWorkersServerMergesIntoOneBranch(t *testing.T) {
	t.Parallel()
	s := newWorkspaces(t, "", "")
	s.git("checkout", "-q", "--detach")
	s.has(s.ralph(2, "mcp", "--profile", "worker"), "HEAD is detached")
	s.git("checkout", "-q", "-b", "other")
	serve := func() *client { return newClient(t, s.command("mcp", "--profile", "worker")) }
	other := serve()
	other.want("get_next_actionable", `{}`, "No task can be claimed now", false) // it has begun
	s.git("checkout", "-q", "main")
	c := serve()
	s.ralph(0, "task", "add", "Waits")
	s.ralph(0, "task", "add", "Next")
	s.ralph(0, "pause", "--merging")
	dir := c.takes(`{}`, "You hold TASK-1")
	if err := os.WriteFile(filepath.Join(dir, "waits"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	const refused = "done work is being merged into main, and this server was started to merge into other"
	other.want("claim_task", `{}`, refused, true)
	c.want("ralph_signal_done", `{"summary":"made it"}`, "made it; not merged yet: merging is paused: by", false)
	other.want("claim_task", `{}`, refused, true)
	s.ralph(0, "resume", "--merging")
	c.want("get_next_actionable", `{}`, "TASK-2", false)
	if out := s.ralph(0, "task", "show", "1"); !strings.Contains(out, "merged into main") {
		t.Errorf("what waited has not been merged:\n%s", out)
	}
	other.takes(`{}`, "You hold TASK-2") // nothing is merged into main any more
	for _, c := range []*client{other, c} {
		if err := c.session.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestAPersonTakesALostWorkersTask: once the claim of a lost worker has expired, it holds nobody up, even without a
// run.
func TestAPersonTakesALostWorkersTask(t *testing.T) {
	t.Parallel()
	s := newWorkspaces(t, "", "")
	s.ralph(0, "task", "add", "Left")
	cmd := s.command("mcp", "--profile", "worker", "--name", "gone")
	c := newClient(t, cmd)
	c.takes(`{}`, "You hold TASK-1")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.session.Wait() // it was killed
	s.ralph(2, "chat", "claim", "1")
	s.lapses("gone")
	s.ralph(0, "chat", "claim", "1")
	if out := s.ralph(0, "session", "list", "--task", "1"); !strings.Contains(out, "lost: its worker gone is gone") {
		t.Errorf("got %s", out)
	}
}
