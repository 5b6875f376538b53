package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ralph/internal/state"
	"ralph/mcpserver"
)

// A client is a connection to `ralph mcp` in a process of its own.
type client struct {
	t       *testing.T
	session *mcp.ClientSession
}

func newClient(t *testing.T, cmd *exec.Cmd) *client {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &client{t, session}
}

// call calls a tool and returns its answer.
func (c *client) call(tool, args string) (text string, refused bool) {
	c.t.Helper()
	r, err := c.session.CallTool(c.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
	if err != nil {
		c.t.Error(err)
		return "", true
	}
	return r.Content[0].(*mcp.TextContent).Text, r.IsError
}

func (c *client) want(tool, args, want string, refused bool) {
	c.t.Helper()
	if text, isError := c.call(tool, args); isError != refused || !strings.Contains(text, want) {
		c.t.Errorf("%s %s: got %t %q, want %t …%s…", tool, args, isError, text, refused, want)
	}
}

var claimedTask = regexp.MustCompile(`You hold TASK-(\d+)`)

// TestTwoWorkersRaceForTasks: real clients in processes of their own take every
// task once. RALPH_TEST_CLAIMS says how many there are.
func TestTwoWorkersRaceForTasks(t *testing.T) {
	t.Parallel()
	tasks := 24
	if n, err := strconv.Atoi(os.Getenv("RALPH_TEST_CLAIMS")); err == nil {
		tasks = n
	}
	s := newScriptedProject(t, "", "")
	var list strings.Builder
	for i := range tasks {
		fmt.Fprintf(&list, "- [ ] task %d\n", i)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "list.md"), []byte(list.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	s.ralph(0, "import", "list.md")
	var mu sync.Mutex
	taken := map[string]int{}
	var workers sync.WaitGroup
	for w := range 2 {
		workers.Go(func() {
			c := newClient(t, s.command("mcp", "--profile", "worker", "--name", fmt.Sprintf("w%d", w), "--calls-per-minute", "100000"))
			for {
				text, refused := c.call("claim_task", `{}`)
				m := claimedTask.FindStringSubmatch(text)
				if m == nil {
					if refused || !strings.Contains(text, "No task can be claimed now") {
						t.Errorf("worker %d: %s", w, text)
					}
					break
				}
				mu.Lock()
				taken[m[1]]++
				mu.Unlock()
				if err := os.WriteFile(filepath.Join(folder.FindString(text), "made-"+m[1]), []byte("x"), 0o600); err != nil {
					t.Error(err)
				}
				if text, refused := c.call("ralph_signal_done", `{"summary":"made it"}`); refused || !strings.Contains(text, "TASK-"+m[1]+" is completed") {
					t.Errorf("worker %d: %s", w, text)
					break
				}
			}
			if err := c.session.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	workers.Wait()
	if len(taken) != tasks {
		t.Errorf("%d of %d tasks were taken", len(taken), tasks)
	}
	for id, n := range taken {
		if n != 1 {
			t.Errorf("TASK-%s was taken %d times", id, n)
		}
	}
	if got := strings.Count(s.ralph(0, "task", "list", "--status", "merged"), "TASK-"); got != tasks {
		t.Errorf("%d of %d tasks are completed", got, tasks)
	}
}

func TestAWorkersClaimIsDecidedByTheSameRules(t *testing.T) {
	t.Parallel()
	s := newScriptedProject(t, "", "")
	s.ralph(0, "task", "add", "Make a.txt", "--verify", "test -f a.txt")
	s.ralph(0, "task", "add", "Look")
	s.ralph(0, "task", "add", "Held")
	s.ralph(0, "comment", "3", "no contract", "--kind", "blocker", "--rationale", "r")
	c := newClient(t, s.command("mcp", "--profile", "worker", "--name", "codex"))
	c.want("ralph_signal_done", `{"summary":"x"}`, "you have not claimed a task", true)
	c.want("get_next_actionable", `{}`, "TASK-1 Make a.txt", false)
	c.want("claim_task", `{"task_id":3}`, "TASK-3 cannot be claimed, it needs you", true)
	dir := c.takes(`{"task_id":"TASK-1"}`, "You hold TASK-1")
	c.want("claim_task", `{}`, "you hold TASK-1; close or release it first", true)
	c.want("update_session_state", `{"state":"implementing"}`, `"newState": "implementing"`, false)
	s.ralph(0, "comment", "1", "mind unicode")
	flag := `{"what":"x","severity":"info","category":"bug"}`
	c.want("ralph_signal_flag", flag, "has just commented on your task:\n\nmind unicode", false)
	if text, _ := c.call("ralph_signal_flag", flag); strings.Contains(text, "mind unicode") {
		t.Errorf("a comment is handed over twice: %s", text)
	}
	if out := s.ralph(0, "timeline", "1"); !strings.Contains(out, "the running session was told at") {
		t.Errorf("it is not noted that the worker has the comment:\n%s", out)
	}
	c.want("ralph_signal_done", `{"summary":"made it"}`, "It does not close the task yet", false)
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, _ := c.call("ralph_signal_done", `{"summary":"made it"}`)
	s.has(text, "TASK-1 is completed: merged into", "; done and verified")
	c.want("claim_task", `{}`, "You hold TASK-2", false)
	c.want("release_task", `{"task_id":3}`, "you hold TASK-2, not TASK-3", true)
	c.want("release_task", `{"task_id":2}`, "TASK-2 is back in the queue", false)
	c.want("comment_on_task", `{"task_id":2,"kind":"blocker","body":"b","rationale":"r"}`, "Recorded comment", false)
	c.want("list_task_comments", `{"task_id":2,"open_only":true}`, `"kind": "blocker"`, false)
	c.want("list_task_comments", `{"task_id":2,"kind":"note"}`, "[]", false)
	c.want("list_task_comments", `{"task_id":2,"kind":"rant"}`, "kind is not one of the accepted values", true)
	c.want("resolve_comment", `{"comment_id":1,"decision":"d"}`, "is for a person to answer", true)
	c.want("propose_task_amendment", `{"task_id":2,"patch":{"priority":0},"rationale":"r"}`, "a person decides", false)
	c.want("list_pending_amendments", `{}`, `"rationale": "r"`, false)
	c.want("list_pending_amendments", `{"task_id":1}`, "[]", false)
	c.want("list_pending_amendments", `{"task_id":99}`, "TASK-99: not found", true)

	session := s.ralph(0, "session", "list", "--task", "1")[:8]
	if out := s.ralph(0, "session", "show", session); !strings.Contains(out, "attempt 1, by the worker codex\n") {
		t.Errorf("it is not said whose session it was:\n%s", out)
	}

	// A claim is dropped by a person, and given back when the client leaves.
	s.ralph(0, "resolve", "1", "there is one now")
	c.want("list_task_comments", `{"task_id":3}`, `"decision": "there is one now"`, false)
	c.want("list_task_comments", `{"task_id":3,"open_only":true}`, "[]", false)
	c.want("claim_task", `{"task_id":3}`, "You hold TASK-3", false)
	s.ralph(0, "task", "cancel", "3")
	c.want("ralph_signal_flag", `{"what":"x","severity":"info","category":"bug"}`, "cancelled the task; your work stays", true)
	s.ralph(0, "task", "add", "Stopped")
	c.want("claim_task", `{"task_id":4}`, "You hold TASK-4", false)
	s.ralph(0, "task", "cancel", "4")
	c.want("get_next_actionable", `{}`, "your claim on TASK-4 is over", true) // any call is told
	s.ralph(0, "task", "add", "Left")
	c.want("claim_task", `{"task_id":5}`, "You hold TASK-5", false)
	if err := c.session.Close(); err != nil {
		t.Error(err)
	}
	if out := s.ralph(0, "task", "list", "--status", "queued"); !strings.Contains(out, "TASK-5") {
		t.Errorf("a task whose worker left is not queued again:\n%s", out)
	}
	if out := s.ralph(0, "task", "list", "--all", "--json"); strings.Count(out, `"attempts": 1`) != 1 {
		t.Errorf("a claim that was given back counts as an attempt:\n%s", out)
	}

	// Scopes.
	c = newClient(t, s.command("mcp", "--profile", "worker", "--scopes", "tasks:read"))
	c.want("get_next_actionable", `{}`, "TASK-", false)
	c.want("claim_task", `{}`, "claim_task needs the scope tasks:write", true)
	list, err := c.session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		if !tool.Annotations.ReadOnlyHint {
			t.Errorf("who may only read is offered %s", tool.Name)
		}
	}
	if len(list.Tools) != 3 {
		t.Errorf("%d tools", len(list.Tools))
	}
	if err := c.session.Close(); err != nil {
		t.Error(err)
	}
}

func TestCallsOfAClientAreCounted(t *testing.T) {
	t.Parallel()
	s := newScriptedProject(t, "", "")
	for _, tt := range []struct {
		name  string
		flags []string
		calls int
	}{
		{"who may write", nil, 60},
		{"who may only read", []string{"--scopes", "tasks:read"}, 600},
		{"as is said", []string{"--calls-per-minute", "5"}, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newClient(t, s.command(append([]string{"mcp", "--profile", "worker"}, tt.flags...)...))
			for range tt.calls {
				c.want("list_pending_amendments", `{}`, "[]", false)
			}
			// The allowance grows back slowly, so that one of the next calls is too many.
			for i := range 5 * tt.calls {
				text, refused := c.call("list_pending_amendments", `{}`)
				if refused {
					if !strings.Contains(text, "too many calls; try again in") {
						t.Errorf("it is not said what to do: %s", text)
					}
					break
				}
				if i == 5*tt.calls-1 {
					t.Errorf("%d calls in a row are answered", 6*tt.calls)
				}
			}
			if err := c.session.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	s.ralph(2, "mcp", "--profile", "worker", "--calls-per-minute", "0")
}

// withToken adds the token to every request.
type withToken struct{}

func (withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer secret")
	return http.DefaultTransport.RoundTrip(r)
}

// serveHTTP starts a worker's server on HTTP and returns its address.
func (s *scriptedProject) serveHTTP() (*exec.Cmd, string) {
	s.t.Helper()
	server := s.command("mcp", "--profile", "worker", "--http", "127.0.0.1:0")
	server.Env = append(slices.Clone(server.Env), mcpserver.TokenVariable+"=secret")
	out, err := server.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		s.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		s.t.Fatal(err)
	}
	return server, strings.TrimSpace(strings.TrimPrefix(line, "serving MCP on "))
}

func TestALeavingWorkerGivesTheTaskBack(t *testing.T) {
	t.Parallel()
	s := newScriptedProject(t, "", "")
	s.ralph(0, "task", "add", "One")
	s.ralph(0, "task", "add", "Two")
	pending := func(task string) bool {
		return strings.Contains(s.ralph(0, "task", "list", "--status", "queued"), task)
	}

	// On stdio, and its client ends it by a signal.
	cmd := s.command("mcp", "--profile", "worker")
	c := newClient(t, cmd)
	c.want("claim_task", `{}`, "You hold TASK-1", false)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = c.session.Wait() // the server is gone
	if !pending("TASK-1") {
		t.Fatal("a task whose worker was stopped is not queued again")
	}

	// On HTTP: one client leaves, the other is there when the server is stopped.
	server, url := s.serveHTTP()
	connect := func() *client {
		session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(),
			&mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: withToken{}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return &client{t, session}
	}
	leaves, stays := connect(), connect()
	leaves.want("claim_task", `{"task_id":1}`, "You hold TASK-1", false)
	stays.want("claim_task", `{"task_id":2}`, "You hold TASK-2", false)
	if err := leaves.session.Close(); err != nil {
		t.Error(err)
	}
	for !pending("TASK-1") { // it is told that the client is gone, and then gives the task back
		if t.Context().Err() != nil {
			t.Fatal(t.Context().Err())
		}
	}
	if pending("TASK-2") {
		t.Error("another client's task was given back too")
	}
	if err := server.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("the server that was interrupted: %v", err)
	}
	if !pending("TASK-2") {
		t.Error("a task is not queued again after its server was stopped")
	}
}

// TestACallWhileADoneIsChecked of the same client is answered at once, and the
// database is free for everybody.
func TestACallWhileADoneIsChecked(t *testing.T) {
	t.Parallel()
	between := t.TempDir()
	s := newScriptedProject(t, "", "permissions: {writable: ["+between+"]}\n")
	s.ralph(0, "task", "add", "One", "--verify", "test -f made && touch "+between+"/running && until test -f "+between+"/proceed; do sleep 0.1; done")
	s.ralph(0, "comment", "1", "an early word")
	c := newClient(t, s.command("mcp", "--profile", "worker", "--name", "codex"))
	dir := c.takes(`{}`, "an early word")
	if err := os.WriteFile(filepath.Join(dir, "made"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if text, _ := c.call("ralph_signal_flag", `{"what":"x","severity":"info","category":"bug"}`); strings.Contains(text, "early word") {
		t.Errorf("what is in the task's text is handed over again: %s", text)
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		c.want("ralph_signal_done", `{"summary":"made it"}`, "TASK-1 is completed", false)
	}()
	for !state.Exists(filepath.Join(between, "running")) {
		if t.Context().Err() != nil {
			t.Fatal(t.Context().Err())
		}
	}
	c.want("comment_on_task", `{"task_id":1,"kind":"note","body":"x"}`, "Recorded comment", false)
	c.want("propose_task_amendment", `{"task_id":1,"patch":{"title":"t"},"rationale":"r"}`, "a person decides", false)
	c.want("get_next_actionable", `{}`, "No task can be claimed now", false)
	s.ralph(0, "task", "add", "Two")
	if err := os.WriteFile(filepath.Join(between, "proceed"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-closed
	if out := s.ralph(0, "timeline", "1", "--json"); strings.Count(out, `"session_id": ""`) != 1 {
		t.Errorf("what was said on the claim names its session, and nothing else does:\n%s", out)
	}
}

func TestSkipIsForTheSessionOfTheRun(t *testing.T) {
	t.Parallel()
	s := newScriptedProject(t, "task *\n  hang\n", "#test: {reminders: 0}")
	for _, title := range []string{"One", "Two", "Three"} {
		s.ralph(0, "task", "add", title)
	}
	run := s.command("run")
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(s.ralph(0, "task", "list", "--status", "running"), "TASK-1") {
		if t.Context().Err() != nil {
			t.Fatal(t.Context().Err())
		}
	}
	c, other := newClient(t, s.command("mcp", "--profile", "worker", "--name", "codex")), newClient(t, s.command("mcp", "--profile", "worker"))
	c.want("claim_task", `{"task_id":2}`, "You hold TASK-2", false)
	other.want("claim_task", `{"task_id":3}`, "You hold TASK-3", false)
	if out := s.ralph(0, "skip"); !strings.Contains(out, "on TASK-1 is being stopped") {
		t.Errorf("another session than the run's is stopped: %s", out)
	}
	s.ralph(0, "stop", "--now")
	_ = run.Wait() // its status is told by other tests
	if out := s.ralph(2, "skip"); !strings.Contains(out, "workers hold 2 tasks; say which with --session ID") {
		t.Errorf("got %s", out)
	}
	c.want("release_task", `{}`, "TASK-2 is back in the queue", false)
	if out := s.ralph(0, "skip"); !strings.Contains(out, "on TASK-3 is being stopped") {
		t.Errorf("got %s", out)
	}
	other.want("update_session_state", `{"state":"testing"}`, "your claim on TASK-3 is over", true)
}
