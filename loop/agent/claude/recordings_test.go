package claude_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ralph"
	"ralph/loop/agent"
	"ralph/loop/agent/claude"
)

// recordings has the expected result of each recorded stream of the real CLI, and its exit status.
var recordings = map[string]struct {
	exit   int
	ending ralph.Ending
	reason string
}{
	"done":                      {0, ralph.Finished, "the agent ended its turn"},
	"done_after_stop_hook":      {0, ralph.Finished, "the agent ended its turn"},
	"no_closing_signal":         {0, ralph.Finished, "the agent ended its turn"},
	"permission_denied":         {0, ralph.Finished, "the agent ended its turn"},
	"two_turns":                 {0, ralph.Finished, "the agent ended its turn"},
	"messages_after_the_result": {0, ralph.Finished, "the agent ended its turn"},
	"rate_limit_subscription":   {1, ralph.RateLimited, "You've hit your limit · resets 10:21pm (UTC)"},
	"rate_limit_api_key":        {1, ralph.RateLimited, "API Error: Request rejected (429) · Number of request tokens has exceeded your per-minute rate limit"},
	"rate_limit_after_work":     {1, ralph.RateLimited, "API Error: Request rejected (429) · slow"},
	"overloaded":                {1, ralph.Overloaded, "API Error: Repeated 529 Overloaded errors. The API is at capacity — this is usually temporary. Try again in a moment. If it persists, check your inference gateway (127.0.0.1:8199)."},
	"server_error":              {1, ralph.Overloaded, "API Error: 500 Internal server error. This is a server-side issue, usually temporary — try again in a moment. If it persists, check your inference gateway (127.0.0.1:8302)."},
	"connection_refused":        {1, ralph.Network, "API Error: Unable to connect to API (ConnectionRefused)"},
	"stream_cut":                {1, ralph.Network, "API Error: API returned an empty or malformed response (HTTP 200) — check for a proxy or gateway intercepting the request"},
	"auth_failed":               {1, ralph.AuthFailed, "Failed to authenticate. API Error: 401 OAuth token has expired."},
	"permission_refused":        {1, ralph.AuthFailed, "Failed to authenticate. API Error: 403 Your account does not have access"},
	"credit_balance_low":        {1, ralph.Billing, "Credit balance is too low"},
	"prompt_too_long":           {1, ralph.PromptTooLong, "Prompt is too long · the request is ~250000 tokens (limit 200000) but this conversation is only ~1590 tokens — the rest is system prompt, tool definitions, and attachment content. A single-exchange conversation cannot be compacted; reduce attached files/tools or start with less context."},
	"request_too_large":         {1, ralph.PromptTooLong, "Request too large (max 32MB). Try with a smaller file."},
	"mcp_server_failed":         {0, ralph.MCPFailed, `the MCP server ralph is "failed"`},
	"max_turns":                 {1, ralph.TimedOut, "Reached maximum number of turns (1)"},
	"max_budget":                {1, ralph.TimedOut, "Reached maximum budget ($0.01)"},
	"interrupted_by_sigint":     {0, ralph.Lost, "the agent was interrupted, and not by ralph"},
	"model_not_found":           {1, ralph.NoWork, "There's an issue with the selected model (nope-1). It may not exist or you may not have access to it. Run --model to pick a different model."},
	"slash_command":             {0, ralph.NoWork, "Claude Code did nothing: Total cost: $0.0000 Total duration (API): 0s Total duration (wall): 0s Total code changes: 0 lines added, 0 lines removed Usage: 0 input, 0 output, 0 cache read, 0 cache write"},
}

// tools are in all recordings with a connected server.
var tools = []string{"mcp__ralph__ralph_signal_done"}

func TestRecordings(t *testing.T) {
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		t.Run(name, func(t *testing.T) {
			want, ok := recordings[name]
			if !ok {
				t.Fatal("a recording without a row in the table")
			}
			r := record(t, name, agent.Death{Code: want.exit})
			if r.Ending != want.ending || r.Reason != want.reason {
				t.Errorf("got %s: %s\nwant %s: %s", r.Ending, r.Reason, want.ending, want.reason)
			}
			if r.Unreadable != 0 {
				t.Errorf("%d lines were taken for no events", r.Unreadable)
			}
		})
	}
}

// record reads a recording.
func record(t *testing.T, name string, d agent.Death) agent.Report {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return read(t, string(b), d)
}

// read reads a stream; lines begin with "{".
func read(t *testing.T, stream string, d agent.Death) agent.Report {
	t.Helper()
	var spool bytes.Buffer
	r, err := claude.Read(strings.NewReader(stream), &spool, tools, d)
	if err != nil {
		t.Fatal(err)
	}
	if spool.String() != stream {
		t.Error("the transcript differs from what was printed")
	}
	return r
}

