package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ralph/internal/bystander"
	"ralph/mcpserver"
)

// chatTools are the tools of the human profile, by decision 10.
var chatTools = []string{
	"agentic_create_checkpoint", "agentic_get_active_task", "agentic_get_token_status", "agentic_plan_decide", "agentic_plan_show", "agentic_task_complete", "agentic_task_show", "agentic_task_undo", "agentic_task_update_progress",
	"comment_on_task", "list_pending_amendments", "list_task_comments", "propose_task_amendment", "resolve_comment",
}

// A person answers the questions of the chat's client.
type person struct {
	answer string // "accept", "decline", …
	asked  []string
	slow   func() // what happens before they answer; nil for nothing
}

func (p *person) options() *mcp.ClientOptions {
	if p == nil {
		return &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}}
	}
	return &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		p.asked = append(p.asked, r.Params.Message)
		if p.slow != nil {
			p.slow()
		}
		return &mcp.ElicitResult{Action: p.answer, Content: map[string]any{}}, nil
	}}
}

// chatOn connects a chat's client; p is nil for one that cannot ask a person.
func chatOn(t *testing.T, transport mcp.Transport, p *person) *client {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, p.options()).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() }) // its server may have been killed
	return &client{t, session}
}

func (s *scriptedProject) chat(p *person) *client {
	return chatOn(s.t, &mcp.CommandTransport{Command: s.command("mcp", "--profile", "chat")}, p)
}

// mirror reads session.json.
func (s *scriptedProject) mirror() (m struct {
	ActiveTask *struct{ ID, Title, Status string }
	ClaimedAt  string
	Branch     string
	MCPEnabled bool `json:"mcpEnabled"`
	Progress   *struct {
		Iteration     int
		FilesModified []string
		TestsStatus   string
		Timestamp     string
	}
	Tokens   *struct{ Used, Limit, Percent *float64 }
	Sessions []struct {
		Task        struct{ ID string }
		Branch, Dir string
	}
},
) {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(s.state(), "session.json"))
	if err != nil {
		s.t.Fatal(err)
	}
	if err := json.Unmarshal(b, &m); err != nil {
		s.t.Fatalf("%v\n%s", err, b)
	}
	return m
}

func (s *scriptedProject) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scriptedProject) has(text string, parts ...string) {
	s.t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			s.t.Errorf("%q is not in\n%s", p, text)
		}
	}
}

