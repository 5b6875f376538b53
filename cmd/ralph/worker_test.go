package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
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

// call calls a tool and returns what it says.
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

var holds = regexp.MustCompile(`You hold TASK-(\d+)`)

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
			c := newClient(t, s.command("mcp", "--profile", "worker", "--name", fmt.Sprintf("w%d", w)))
			for {
				text, refused := c.call("claim_task", `{}`)
				m := holds.FindStringSubmatch(text)
				if m == nil {
					if refused || !strings.Contains(text, "No task can be claimed now") {
						t.Errorf("worker %d: %s", w, text)
					}
					break
				}
				mu.Lock()
				taken[m[1]]++
				mu.Unlock()
				if err := os.WriteFile(filepath.Join(s.dir, "made-"+m[1]), []byte("x"), 0o600); err != nil {
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
	if got := strings.Count(s.ralph(0, "task", "list", "--status", "completed"), "TASK-"); got != tasks {
		t.Errorf("%d of %d tasks are completed", got, tasks)
	}
}

func TestAWorkersClaimIsSettledByTheSameRules(t *testing.T) {
	t.Parallel()
	s := newScriptedProject(t, "", "")
	s.ralph(0, "task", "add", "Make a.txt", "--verify", "test -f a.txt")
	s.ralph(0, "task", "add", "Look")
	s.ralph(0, "task", "add", "Held")
	s.ralph(0, "comment", "3", "no contract", "--kind", "blocker", "--rationale", "r")
	c := newClient(t, s.command("mcp", "--profile", "worker", "--name", "codex"))
	c.want("ralph_signal_done", `{"summary":"x"}`, "you have not claimed a task", true)
	c.want("get_next_actionable", `{}`, "TASK-1 Make a.txt", false)
	c.want("claim_task", `{"task_id":3}`, "TASK-3 cannot be claimed, it is blocked", true)
	c.want("claim_task", `{"task_id":"TASK-1"}`, "You hold TASK-1", false)
	c.want("claim_task", `{}`, "you hold TASK-1; close or release it first", true)
	c.want("update_session_state", `{"state":"implementing"}`, `"newState": "implementing"`, false)
	c.want("ralph_signal_done", `{"summary":"made it"}`, "It does not close the task yet", false)
	if err := os.WriteFile(filepath.Join(s.dir, "a.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.want("ralph_signal_done", `{"summary":"made it"}`, "TASK-1 is completed: done and verified", false)
	c.want("claim_task", `{}`, "You hold TASK-2", false)
	c.want("release_task", `{}`, "TASK-2 is back in the queue", false)
	c.want("comment_on_task", `{"task_id":2,"kind":"blocker","body":"b","rationale":"r"}`, "Recorded comment", false)
	c.want("list_task_comments", `{"task_id":2,"open_only":true}`, `"kind": "blocker"`, false)
	c.want("resolve_comment", `{"comment_id":1,"decision":"d"}`, "is for a person to settle", true)
	c.want("propose_task_amendment", `{"task_id":2,"patch":{"priority":0},"rationale":"r"}`, "a person decides", false)
	c.want("list_pending_amendments", `{}`, `"rationale": "r"`, false)

	// A claim is dropped by a person, and given back when the client leaves.
	s.ralph(0, "resolve", "1", "there is one now")
	c.want("claim_task", `{"task_id":3}`, "You hold TASK-3", false)
	s.ralph(0, "task", "cancel", "3")
	c.want("ralph_signal_flag", `{"what":"x","severity":"info","category":"bug"}`, "cancelled the task; what you did stays", true)
	s.ralph(0, "task", "add", "Left")
	c.want("claim_task", `{"task_id":4}`, "You hold TASK-4", false)
	if err := c.session.Close(); err != nil {
		t.Error(err)
	}
	if out := s.ralph(0, "task", "list", "--status", "pending"); !strings.Contains(out, "TASK-4") {
		t.Errorf("a task whose worker left is not queued again:\n%s", out)
	}
	if out := s.ralph(0, "task", "list", "--json"); strings.Count(out, `"attempts": 1`) != 1 {
		t.Errorf("a claim that was given back counts as an attempt:\n%s", out)
	}

	// Scopes.
	c = newClient(t, s.command("mcp", "--profile", "worker", "--scopes", "tasks:read"))
	c.want("get_next_actionable", `{}`, "TASK-", false)
	c.want("claim_task", `{}`, "claim_task needs the scope tasks:write", true)
	for range callsPerMinute {
		c.call("get_next_actionable", `{}`)
	}
	c.want("get_next_actionable", `{}`, "too many calls; try again in", true)
	if err := c.session.Close(); err != nil {
		t.Error(err)
	}
}