func TestARecordedSessionIsReported(t *testing.T) {
	got := record(t, "two_turns", agent.Death{})
	want := agent.Report{
		Ending: ralph.Finished, Reason: "the agent ended its turn",
		Model: "claude-opus-4-8[1m]", Version: "2.1.197", CostUSD: 0.034875, CostKnown: true, Began: true,
		Tokens: ralph.Tokens{Input: 3600, Output: 150, CacheRead: 15000, CacheCreation: 900, ContextWindow: 1000000},
		Turns:  3, ToolCalls: 1, LastWords: "two",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDenialsAreListedOnce(t *testing.T) {
	got := record(t, "permission_denied", agent.Death{}).Denials
	want := []string{
		"Write: /home/dev/project/greeting.txt",
		`mcp__ralph__ralph_signal_done: {"summary":"Added the greeting file."}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Lines of streams, as short as possible.
const (
	initOK    = `{"type":"system","subtype":"init","model":"claude-sonnet-5","tools":["mcp__ralph__ralph_signal_done"],"mcp_servers":[{"name":"ralph","status":"connected"}]}` + "\n"
	work      = `{"type":"assistant","message":{"id":"m1","model":"claude-sonnet-5","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}],"usage":{"input_tokens":1000000}}}` + "\n"
	success   = `{"type":"result","subtype":"success","is_error":false,"total_cost_usd":0.5,"num_turns":1}` + "\n"
	rejected  = `{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1795213319}}` + "\n"
	allowed   = `{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":1795213319,"utilization":0.99}}` + "\n"
	overage   = `{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1795213319,"isUsingOverage":true}}` + "\n"
	retry529  = `{"type":"system","subtype":"api_retry","error_status":529,"error":"overloaded"}` + "\n"
	retryNone = `{"type":"system","subtype":"api_retry","error_status":null,"error":"unknown"}` + "\n"
)

func errorResult(fields string) string {
	return `{"type":"result","subtype":"success","is_error":true,"total_cost_usd":0.1,` + fields + "}\n"
}

func says(text string) string {
	return fmt.Sprintf(`{"type":"assistant","message":{"id":"m2","model":"claude-sonnet-5","content":[{"type":"text","text":%q}]}}`+"\n", text)
}

func TestEndings(t *testing.T) {
	tests := []struct {
		name   string
		stream string
		death  agent.Death
		want   ralph.Ending
	}{
		{"a session that speaks of rate limits has none", initOK + work + says("API Error: 429 rate_limit, credit balance is too low") + success, agent.Death{}, ralph.Finished},
		{"a warning of the usage window is telemetry", initOK + allowed + work + success, agent.Death{}, ralph.Finished},
		{"a warning does not explain an error", initOK + work + allowed + errorResult(`"x":1`), agent.Death{Code: 1}, ralph.Lost},
		{"a rejection that was recovered from is none", initOK + rejected + work + success, agent.Death{}, ralph.Finished},
		{"a rejection long ago does not explain a crash", initOK + rejected + work, agent.Death{Code: -1, Signal: "SIGSEGV"}, ralph.Lost},
		{"a rejection at the end does", initOK + work + rejected, agent.Death{Code: 1}, ralph.RateLimited},
		{"a used-up window that is paid for goes on", initOK + overage + work, agent.Death{Code: -1, Signal: "SIGKILL"}, ralph.Lost},
		{"retries before a success are nothing", initOK + retry529 + retryNone + work + success, agent.Death{}, ralph.Finished},
		{"an end amid retries without an answer is the network", initOK + work + retryNone, agent.Death{Code: 1}, ralph.Network},
		{"an end amid refused retries is an overload", initOK + work + retry529, agent.Death{Code: 1}, ralph.Overloaded},
		{"a status tells without an error's name", initOK + work + errorResult(`"api_error_status":503`), agent.Death{Code: 1}, ralph.Overloaded},
		{"payment required is billing", initOK + work + errorResult(`"api_error_status":402`), agent.Death{Code: 1}, ralph.Billing},
		{"an error that nobody knows, after work, is a lost session", initOK + work + errorResult(`"api_error_status":418`), agent.Death{Code: 1}, ralph.Lost},
		{"an error that nobody knows, before any, is no work", `{"type":"result","is_error":true,"api_error_status":418}`, agent.Death{Code: 1}, ralph.NoWork},
		{"killed in the middle is lost", initOK + work, agent.Death{Code: -1, Signal: "SIGKILL"}, ralph.Lost},
		{"terminated in the middle is lost", initOK + work, agent.Death{Code: 143}, ralph.Lost},
		{"killed before it did anything is lost too", initOK, agent.Death{Code: 137}, ralph.Lost},
		{"gone in the middle with status 0 is lost", initOK + work, agent.Death{}, ralph.Lost},
		{"killed in a second turn is lost", initOK + work + success + work, agent.Death{Code: 143}, ralph.Lost},
		{"killed after the result has finished", initOK + work + success, agent.Death{Code: -1, Signal: "SIGKILL"}, ralph.Finished},
		{"stopped in the middle is interrupted", initOK + work, agent.Death{Stopped: true, Code: 143}, ralph.Interrupted},
		{"rubbish and status 0 is no work", "Segmentation fault\nnode:internal/x\n", agent.Death{}, ralph.NoWork},
		{"nothing at all is no work", "", agent.Death{Code: 1, Stderr: "error: unknown option '--x'"}, ralph.NoWork},
		{"words without a tool call that cost something are work", initOK + says("hello") + success, agent.Death{}, ralph.Finished},
		{"a missing server fails", `{"type":"system","subtype":"init","tools":["mcp__ralph__ralph_signal_done"],"mcp_servers":[]}` + "\n" + work + success, agent.Death{}, ralph.MCPFailed},
		{"a server that is still pending fails", strings.Replace(initOK, "connected", "pending", 1) + work + success, agent.Death{}, ralph.MCPFailed},
		{"a server without a tool fails", strings.Replace(initOK, "signal_done", "signal_do", 1) + work + success, agent.Death{}, ralph.MCPFailed},
		{"only the first init is judged", initOK + work + success + strings.Replace(initOK, "connected", "failed", 1) + work + success, agent.Death{}, ralph.Finished},
		{"a rate limit outranks the missing server", strings.Replace(initOK, "connected", "failed", 1) + errorResult(`"api_error_status":429`), agent.Death{Code: 1}, ralph.RateLimited},
		{"unknown events, subtypes and fields are normal", initOK + `{"type":"hologram","x":[1]}` + "\n" + `{"type":"system","subtype":"new"}` + "\n" + `{"y":1}` + "\n" + work + success, agent.Death{}, ralph.Finished},
		{"a field of an unexpected type is skipped", initOK + work + `{"type":"result","num_turns":"many","usage":[],"modelUsage":3,"is_error":false,"total_cost_usd":0.5,"errors":{}}` + "\n", agent.Death{}, ralph.Finished},
		{"a torn last line is no event", initOK + work + success[:40], agent.Death{Code: 143}, ralph.Lost},
		{"a last line without its newline is one", initOK + work + strings.TrimSpace(success), agent.Death{}, ralph.Finished},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := read(t, tt.stream, tt.death); got.Ending != tt.want {
				t.Errorf("got %s (%s), want %s", got.Ending, got.Reason, tt.want)
			}
		})
	}
}

func TestACostThatIsNoNumberIsUnknown(t *testing.T) {
	for cost, want := range map[string]bool{
		`0.5`: true, `0`: true, `"free"`: false, `"0.5"`: false, `null`: false, `{}`: false, `[1]`: false, `true`: false, `-1`: false, `1e300`: false,
	} {
		got := read(t, initOK+work+`{"type":"result","is_error":false,"num_turns":1,"total_cost_usd":`+cost+"}\n", agent.Death{})
		if got.CostKnown != want {
			t.Errorf("%s: known %v, $%g", cost, got.CostKnown, got.CostUSD)
		}
	}
}

func TestResetTimes(t *testing.T) {
	want := time.Unix(1795213319, 0).UTC()
	if got := record(t, "rate_limit_subscription", agent.Death{Code: 1}).ResetAt; !got.Equal(want) {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := record(t, "rate_limit_api_key", agent.Death{Code: 1}).ResetAt; !got.IsZero() {
		t.Errorf("got %s of an error without a reset time", got)
	}
	huge := strings.Replace(rejected, "1795213319", "1e300", 1) + errorResult(`"api_error_status":429`)
	if got := read(t, huge, agent.Death{Code: 1}); got.Ending != ralph.RateLimited || !got.ResetAt.IsZero() {
		t.Errorf("got %s until %s of an impossible reset time", got.Ending, got.ResetAt)
	}
}

func TestReasons(t *testing.T) {
	tests := []struct {
		name   string
		stream string
		death  agent.Death
		want   string
	}{
		{"a signal is named, with the last line of stderr", initOK + work, agent.Death{Code: -1, Signal: "SIGSEGV", Stderr: "a\nout of memory\n\n"}, "Claude Code was killed by SIGSEGV: out of memory"},
		{"a broken CLI is quoted", "oops\n", agent.Death{}, "Claude Code did nothing: Claude Code exited with status 0: oops"},
		{"a refused start is quoted", "", agent.Death{Code: 1, Stderr: "error: unknown option '--x'\n"}, "Claude Code did nothing: Claude Code exited with status 1: error: unknown option '--x'"},
		{"missing tools are named", strings.Replace(initOK, "signal_done", "x", 1), agent.Death{Code: 1}, "the MCP server ralph lacks mcp__ralph__ralph_signal_done"},
		{"a long reason is cut", errorResult(`"api_error_status":429,"result":"` + strings.Repeat("é", 500) + `"`), agent.Death{Code: 1}, strings.Repeat("é", 399) + "…"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := read(t, tt.stream, tt.death).Reason; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestCostWithoutAResultIsEstimated(t *testing.T) {
	r := read(t, initOK+work+work, agent.Death{Code: 143})
	if r.CostKnown || cents(r) != 300 { // a million tokens of input, in a message on two lines
		t.Errorf("got %v, known %v; want an estimate of 3.00", r.CostUSD, r.CostKnown)
	}
	r = read(t, initOK+work+success+work, agent.Death{Code: 143})
	if r.CostKnown || cents(r) != 350 {
		t.Errorf("got %v, known %v; want 0.5 and an estimate of 3.0", r.CostUSD, r.CostKnown)
	}
	r = read(t, initOK+work+success, agent.Death{})
	if !r.CostKnown || r.CostUSD != 0.5 {
		t.Errorf("got %v, known %v; want 0.5 as reported", r.CostUSD, r.CostKnown)
	}
}

func cents(r agent.Report) int { return int(r.CostUSD*100 + 0.5) }

func TestGiantLines(t *testing.T) {
	giant := fmt.Sprintf(`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"%s"}]}}`+"\n", strings.Repeat(`\"\\é\u00e9{`, 1<<20))
	r := read(t, initOK+work+giant+success, agent.Death{})
	if r.Ending != ralph.Finished || r.Unreadable != 0 {
		t.Errorf("got %s, %d unreadable lines", r.Ending, r.Unreadable)
	}
	result := fmt.Sprintf(`{"type":"result","result":"%s","is_error":true,"api_error_status":429}`, strings.Repeat("x", 10<<20))
	if r := read(t, initOK+work+result, agent.Death{}); r.Ending != ralph.RateLimited {
		t.Errorf("got %s: what follows a giant string was not read", r.Ending)
	}
	list := `{"type":"x","list":[` + strings.Repeat("1,", 4<<20) + "1]}\n"
	if r := read(t, initOK+work+list+success, agent.Death{}); r.Ending != ralph.Finished || r.Unreadable != 1 {
		t.Errorf("got %s, %d unreadable lines; want the giant one counted", r.Ending, r.Unreadable)
	}
}

func TestAGiantLineTakesLittleMemory(t *testing.T) {
	const size = 200 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	line := io.MultiReader(strings.NewReader(`{"type":"user","x":"`), io.LimitReader(forever('x'), size), strings.NewReader(`"}`+"\n"+success))
	if _, err := claude.Read(line, io.Discard, tools, agent.Death{}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > size/20 {
		t.Errorf("%d bytes were allocated to read a line of %d", got, size)
	}
}

// forever is an endless stream of one byte.
type forever byte

func (f forever) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(f)
	}
	return len(p), nil
}

func FuzzStream(f *testing.F) {
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(initOK + work + retryNone + rejected + success))
	f.Fuzz(func(t *testing.T, stream []byte) {
		var spool bytes.Buffer
		r, err := claude.Read(bytes.NewReader(stream), &spool, tools, agent.Death{Code: 1})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(spool.Bytes(), stream) {
			t.Error("the transcript differs from what was printed")
		}
		if r.Ending == "" || r.Reason == "" {
			t.Errorf("no ending or no reason: %q %q", r.Ending, r.Reason)
		}
		if strings.ContainsAny(r.Reason, "\r\n") {
			t.Errorf("the reason has several lines: %q", r.Reason)
		}
		if r.CostUSD < 0 || r.Turns < 0 || r.Tokens.Input < 0 || r.Tokens.Output < 0 {
			t.Errorf("something is negative: %+v", r)
		}
		for line := range bytes.Lines(stream) {
			line = bytes.TrimSuffix(line, []byte("\n"))
			if claude.IsEvent(line) && !claude.IsEvent(claude.Squeeze(line, 3)) {
				t.Errorf("cutting strings made no event of %q", line)
			}
		}
	})
}

func TestAFullDiskIsAnError(t *testing.T) {
	if _, err := claude.Read(strings.NewReader(initOK), fullDisk{}, tools, agent.Death{}); err == nil {
		t.Error("no error although nothing could be kept")
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