// TestAPersonAndAChatWorkOnATask: from the claim to the completion, while the loop
// works on another task.
func TestAPersonAndAChatWorkOnATask(t *testing.T) {
	t.Parallel()
	s := newScriptedProject(t, "task *\n  run echo x > other.txt\n  call done {\"summary\": \"made it\"}\n", "verify: ['true']\n")
	s.ralph(0, "task", "add", "Make a.txt", "--accept", "it is there", "--verify", "test -f a.txt", "-d", "See docs/spec.md and docs/gone.md.", "--priority", "0")
	s.ralph(0, "task", "add", "Make other.txt")
	if err := os.Mkdir(filepath.Join(s.dir, "docs"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.write("docs/spec.md", "x")
	p := &person{answer: "decline"}
	c := s.chat(p)
	list, err := c.session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	if !slices.Equal(names, chatTools) {
		t.Errorf("tools are %q", names)
	}
	c.want("agentic_get_active_task", `{}`, `"error": "No active session"`, false)
	c.want("agentic_get_token_status", `{}`, `"error": "No active session"`, false)
	c.want("agentic_task_update_progress", `{"task_id":"1","iteration":1}`, `"error": "TASK-1 is queued, and no person has claimed it; claim it with `+"`ralph chat claim 1`", true)

	s.has(s.ralph(0, "chat", "claim", "TASK-1"), "Claimed task TASK-1 on branch ", "3. Read first the files that the description names: `docs/spec.md`, ", "agentic_task_complete", "1. it is there", "$ test -f a.txt", "TIP: `ralph init --mcp`")
	s.has(s.ralph(2, "chat", "claim", "1"), "who claimed it")
	c.want("agentic_get_active_task", `{}`, `"id": "TASK-1"`, false)
	text, _ := c.call("agentic_get_active_task", `{}`)
	s.has(text, `"title": "Make a.txt"`, `"specRefs": [
    "docs/spec.md"
  ]`, `"acceptance": [
    "it is there"
  ]`)
	for _, id := range []string{`12`, `"#1x"`, `""`, `null`, `[]`} {
		if text, refused := c.call("agentic_task_show", `{"task_id":`+id+`}`); !refused || !strings.Contains(text, `"error":`) {
			t.Errorf("task id %s: %t %s", id, refused, text)
		}
	}
	for _, id := range []string{`1`, `"1"`, `"#1"`, `"TASK-1"`} {
		c.want("agentic_task_show", `{"task_id":`+id+`}`, `"test -f a.txt"`, false)
	}
	c.want("agentic_task_show", `{}`, `"error": "task_id is required"`, true)
	c.want("agentic_task_update_progress", `{"task_id":1,"iteration":1.5}`, "must be a whole number", true)
	c.want("agentic_task_update_progress", `{"task_id":"TASK-1","iteration":2,"files_modified":["a.txt"],"tests_status":"1 failing"}`, `"status": "progress updated"`, false)
	if m := s.mirror(); m.ActiveTask == nil || m.ActiveTask.ID != "TASK-1" || m.Progress == nil || m.Progress.Iteration != 2 ||
		m.Progress.TestsStatus != "1 failing" || !slices.Equal(m.Progress.FilesModified, []string{"a.txt"}) || m.Progress.Timestamp == "" || m.Branch == "" {
		t.Errorf("session.json is %+v", m)
	}

	// The loop leaves it alone, and completes the other one.
	s.has(s.ralph(0, "run"), "TASK-2 merged")
	s.has(s.ralph(0, "task", "list"), "running  P0  Make a.txt")

	c.want("agentic_task_complete", `{"task_id":1}`, "Command: test -f a.txt", true)
	if len(p.asked) != 0 && !strings.Contains(p.asked[0], "checks the work first") {
		t.Errorf("a person was asked about what does not hold: %q", p.asked)
	}
	s.has(s.ralph(0, "task", "show", "1"), "running")
	s.write("a.txt", "x")
	p.asked = nil
	c.want("agentic_task_complete", `{"task_id":1}`, "the person did not confirm", true)
	if len(p.asked) != 1 || !strings.Contains(p.asked[0], "Complete TASK-1?") {
		t.Errorf("the person was asked %q", p.asked)
	}
	p.answer = "accept"
	c.want("agentic_task_complete", `{"task_id":1,"learnings":["a.txt must end in x"],"summary":"It is there, and ends in x."}`, `"status": "completed"`, false)
	s.has(s.ralph(0, "task", "show", "1"), "It is there, and ends in x.")
	c.want("agentic_task_complete", `{"task_id":1}`, "TASK-1 is merged, and no person has claimed it", true)
	s.has(s.ralph(0, "learning", "list"), "a.txt must end in x")
	s.has(s.ralph(0, "task", "show", "1", "--json"), `"origin": "human"`, `"path": "a.txt"`, `"attempts": 1`)
	if m := s.mirror(); m.ActiveTask == nil || m.ActiveTask.Status != "completed" || m.Progress == nil || len(m.Sessions) != 0 {
		t.Errorf("session.json is %+v after the completion", m)
	}
}

func TestAnUnsupportedDoneIsRequestedTwice(t *testing.T) {
	t.Parallel()
	s := newScriptedProject(t, "", "")
	s.ralph(0, "task", "add", "Look")
	s.ralph(0, "chat", "claim", "1")
	c := s.chat(nil)
	c.want("agentic_task_complete", `{"task_id":1}`, "nothing has changed since the task was claimed", true)
	c.want("agentic_task_complete", `{"task_id":1}`, `"status": "completed"`, false)
}

func TestResourcesAndThePromptOfAChat(t *testing.T) {
	t.Parallel()
	s := newScriptedProject(t, "", "")
	s.ralph(0, "task", "add", "Look at it")
	c := s.chat(nil)
	read := func(uri string) (string, error) {
		r, err := c.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			return "", err
		}
		return r.Contents[0].Text, nil
	}
	for _, uri := range []string{"ralph://task/active", "ralph://task/7", "ralph://task/x", "ralph://task/7/timeline", "ralph://other"} {
		if text, err := read(uri); err == nil {
			t.Errorf("%s: got %q, want an error", uri, text)
		}
	}
	s.ralph(0, "chat", "claim", "1")
	s.ralph(0, "comment", "1", "mind IPv6")
	for uri, want := range map[string]string{
		"ralph://task/active": "TASK-1  Look at it", "ralph://task/1": "TASK-1  Look at it", "ralph://task/TASK-1/timeline": "mind IPv6",
		"ralph://task/active/timeline": "mind IPv6", "ralph://task/1/prompt": "# Let us work on TASK-1",
	} {
		if text, err := read(uri); err != nil || !strings.Contains(text, want) {
			t.Errorf("%s: got %v %q, want …%s…", uri, err, text, want)
		}
	}
	for _, args := range []map[string]string{nil, {"task_id": "#1"}} {
		r, err := c.session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "work-on-task", Arguments: args})
		if err != nil || !strings.Contains(r.Messages[0].Content.(*mcp.TextContent).Text, "mind IPv6") {
			t.Errorf("work-on-task %v: %v", args, err)
		}
	}
}

