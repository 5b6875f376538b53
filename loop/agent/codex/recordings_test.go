package codex

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/internal/jsonrpc"
	"ralph/loop/agent"
)

// price returns the tests' price: a dollar a million tokens of any kind.
func price(_ string, t ralph.Tokens) (float64, bool) { return float64(t.Sum()) / 1e6, true }

// salvage reads a recording as the transcript of a session.
func salvage(t *testing.T, name string) agent.Report {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	dir := t.TempDir()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, agent.TranscriptFile), text, 0o600)
	}
	var r agent.Report
	if err == nil {
		r, err = New(Options{Cost: price}).Salvage(dir, agent.Unseen)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestResultsOfRecordings(t *testing.T) {
	for _, tt := range []struct {
		name, want string
	}{
		{"basic.jsonl", "finished the agent ended its turn; gpt-5-codex 0.169.0, 4 turns, 3 calls, 5000 tokens, $0.0050 true; 0 denials"},
		{"hook.jsonl", "finished the agent ended its turn; gpt-5-codex 0.169.0, 4 turns, 2 calls, 5000 tokens, $0.0050 true; 1 denials"},
		{"err429.jsonl", "rate_limited You’ve hit your usage limit. "},
	} {
		r := salvage(t, tt.name)
		got := fmt.Sprintf("%s %s; %s %s, %d turns, %d calls, %d tokens, $%.4f %t; %d denials", r.Ending, r.Reason, r.Model, r.Version,
			r.Turns, r.ToolCalls, r.Tokens.Sum(), r.CostUSD, r.CostKnown, len(r.Denials))
		if !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: got  %s\nwant %s", tt.name, got, tt.want)
		}
	}
	if r := salvage(t, "hook.jsonl"); r.Denials[0] != "ralph: rule force-push denies this" {
		t.Errorf("denied: %q", r.Denials)
	}
}

