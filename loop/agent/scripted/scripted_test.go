package scripted_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ralph/loop/agent/scripted"
)

// serveEnv makes this test binary an MCP server with one tool of ralph's.
const serveEnv = "SCRIPTED_TEST_SERVER"

// agentEnv makes this test binary the agent.
const agentEnv = "SCRIPTED_TEST_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(agentEnv) != "" {
		os.Exit(scripted.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv))
	}
	if os.Getenv(serveEnv) == "" {
		os.Exit(m.Run())
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "ralph", Version: "1"}, nil)
	type done struct {
		Summary string `json:"summary"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "ralph.signal.done", Description: "done"}, func(_ context.Context, _ *mcp.CallToolRequest, in done) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "recorded " + in.Summary}}}, nil, nil
	})
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}

// An agent runs in this process, connected by pipes.
type agent struct {
	t      *testing.T
	in     io.WriteCloser
	out    *bufio.Reader
	stop   context.CancelFunc
	status chan int
	errors *strings.Builder // complete once the status is known
}

// start starts an agent in a directory of its own.
func start(t *testing.T, script string, args ...string) *agent {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	return launch(t, path, args...)
}

func launch(t *testing.T, script string, args ...string) *agent {
	stdin, in := io.Pipe()
	out, stdout := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	a := &agent{t: t, in: in, out: bufio.NewReader(out), stop: stop, status: make(chan int, 1), errors: &strings.Builder{}}
	go func() {
		getenv := func(name string) string { return map[string]string{"RALPH_SCRIPT": script}[name] }
		status := scripted.Main(ctx, args, stdin, stdout, a.errors, getenv)
		if err := errors.Join(stdout.Close(), stdin.Close()); err != nil {
			t.Error(err)
		}
		a.status <- status
	}()
	t.Cleanup(func() {
		stop()
		if err := out.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

func (a *agent) tell(text string) {
	a.t.Helper()
	if _, err := fmt.Fprintf(a.in, `{"type":"user","message":{"role":"user","content":[{"type":"text","text":%q}]}}`+"\n", text); err != nil {
		a.t.Fatal(err)
	}
}

// An event is an event of the agent, with the fields that these tests use.
type event struct {
	Type     string                          `json:"type"`
	Subtype  string                          `json:"subtype"`
	IsReplay bool                            `json:"isReplay"`
	Tools    []string                        `json:"tools"`
	Servers  []struct{ Name, Status string } `json:"mcp_servers"`
	Session  string                          `json:"session_id"`
	Message  struct {
		Content []struct {
			Type, Text, Name string
			Content          any
		}
	} `json:"message"`
	Error    string   `json:"error"`
	Status   *int     `json:"api_error_status"`
	IsError  bool     `json:"is_error"`
	Terminal string   `json:"terminal_reason"`
	Cost     *float64 `json:"total_cost_usd"`
	Result   string   `json:"result"`
}

// turn reads up to a result or the end, and describes each line briefly.
func (a *agent) turn() (short []string, last event) {
	a.t.Helper()
	for {
		l, err := a.out.ReadString('\n')
		if err != nil {
			return short, last
		}
		var e event
		if json.Unmarshal([]byte(l), &e) != nil {
			short = append(short, "rubbish")
			continue
		}
		last = e
		short = append(short, describe(e))
		if e.Type == "result" {
			return short, e
		}
	}
}

func describe(e event) string {
	s := e.Type
	if e.IsReplay {
		s = "replay"
	}
	for _, c := range e.Message.Content {
		s += " " + c.Type + " " + c.Name + c.Text
		if c.Type == "tool_result" {
			s += fmt.Sprint(c.Content)
		}
	}
	return s
}

// end closes stdin and waits for the exit status.
func (a *agent) end() int {
	a.in.Close()
	_, _ = io.Copy(io.Discard, a.out) // Main or the test closes it
	return <-a.status
}

func TestTheVersionIsThatOfClaude(t *testing.T) {
	a := launch(t, "", "--version")
	got, err := io.ReadAll(a.out)
	if err != nil || string(got) != "2.1.197 (scripted agent)\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestEachMessageStartsATurn(t *testing.T) {
	t.Chdir(t.TempDir())
	a := start(t, `
task other
say wrong
task Fix
when blue
say wrong
task Fix
write hello "hi\n"
run cat hello
say one
turn
say two
`, "-p", "--verbose", "--session-id", "s1", "--replay-user-messages", "--unknown", "x")
	a.tell("rules\n## Your task: TASK-4 Fix it\n")
	got, last := a.turn()
	want := []string{
		"system", "replay text rules\n## Your task: TASK-4 Fix it\n",
		"assistant tool_use Write", "user tool_result File created successfully at: hello",
		"assistant tool_use Bash", "user tool_result hi\n",
		"assistant text one", "result",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if last.Session != "s1" || last.Result != "one" || last.IsError || *last.Cost != 0.01 {
		t.Errorf("result %+v", last)
	}
	a.tell("more")
	got, last = a.turn()
	if diff := cmp.Diff([]string{"system", "replay text more", "assistant text two", "result"}, got); diff != "" || *last.Cost != 0.02 {
		t.Errorf("cost %v, %s", *last.Cost, diff)
	}
	a.tell("and more")
	if got, _ := a.turn(); got[2] != "assistant text There is nothing for me to do." {
		t.Errorf("after the last turn: %q", got)
	}
	if status := a.end(); status != 0 {
		t.Errorf("status %d: %s", status, a.errors)
	}
}

func TestSignalsReachTheServer(t *testing.T) {
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"ralph":  map[string]any{"type": "stdio", "command": os.Args[0], "env": map[string]string{serveEnv: "1"}},
		"absent": map[string]any{"command": filepath.Join(t.TempDir(), "none")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	a := start(t, "task *\ndone {\"summary\":\"all\"}\npartial {}", "--mcp-config", string(config))
	a.tell("x")
	l, err := a.out.ReadString('\n')
	if err != nil {
		t.Fatal(err, <-a.status, a.errors)
	}
	var e event
	if err := json.Unmarshal([]byte(l), &e); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]struct{ Name, Status string }{{"absent", "failed"}, {"ralph", "connected"}}, e.Servers); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"Bash", "Write", "mcp__ralph__ralph_signal_done"}, e.Tools); diff != "" {
		t.Error(diff)
	}
	got, _ := a.turn()
	want := []string{
		"assistant tool_use mcp__ralph__ralph_signal_done", "user tool_result [map[text:recorded all type:text]]",
		"assistant tool_use partial", "user tool_result Error: No such tool available: partial", "result",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if status := a.end(); status != 0 {
		t.Errorf("status %d: %s", status, a.errors)
	}
}

func TestMisbehaviour(t *testing.T) {
	tests := map[string]struct {
		steps  string
		lines  []string
		status int
	}{
		"exits in the middle":         {"say x\nexit 7", []string{"system", "assistant text x"}, 7},
		"says nothing at all":         {"silent\nsay x", nil, 0},
		"prints rubbish":              {"garbage", []string{"system", "rubbish", "rubbish", "rubbish", "result"}, 0},
		"reaches a usage limit":       {"ratelimit 60", []string{"system", "rate_limit_event", "assistant text You've hit your limit", "result 429 completed"}, 1},
		"is not logged in":            {"error authentication_failed", []string{"system", "assistant text API Error: authentication_failed", "result 401 completed"}, 1},
		"has too long a prompt":       {"promptTooLong", []string{"system", "assistant text Prompt is too long", "result 400 prompt_too_long"}, 1},
		"says something without end":  {"flood 5", []string{"system", "assistant text xxxxx", "result"}, 0},
		"has no server for its tools": {"done {}", []string{"system", "assistant tool_use done", "user tool_result Error: No such tool available: done", "result"}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := start(t, "task *\n"+test.steps)
			a.tell("x")
			a.in.Close() // it exits by itself after the turn
			got, last := a.turn()
			if last.IsError {
				got[len(got)-1] = fmt.Sprintf("result %d %s", *last.Status, last.Terminal)
			}
			for i := range got {
				got[i], _, _ = strings.Cut(got[i], " · resets")
			}
			if diff := cmp.Diff(test.lines, got); diff != "" {
				t.Error(diff)
			}
			if status := a.end(); status != test.status {
				t.Errorf("status %d, want %d: %s", status, test.status, a.errors)
			}
		})
	}
}

func TestAnAgentThatHangsEndsOnlyWhenItIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := start(t, "task *\nsay x\nhang")
		a.tell("x")
		for range 2 {
			if _, err := a.out.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		a.in.Close()
		synctest.Wait() // a result would have come by now
		a.stop()
		if _, last := a.turn(); last.Type != "result" || !last.IsError || last.Terminal != "aborted_tools" {
			t.Errorf("got %+v", last)
		}
		if status := a.end(); status != 1 {
			t.Errorf("status %d", status)
		}
	})
}

func TestAnAgentThatIsKilledHasNoStatus(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("task *\nkill\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-p")
	cmd.Env = append(os.Environ(), agentEnv+"=1", "RALPH_SCRIPT="+script)
	cmd.Stdin = strings.NewReader(`{"type":"user","message":{"content":"x"}}`)
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.String() != "signal: killed" {
		t.Errorf("got %v", err)
	}
}

func TestAScriptGoesBySessionsOfATask(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("task *\nsession 2\nsay second\ntask *\nsay first\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, title := range []string{"A", "B", "A"} {
		a := launch(t, script)
		a.tell("## Your task: TASK-1 " + title)
		_, last := a.turn()
		got = append(got, last.Result)
		a.end()
	}
	if diff := cmp.Diff([]string{"first", "first", "second"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestWithoutAScriptItSaysThatItDidNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	a := launch(t, "")
	a.tell("x")
	if _, last := a.turn(); last.Result != "There is no script: I did nothing." {
		t.Errorf("got %+v", last)
	}
}

func TestAWrongScriptIsRefusedWithItsLine(t *testing.T) {
	tests := map[string]struct{ script, want string }{
		"a step before the first task": {"say x", "line 1: say comes before the first task"},
		"an unknown step":              {"task *\n\ndance", `line 3: unknown step "dance"`},
		"a content without quotes":     {"task *\nwrite a b", "line 2: write needs a path and a quoted content"},
		"an input that is not JSON":    {"task *\ndone {", "line 2: call needs a tool and its input as JSON"},
		"a session zero":               {"task *\nsession 0", `line 2: session needs a number from 1, not "0"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := scripted.Parse(test.script); err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("task *\nsay x\nturn\nwrite a \"b\"\ndone {}\nsession 2")
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := scripted.Parse(text); err == nil {
			s.Select("## Your task: TASK-1 x", 1)
		}
	})
}