// TestTheServerForChatsMayDie: it holds nothing; a new one takes over its address and
// its token.
func TestTheServerForChatsMayDie(t *testing.T) {
	t.Parallel()
	s := newScriptedProject(t, "", "#test: {chat_addr: '127.0.0.1:0'}\n")
	s.ralph(0, "task", "add", "Look")
	s.has(s.ralph(0, "chat", "claim", "1", "--with-mcp"), "MCP server started on http://127.0.0.1:", "agentic_create_checkpoint", "In Claude Code type /mcp__ralph__work-on-task;")
	t.Cleanup(func() {
		stop := exec.CommandContext(context.Background(), "ralph", "chat", "stop") // the test's own context has ended
		stop.Dir, stop.Env = s.dir, s.env
		if out, err := stop.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	info := func() (v struct {
		Server     *mcpserver.Background
		Registered bool
	},
	) {
		if err := json.Unmarshal([]byte(s.ralph(0, "chat", "info", "--json")), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	before := info()
	if before.Server == nil || !before.Registered {
		t.Fatalf("got %+v", before)
	}
	token, err := os.ReadFile(before.Server.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := http.Get(before.Server.URL); err != nil || answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: %v %v", answer, err)
	} else if err := answer.Body.Close(); err != nil {
		t.Error(err)
	}
	connect := func(server *mcpserver.Background) *client {
		return chatOn(t, &mcp.StreamableClientTransport{Endpoint: server.URL, HTTPClient: &http.Client{Transport: bearer(strings.TrimSpace(string(token)))}}, nil)
	}
	c := connect(before.Server)
	c.want("agentic_task_update_progress", `{"task_id":1,"iteration":3,"notes":"half"}`, "progress updated", false)
	s.has(s.ralph(0, "chat", "start"), before.Server.URL) // it runs already
	if err := syscall.Kill(before.Server.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for info().Server != nil {
		continue // until the lock of the dead one is free
	}
	s.ralph(0, "chat", "start")
	c = connect(info().Server)
	c.want("agentic_get_active_task", `{}`, `"id": "TASK-1"`, false)
	if m := s.mirror(); m.Progress == nil || m.Progress.Iteration != 3 || !m.MCPEnabled {
		t.Errorf("session.json is %+v", m)
	}
	s.has(s.ralph(0, "chat", "stop"), "the MCP server is stopped")
	s.has(s.ralph(0, "chat", "stop"), "no MCP server was running")
	s.has(s.ralph(0, "task", "list"), "running")
}

type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// TestTwoPeoplesTasksSideBySide: each in a work tree of its own; losing or editing
// session.json loses nothing.
func TestTwoPeoplesTasksSideBySide(t *testing.T) {
	t.Parallel()
	s := newScriptedProject(t, "", "")
	git := func(args ...string) {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir, cmd.Env = s.dir, s.env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	other := filepath.Join(t.TempDir(), "other")
	git("worktree", "add", "-q", "-b", "feature", other)
	s.ralph(0, "task", "add", "Here", "--verify", "test -f here")
	s.ralph(0, "task", "add", "There", "--verify", "test -f there")
	s.ralph(0, "chat", "claim", "1")
	s.has(s.ralph(0, "-C", other, "chat", "claim", "2"), "on branch feature")
	here, there := s.chat(nil), chatOn(t, &mcp.CommandTransport{Command: s.command("-C", other, "mcp", "--profile", "chat")}, nil)
	here.want("agentic_get_active_task", `{}`, `"id": "TASK-1"`, false)
	there.want("agentic_get_active_task", `{}`, `"id": "TASK-2"`, false)
	here.want("agentic_get_active_task", `{"task_id":"TASK-2"}`, `"branch": "feature"`, false)
	if m := s.mirror(); len(m.Sessions) != 2 || m.ActiveTask.ID != "TASK-2" || m.Branch != "feature" || m.Sessions[1].Dir == m.Sessions[0].Dir {
		t.Errorf("session.json is %+v", m)
	}
	path := filepath.Join(s.state(), "session.json")
	if err := os.WriteFile(path, []byte(`{"activeTask":{"id":"TASK-9"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	here.want("agentic_get_active_task", `{}`, `"id": "TASK-1"`, false)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	here.want("agentic_task_update_progress", `{"task_id":1,"iteration":1}`, "progress updated", false)
	if m := s.mirror(); len(m.Sessions) != 2 {
		t.Errorf("session.json is %+v", m)
	}
	s.write("here", "x")
	here.want("agentic_task_complete", `{"task_id":2}`, "complete it in "+other, true)
	here.want("agentic_task_complete", `{"task_id":1}`, `"status": "completed"`, false)
	s.has(s.ralph(0, "chat", "release"), "nothing was claimed here")
	// A work tree that is gone holds nothing for ever.
	if err := os.RemoveAll(other); err != nil {
		t.Fatal(err)
	}
	s.has(s.ralph(0, "chat", "release", "2"), "it is queued")
}

// TestContextAndCheckpoints: Claude Code's transcript of a chat tells how full its context is. A full one is saved, and
// the next chat, and the loop, continue from there.
func TestContextAndCheckpoints(t *testing.T) {
	t.Parallel()
	s := newScriptedProject(t, "task *\n  run echo x > a.txt\n  call done {\"summary\": \"made it\"}\n", "")
	s.ralph(0, "task", "add", "Make a.txt")
	s.ralph(0, "chat", "claim", "1")
	c := s.chat(nil)
	c.want("agentic_get_token_status", `{}`, `"source": "unknown"`, false)
	c.want("agentic_task_update_progress", `{"task_id":1,"iteration":1,"tokens_used":50000,"tokens_limit":100000}`, "progress updated", false)
	c.want("agentic_get_token_status", `{}`, `"source": "reported"`, false)
	c.want("agentic_create_checkpoint", `{"task_id":1,"iteration":2,"tokens_used":70000,"tokens_limit":100000}`, "checkpoint created", false)
	c.want("agentic_get_token_status", `{}`, `"percent": 70`, false) // the newest word
	home, claude := t.TempDir(), ""
	for _, e := range s.env {
		if v, ok := strings.CutPrefix(e, "HOME="); ok {
			home = v
		}
	}
	claude = filepath.Join(home, ".claude", "projects", strings.NewReplacer("/", "-", ".", "-", "_", "-").Replace(s.dir))
	if err := os.MkdirAll(claude, 0o700); err != nil {
		t.Fatal(err)
	}
	use := func(tokens int) {
		line := fmt.Sprintf(`{"type":"assistant","isSidechain":false,"message":{"model":"claude-x","usage":{"input_tokens":1000,"cache_read_input_tokens":%d,"output_tokens":0}}}`+"\n", tokens-1000)
		if err := os.WriteFile(filepath.Join(claude, "chat.jsonl"), []byte(line+`{"type":"assistant","isSidechain":true,"message":{"model":"claude-y","usage":{"input_tokens":7}}}`+"\n"+`{"type":"us`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	use(45_000)
	text, _ := c.call("agentic_get_token_status", `{}`)
	s.has(text, `"used": 45000`, `"limit": 200000`, `"percent": 22.5`, `"source": "transcript"`, `"model": "claude-x"`, `"advice": "go on"`)
	s.has(s.ralph(0, "chat", "info", "--tokens"), "45000 of 200000 tokens (22.5 %, from the chat's transcript)")
	c.want("agentic_create_checkpoint", `{"task_id":1,"iteration":2,"work_completed":["the parser"],"remaining_work":["its tests"]}`, `"status": "checkpoint created"`, false)
	s.has(s.ralph(0, "prompt", "--chat", "1"), "A chat before this one stood here.", "- the parser", "- its tests", "iteration 2")
	use(170_000)
	text, _ = c.call("agentic_task_update_progress", `{"task_id":1,"iteration":5,"files_modified":["a.go"],"tests_status":"2 failing","notes":"on the tests"}`)
	s.has(text, "progress updated")
	text, _ = c.call("agentic_get_token_status", `{}`)
	s.has(text, `"percent": 85`, "agentic_create_checkpoint")
	if got := strings.Count(s.ralph(0, "events", "--type", "session.checkpoint"), "session.checkpoint"); got != 3 {
		t.Errorf("%d checkpoints, want two that were asked for and one by itself", got)
	}
	s.has(s.ralph(0, "prompt", "--chat", "1"), "iteration 5", "85 % full", "- the parser", "- its tests", "2 failing", "a.go", "on the tests")
	s.ralph(0, "chat", "checkpoint", "1", "--iteration", "6", "--completed", "all but one", "--remaining", "the last")
	s.ralph(0, "chat", "release", "1")
	s.has(s.ralph(0, "prompt", "1"), "## Checkpoint", "- all but one", "- the last", "2 failing")
	s.has(s.ralph(0, "run"), "TASK-1 merged")
}

// TestACancelledClaimIsOver: nobody watches over a person's session, so that the
// command ends it.
func TestACancelledClaimIsOver(t *testing.T) {
	t.Parallel()
	s := newScriptedProject(t, "", "")
	s.ralph(0, "task", "add", "Look")
	s.ralph(0, "chat", "claim", "1")
	s.ralph(0, "task", "edit", "1", "--accept", "more") // people change what people work on
	c := s.chat(nil)
	c.want("agentic_task_show", `{"task_id":1}`, `"more"`, false)
	s.has(s.ralph(2, "skip"), "no session is running")
	s.ralph(0, "task", "cancel", "1")
	s.has(s.ralph(0, "task", "list", "--status", "cancelled"), "Look")
	c.want("agentic_task_update_progress", `{"task_id":1,"iteration":1}`, "TASK-1 is cancelled, and no person has claimed it", true)
	if m := s.mirror(); m.ActiveTask != nil || len(m.Sessions) != 0 {
		t.Errorf("session.json is %+v", m)
	}
}

// TestACancelInTheBrowserEndsAClaim: nobody else watches over a person's session there
// either.
func TestACancelInTheBrowserEndsAClaim(t *testing.T) {
	t.Parallel()
	s := newScriptedProject(t, "", "dashboard: {addr: '127.0.0.1:0'}\n")
	s.ralph(0, "task", "add", "Look")
	s.ralph(0, "chat", "claim", "1")
	server := s.command("serve")
	server.Env = append(slices.Clone(s.env), bystander.TokenVariable+"=a-token-that-is-long-enough")
	out, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(os.Interrupt) // it is over
		_ = server.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	base := strings.TrimSpace(strings.TrimPrefix(line, "dashboard on "))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/tasks/1/cancel", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer a-token-that-is-long-enough")
	answer, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusSeeOther {
		t.Errorf("got %s", answer.Status)
	}
	s.has(s.ralph(0, "task", "list", "--status", "cancelled"), "Look")
}
