package acp

import (
	"encoding/json"
	"strings"
	"testing"

	"ralph"
	"ralph/internal/jsonrpc"
	"ralph/loop/agent"
)

// TestSubjectsOfQuestions: unreadable parts are not allowed, and a description is not a command.
func TestSubjectsOfQuestions(t *testing.T) {
	for _, tt := range []struct {
		name, profile, call, want string // "-" is unreadable, "" needs no answer of the rules
	}{
		{"a command in the title", "gemini", `{"kind":"execute","title":"rm -rf /\necho"}`, `Bash {"command":"rm -rf /\necho"}`},
		{"one in the input, and a description", "qwen", `{"kind":"execute","title":"ls (look)","rawInput":{"command":"ls"}}`, `Bash {"command":"ls"}`},
		{"a description alone", "copilot", `{"kind":"execute","title":"look around"}`, "-"},
		{"a command that is no text", "opencode", `{"kind":"execute","title":"x","rawInput":{"command":["rm","x"]}}`, "-"},
		{"a command of the name of a tool", "gemini", `{"kind":"execute","title":"done (ralph MCP Server)"}`, `Bash {"command":"done (ralph MCP Server)"}`},
		{
			"an edit by its diff and its place", "gemini", `{"kind":"edit","content":[{"type":"diff","path":"/b"}],"locations":[{"path":"/a"}]}`,
			`Edit {"file_path":"/a"} Edit {"file_path":"/b"}`,
		},
		{"an edit by its input", "copilot", `{"kind":"edit","rawInput":{"fileName":"/a"}}`, `Edit {"file_path":"/a"}`},
		{"a removal", "acp", `{"kind":"delete","locations":[{"path":"/a"}]}`, `Edit {"file_path":"/a"}`},
		{"an edit of nothing", "opencode", `{"kind":"edit","title":"write"}`, "-"},
		{"another kind with a diff", "opencode", `{"kind":"other","title":"x","content":[{"type":"diff","path":"/a"}]}`, `Edit {"file_path":"/a"}`},
		{
			"a command with a diff is both", "acp", `{"kind":"execute","rawInput":{"command":"ed"},"content":[{"type":"diff","path":"/a"}]}`,
			`Bash {"command":"ed"} Edit {"file_path":"/a"}`,
		},
		{"an address", "opencode", `{"kind":"fetch","rawInput":{"url":"https://a.example"}}`, `WebFetch {"url":"https://a.example"}`},
		{"an address that is not told", "gemini", `{"kind":"fetch","title":"a page"}`, "-"},
		{"a file that is read", "opencode", `{"kind":"read","locations":[{"path":"/a"}]}`, `Read {"file_path":"/a"}`},
		{"ralph's own", "gemini", `{"kind":"other","title":"ralph.signal.done (ralph MCP Server)"}`, ""},
		{"copilot calls it otherwise", "copilot", `{"kind":"other","title":"ralph-signal-done"}`, ""},
		{"qwen tells its arguments only", "qwen", `{"kind":"other","title":"{\"summary\":\"x\"}"}`, ""},
		{"another server's", "copilot", `{"kind":"other","title":"deploy","rawInput":{"a":1}}`, `deploy {"a":1}`},
		{"nothing is known of it", "acp", `{}`, "-"},
	} {
		var c toolCall
		if err := json.Unmarshal([]byte(tt.call), &c); tolerant(err) != nil {
			t.Fatal(err)
		}
		uses, ok := profileOf(t, tt.profile).uses(c)
		got := "-"
		if ok {
			var all []string
			for _, u := range uses {
				all = append(all, u.Tool+" "+string(u.Input))
			}
			got = strings.Join(all, " ")
		}
		if got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestErrorsOfTheService(t *testing.T) {
	for _, tt := range []struct {
		e    jsonrpc.Error
		want ralph.Ending
	}{
		{jsonrpc.Error{Code: 429}, ralph.RateLimited},
		{jsonrpc.Error{Code: -32603, Data: json.RawMessage(`{"errorKind":"rate_limit"}`)}, ralph.RateLimited},
		{jsonrpc.Error{Code: -32603, Data: json.RawMessage(`{"codexErrorInfo":"usageLimitExceeded"}`)}, ralph.RateLimited},
		{jsonrpc.Error{Code: -32603, Data: json.RawMessage(`{"status":503}`)}, ralph.Overloaded},
		{jsonrpc.Error{Code: 500}, ralph.Overloaded},
		{jsonrpc.Error{Code: 401}, ralph.AuthFailed},
		{jsonrpc.Error{Code: authRequired}, ralph.AuthFailed},
		{jsonrpc.Error{Code: 402}, ralph.Billing},
		{jsonrpc.Error{Code: 413}, ralph.PromptTooLong},
		{jsonrpc.Error{Code: -32603, Message: "429 rate limit", Data: json.RawMessage(`"429"`)}, ralph.RateLimited},
		{
			jsonrpc.Error{Code: -32603, Message: "Internal error", Data: json.RawMessage(`{"details":"401 Incorrect API key provided"}`)},
			ralph.AuthFailed,
		},
		{jsonrpc.Error{Code: -32603, Message: "no", Data: json.RawMessage(`{"errorName":"ProviderAuthError"}`)}, ralph.AuthFailed},
		{jsonrpc.Error{Code: 404}, ""},
		{jsonrpc.Error{Code: -32603, Message: "Internal error: failed to create the session: Permission denied (os error 13)"}, ""},
		{jsonrpc.Error{Code: -32603, Message: "EACCES: permission denied, mkdir '/home/dev/.x'"}, ""},
		{jsonrpc.Error{Code: -32603, Message: "tcp connect error: Connection refused (os error 111)"}, ralph.Network},
	} {
		if got := agent.Class(*failureOf(&tt.e)); got != tt.want {
			t.Errorf("%d %s: got %q, want %q", tt.e.Code, tt.e.Data, got, tt.want)
		}
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

// TestTheCostOfACut: of a turn that was cut off nothing is known, and so it counts as a whole.
func TestTheCostOfACut(t *testing.T) {
	h := history{profile: profileOf(t, "gemini")}
	if _, known := h.cost(price); !known {
		t.Error("one that never began has a cost that nobody knows")
	}
	h.begin()
	if _, known := h.cost(price); known {
		t.Error("a turn that is under way has a known cost")
	}
	var e ended
	if err := json.Unmarshal([]byte(`{"stopReason":"end_turn","_meta":{"quota":{"token_count":{"input_tokens":2000000}}}}`), &e); err != nil {
		t.Fatal(err)
	}
	h.end(e, nil)
	if usd, known := h.cost(price); usd != 2 || !known {
		t.Errorf("got %v, %t", usd, known)
	}
	h.begin()
	if usd, known := h.cost(price); usd != 2 || known {
		t.Errorf("the second turn was cut off: got %v, %t", usd, known)
	}
	limited := &jsonrpc.Error{Code: 429}
	h.end(ended{}, limited)
	if usd, known := h.cost(price); usd != 2 || !known {
		t.Errorf("the service refused the second turn at once: got %v, %t", usd, known)
	}
	h.begin()
	h.add(note(t, "session/update", `{"update":{"sessionUpdate":"tool_call","toolCallId":"1"}}`), true)
	h.end(ended{}, limited)
	if _, known := h.cost(price); known {
		t.Error("nobody has told what a turn has used that ended in the middle of its work, and it is known")
	}
}

// TestOpencodeAsks whatever a person's configuration says. The rest of the configuration stays.
func TestOpencodeAsks(t *testing.T) {
	env := profileOf(t, "opencode").Environment(map[string]string{
		"A": "b", "OPENCODE_CONFIG_CONTENT": `{"model":"m","permission":{"bash":"allow"}}`,
	})
	for _, part := range []string{`"bash":"ask"`, `"edit":"ask"`, `"model":"m"`} {
		if !strings.Contains(env["OPENCODE_CONFIG_CONTENT"], part) || env["A"] != "b" {
			t.Errorf("%s is not in %v", part, env)
		}
	}
}