func TestEventsOfARecording(t *testing.T) {
	var seen []string
	text, err := os.ReadFile(filepath.Join("testdata", "basic.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	reader := NewReader()
	for line := range strings.Lines(string(text)) {
		for _, e := range reader.Line([]byte(line)) {
			seen = append(seen, strings.TrimSpace(fmt.Sprintf("%s %s %.40s", e.Kind, e.Tool, strings.ReplaceAll(e.Text, "\n", " "))))
		}
	}
	golden := filepath.Join("testdata", "basic.seen")
	got := strings.Join(seen, "\n") + "\n"
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || string(want) != got {
		t.Errorf("got\n%s\n%v", got, err)
	}
}

// note returns a notification to the client.
func note(t *testing.T, method, params string) jsonrpc.Message {
	t.Helper()
	m, ok := jsonrpc.Parse([]byte(`{"method":"` + method + `","params":` + params + `}`))
	if !ok {
		t.Fatal("no message: ", params)
	}
	return m
}

const turnStarted = `{"turn":{"id":"1"}}`

// TestClasses: codex's errors as recorded, and further ones of its schema.
func TestClasses(t *testing.T) {
	full := `{"rateLimits":{"primary":{"usedPercent":100,"windowDurationMins":300,"resetsAt":2000000000},"secondary":{"usedPercent":40,"windowDurationMins":10080,"resetsAt":2100000000}}}`
	for _, tt := range []struct {
		name     string
		before   []jsonrpc.Message
		info     string
		ending   ralph.Ending
		reset    int64
		retrying string
	}{
		{"usage limit", []jsonrpc.Message{note(t, "account/rateLimits/updated", full)}, `"usageLimitExceeded"`, ralph.RateLimited, 2000000000, ""},
		{"usage limit of which nothing is known", nil, `"usageLimitExceeded"`, ralph.RateLimited, 0, ""},
		{
			"no credits",
			[]jsonrpc.Message{note(t, "account/rateLimits/updated",
				`{"rateLimits":{"credits":{"hasCredits":false,"unlimited":false},"rateLimitReachedType":"workspace_owner_credits_depleted"}}`)},
			`"usageLimitExceeded"`, ralph.Billing, 0, "",
		},
		{"rate limit", nil, `{"responseTooManyFailedAttempts":{"httpStatusCode":429}}`, ralph.RateLimited, 0, ""},
		{"rate limit by its class", nil, `"rateLimitExceeded"`, ralph.RateLimited, 0, ""},
		{"bad key", nil, `{"httpConnectionFailed":{"httpStatusCode":401}}`, ralph.AuthFailed, 0, `{"responseStreamDisconnected":{"httpStatusCode":401}}`},
		{"unauthorized", nil, `"unauthorized"`, ralph.AuthFailed, 0, ""},
		{"payment required", nil, `{"httpConnectionFailed":{"httpStatusCode":402}}`, ralph.Billing, 0, ""},
		{"high demand", nil, `"internalServerError"`, ralph.Overloaded, 0, `{"responseStreamDisconnected":{"httpStatusCode":null}}`},
		{"at capacity", nil, `"serverOverloaded"`, ralph.Overloaded, 0, ""},
		{"bad gateway", nil, `{"httpConnectionFailed":{"httpStatusCode":502}}`, ralph.Overloaded, 0, ""},
		{"cut off", nil, `"other"`, ralph.Network, 0, `{"responseStreamDisconnected":{"httpStatusCode":null}}`},
		{"not reached", nil, `{"responseStreamConnectionFailed":{"httpStatusCode":null}}`, ralph.Network, 0, ""},
		{"too long", nil, `"contextWindowExceeded"`, ralph.PromptTooLong, 0, ""},
		{"another one", nil, `"badRequest"`, ralph.NoWork, 0, ""},
		{"a form that is none", nil, `[1]`, ralph.NoWork, 0, ""},
		{"one of tomorrow", nil, `{"x":{"y":1}}`, ralph.NoWork, 0, ""},
	} {
		var h history
		h.add(note(t, "turn/started", turnStarted), true)
		for _, m := range tt.before {
			h.add(m, true)
		}
		if tt.retrying != "" {
			h.add(note(t, "error", `{"willRetry":true,"error":{"message":"Reconnecting","codexErrorInfo":`+tt.retrying+`}}`), true)
		}
		h.add(note(t, "turn/completed", `{"turn":{"id":"1","status":"failed","error":{"message":"why","codexErrorInfo":`+tt.info+`}}}`), true)
		r := h.report(agent.Death{}, price)
		ending, reason, reset := r.Ending, r.Reason, r.ResetAt
		if at := time.Unix(tt.reset, 0).UTC(); ending != tt.ending || tt.reset == 0 != reset.IsZero() || tt.reset != 0 && !reset.Equal(at) ||
			!strings.Contains(reason, "why") {
			t.Errorf("%s: got %s %q, reset %s", tt.name, ending, reason, reset)
		}
		if usd, known := h.cost(price); usd != 0 || !known {
			t.Errorf("%s: nothing was answered, and it cost %f (%t)", tt.name, usd, known)
		}
	}
}

func TestHowASessionEnded(t *testing.T) {
	completed := note(t, "turn/completed", `{"turn":{"id":"1","status":"completed"}}`)
	used := note(t, "thread/tokenUsage/updated", `{"tokenUsage":{"total":{"inputTokens":10,"totalTokens":10}}}`)
	ran := note(t, "item/started", `{"item":{"type":"commandExecution","id":"a","command":"git push"}}`)
	asked := note(t, "hook/started", `{"run":{"id":"pre-tool-use:0:/x:a"}}`)
	for _, tt := range []struct {
		name   string
		h      history
		seen   []jsonrpc.Message
		d      agent.Death
		ending ralph.Ending
		says   string
	}{
		{"it ended its turn", history{}, []jsonrpc.Message{used, completed}, agent.Death{}, ralph.Finished, "ended its turn"},
		{"ralph stopped it", history{}, []jsonrpc.Message{used}, agent.Death{Stopped: true}, ralph.Interrupted, "stopped by ralph"},
		{"killed", history{}, []jsonrpc.Message{used}, agent.Death{Code: -1, Signal: "SIGKILL"}, ralph.Lost, "Codex was killed by SIGKILL"},
		{"gone before it began", history{}, nil, agent.Death{Code: 1, Stderr: "no home"}, ralph.NoWork, "Codex did nothing: Codex exited with status 1: no home"},
		{"its thread is refused, with ralph's tools", history{}, nil, agent.Death{Refusal: &agent.Failure{Text: "bad day"}}, ralph.NoWork, "bad day"},
		{"its thread is refused, without", history{}, nil, agent.Death{Refusal: &agent.Failure{Text: "servers failed"}, Toolless: "not told ralph's tools: servers failed"}, ralph.MCPFailed, "servers failed"},
		{"its folder cannot be written to", history{}, nil, agent.Death{
			Refusal:  &agent.Failure{Text: "Internal error: cannot create the lock: Permission denied (os error 13) (-32603)"},
			Toolless: "not told ralph's tools",
		}, ralph.NoWork, "Codex does not begin: Internal error: cannot create the lock"},
		{"without tools to the end of a turn", history{}, []jsonrpc.Message{used, completed}, agent.Death{Toolless: "not told ralph's tools"}, ralph.MCPFailed, "not told ralph's tools"},
		{"too dear", history{}, []jsonrpc.Message{used}, agent.Death{Over: "reached the limit of cost"}, ralph.TimedOut, "limit of cost"},
		{"it asked first", history{guarded: true}, []jsonrpc.Message{asked, ran, used, completed}, agent.Death{}, ralph.Finished, ""},
		{"it did not ask", history{guarded: true}, []jsonrpc.Message{ran, used, completed}, agent.Death{}, ralph.MCPFailed, "without asking ralph first, and was stopped: git push"},
		{"it asked about another call", history{guarded: true}, []jsonrpc.Message{
			note(t, "hook/started", `{"run":{"id":"pre-tool-use:0:/x:b"}}`), ran, used, completed,
		}, agent.Death{}, ralph.MCPFailed, "git push"},
		{"it asks for two by one", history{guarded: true}, []jsonrpc.Message{asked, ran, ran, used, completed}, agent.Death{}, ralph.MCPFailed, "git push"},
		{"it typed something into a program", history{guarded: true}, []jsonrpc.Message{
			note(t, "item/commandExecution/terminalInteraction", `{"stdin":"git push\n"}`), used, completed,
		}, agent.Death{}, ralph.MCPFailed, "typed into a program: git push"},
		{"it looked again at one", history{guarded: true}, []jsonrpc.Message{
			note(t, "item/commandExecution/terminalInteraction", `{"stdin":""}`), used, completed,
		}, agent.Death{}, ralph.Finished, ""},
		{"nobody is to be asked", history{}, []jsonrpc.Message{ran, used, completed}, agent.Death{}, ralph.Finished, ""},
	} {
		for i, m := range append([]jsonrpc.Message{note(t, "turn/started", turnStarted)}, tt.seen...) {
			if i > 0 || len(tt.seen) > 0 {
				tt.h.add(m, true)
			}
		}
		if r := tt.h.report(tt.d, price); r.Ending != tt.ending || !strings.Contains(r.Reason, tt.says) {
			t.Errorf("%s: got %s %q", tt.name, r.Ending, r.Reason)
		}
	}
}

// TestAnAgentOfItsOwn: the use of an agent that codex starts counts, by its own model, and its turns are not the
// session's.
func TestAnAgentOfItsOwn(t *testing.T) {
	var h history
	h.add(note(t, "thread/started", `{"thread":{"id":"a","model":"dear"}}`), true)
	used := func(thread string, n int) jsonrpc.Message {
		return note(t, "thread/tokenUsage/updated", fmt.Sprintf(`{"threadId":%q,"tokenUsage":{"total":{"inputTokens":%d}}}`, thread, n))
	}
	by := func(model string, t ralph.Tokens) (float64, bool) {
		return map[string]float64{"dear": 10, "cheap": 1}[model] * float64(t.Sum()), true
	}
	for _, tt := range []struct {
		m     jsonrpc.Message
		usd   float64
		known bool
		open  bool
	}{
		{note(t, "turn/started", `{"threadId":"a","turn":{"id":"1"}}`), 0, true, true},
		{used("a", 2), 20, false, true},
		{note(t, "item/started", `{"threadId":"a","item":{"type":"subAgentActivity","agentThreadId":"b","model":"cheap"}}`), 20, false, true},
		{note(t, "turn/started", `{"threadId":"b","turn":{"id":"2"}}`), 20, false, true},
		{used("b", 3), 23, false, true},
		{used("a", 4), 43, false, true},
		{note(t, "turn/completed", `{"threadId":"a","turn":{"id":"1","status":"completed"}}`), 43, false, false},
		{note(t, "turn/completed", `{"threadId":"b","turn":{"id":"2","status":"failed"}}`), 43, true, false},
	} {
		h.add(tt.m, true)
		if usd, known := h.cost(by); usd != tt.usd || known != tt.known || h.open != tt.open {
			t.Errorf("%s %s: got %v, %t, open %t", tt.m.Method, tt.m.Params, usd, known, h.open)
		}
	}
	r := h.report(agent.Death{}, by)
	if r.Ending != ralph.Finished || r.Tokens.Input != 7 {
		t.Errorf("got %s, %d tokens", r.Ending, r.Tokens.Input)
	}
}

// TestUses: the hook's questions, as rules see them; the inputs are codex's own.
func TestUses(t *testing.T) {
	patch := `*** Begin Patch\n*** Add File: made.txt\n+hello\n*** Update File: a/b\n*** Move to: /etc/c\n*** Delete File: d\n*** End Patch`
	for _, tt := range []struct{ tool, input, want string }{
		{"Bash", `{"command":"git push"}`, `Bash {"command":"git push"}`},
		{"mcp__ralph__ralph_signal_done", `{"summary":"x"}`, ``},
		{"mcp__other__tool", `{"a":1}`, `mcp__other__tool {"a":1}`},
		{
			"apply_patch", `{"command":"` + patch + `"}`,
			`Edit {"file_path":"made.txt"}; Edit {"file_path":"a/b"}; Edit {"file_path":"/etc/c"}; Edit {"file_path":"d"}`,
		},
		{
			"Bash", `{"command":"apply_patch <<'EOP'\n*** Begin Patch\n*** Add File: x\n*** End Patch\nEOP"}`,
			`Bash {"command":"apply_patch <<'EOP'\n*** Begin Patch\n*** Add File: x\n*** End Patch\nEOP"}; Edit {"file_path":"x"}`,
		},
		{"view_image", `{"path":"a.png"}`, `Read {"file_path":"a.png"}`},
		{"odd", `[]`, `odd []`},
	} {
		var got []string
		for _, u := range uses(tt.tool, json.RawMessage(tt.input)) {
			got = append(got, u.Tool+" "+string(u.Input))
		}
		if strings.Join(got, "; ") != tt.want {
			t.Errorf("%s %s: got %s", tt.tool, tt.input, strings.Join(got, "; "))
		}
	}
}
