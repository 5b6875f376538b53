package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"ralph/internal/tools/messagesapi"
)

// An apiError is how an API refuses, as its provider documents it: the body's parts.
type apiError struct{ kind, text string }

// A trouble is what may happen to an agent between it and its model.
type trouble struct {
	name   string
	status int // of the answers; 0 is none
	once   bool
	late   bool // only after the model has called a tool
	// What each of the three families of APIs says: Anthropic's, OpenAI's, Gemini's.
	anthropic, openai, gemini apiError
	does                      string // "refuse", "hang", "kill", "garbage", "logout" beside what the API says
}

// troubles are those of the table in docs/agents.md.
var troubles = []trouble{
	{
		name: "401", status: 401, anthropic: apiError{"authentication_error", "invalid x-api-key"},
		openai: apiError{"invalid_api_key", "Incorrect API key provided: k. You can find your API key at https://platform.openai.com/account/api-keys."},
		gemini: apiError{"UNAUTHENTICATED", "API key not valid. Please pass a valid API key."},
	},
	{
		name: "402", status: 402, anthropic: apiError{"billing_error", "There's an issue with your billing or payment information."},
		openai: apiError{"billing_not_active", "Your account is not active, please check your billing details on our website."},
		gemini: apiError{"FAILED_PRECONDITION", "Billing is not enabled for this project."},
	},
	{
		name: "403", status: 403, anthropic: apiError{"permission_error", "Your API key does not have permission to use the specified resource."},
		openai: apiError{"unsupported_country_region_territory", "Country, region, or territory not supported"},
		gemini: apiError{"PERMISSION_DENIED", "Your API key was reported as leaked. Please use another API key."},
	},
	{name: "429-once", status: 429, once: true, anthropic: rateLimits[0], openai: rateLimits[1], gemini: rateLimits[2]},
	{name: "429", status: 429, anthropic: rateLimits[0], openai: rateLimits[1], gemini: rateLimits[2]},
	{
		name: "500", status: 500, anthropic: apiError{"api_error", "Internal server error"},
		openai: apiError{"server_error", "The server had an error while processing your request. Sorry about that!"},
		gemini: apiError{"INTERNAL", "An internal error has occurred."},
	},
	{
		name: "529", status: 529, anthropic: apiError{"overloaded_error", "Overloaded"},
		openai: apiError{"overloaded", "The engine is currently overloaded, please try again later"},
		gemini: apiError{"UNAVAILABLE", "The model is overloaded. Please try again later."},
	},
	{name: "too-large", status: 400, anthropic: tooLarge[0], openai: tooLarge[1], gemini: tooLarge[2]},
	{name: "too-large-later", status: 400, late: true, anthropic: tooLarge[0], openai: tooLarge[1], gemini: tooLarge[2]},
	{
		name: "no-model", status: 404, anthropic: apiError{"not_found_error", "model: m"},
		openai: apiError{"model_not_found", "The model `m` does not exist or you do not have access to it."},
		gemini: apiError{"NOT_FOUND", "models/m is not found for API version v1beta, or is not supported for generateContent."},
	},
	{name: "refused", does: "refuse"},
	{name: "hangs", does: "hang"},
	{
		name: "no-credit", status: 429,
		anthropic: apiError{"invalid_request_error", "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."},
		openai:    apiError{"insufficient_quota", "You exceeded your current quota, please check your plan and billing details. For more information on this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors."},
		gemini:    apiError{"RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan and billing details."},
	},
	{name: "logged-out", does: "logout"},
	{name: "killed", does: "kill", late: true},
	{name: "garbage", does: "garbage"},
	{name: "429-later", status: 429, late: true, anthropic: rateLimits[0], openai: rateLimits[1], gemini: rateLimits[2]},
}

var rateLimits = []apiError{
	{"rate_limit_error", "This request would exceed your account's rate limit. Please try again later."},
	{"rate_limit_exceeded", "Rate limit reached for m on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 7s."},
	{"RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."},
}

var tooLarge = []apiError{
	{"invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum"},
	{"context_length_exceeded", "Your input exceeds the context window of this model. Please adjust your input and try again."},
	{"INVALID_ARGUMENT", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."},
}

// body is what an API of a path answers.
func (o trouble) body(path string) (status int, body string) {
	switch {
	case path == "/v1/messages":
		if o.name == "no-credit" { // which Anthropic's API does not count as a limit
			return 400, fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q}}`, o.anthropic.kind, o.anthropic.text)
		}
		return o.status, fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q}}`, o.anthropic.kind, o.anthropic.text)
	case strings.HasPrefix(path, "/v1beta/"):
		return o.status, fmt.Sprintf(`{"error":{"code":%d,"message":%q,"status":%q}}`, o.status, o.gemini.text, o.gemini.kind)
	}
	return o.status, fmt.Sprintf(`{"error":{"message":%q,"type":%[2]q,"param":null,"code":%[2]q}}`, o.openai.text, o.openai.kind)
}

// answers makes the model one that has the trouble. The agent's processes are those that have where as
// their home.
func (o trouble) answers(home func() string) func(int, messagesapi.Request) messagesapi.Turn {
	work := turns(bash("echo hi > hi.txt"), bash("echo ho > ho.txt"), done("did it"))
	failed := 0
	return func(n int, r messagesapi.Request) messagesapi.Turn {
		now := !o.late || n > 0
		switch {
		case o.does == "logout": // who needs no key for the model has it refused
			return messagesapi.Turn{Status: 401, Body: `{"error":{"message":"Missing bearer authentication in header","type":"invalid_request_error"}}`}
		case now && o.does == "hang":
			return messagesapi.Turn{Hang: true}
		case now && o.does == "garbage":
			return messagesapi.Turn{Status: http.StatusOK, Body: "<html><body>Welcome to the hotel's network</body></html>"}
		case now && o.does == "kill":
			killAgentsOf(home())
			return messagesapi.Turn{Hang: true}
		case now && o.status != 0 && !(o.once && failed > 0):
			failed++
			status, body := o.body(r.Path)
			return messagesapi.Turn{Status: status, Body: body}
		}
		return work(n-failed, r)
	}
}

// side answers what an agent asks its model beside the conversation, such as to shorten what is too large.
func (o trouble) side(r messagesapi.Request) messagesapi.Turn {
	if o.status == 0 || o.once || o.late && !strings.Contains(r.Body, "echo hi") {
		return messagesapi.Turn{Text: "A title"}
	}
	status, body := o.body(r.Path)
	return messagesapi.Turn{Status: status, Body: body}
}

// killAgentsOf kills the agents, and what they have started, of a home folder.
func killAgentsOf(home string) {
	found, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range found {
		environ, err := os.ReadFile(dir + "/environ")
		command, _ := os.ReadFile(dir + "/cmdline")
		if err != nil || !strings.Contains(string(environ), "\x00RALPH_SESSION_ID=") && !strings.HasPrefix(string(environ), "RALPH_SESSION_ID=") ||
			!strings.Contains(string(environ), "HOME="+home+"\x00") || strings.Contains(string(command), "\x00mcp\x00") || strings.Contains(string(command), "bwrap") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// troubledAgents are the stages of the table.
var troubledAgents = map[string]stageMaker{
	"claude": newStage, "codex": newCodexStage, "gemini": newGeminiStage,
	"copilot": func(t *testing.T, a func(int, messagesapi.Request) messagesapi.Turn) *stage {
		return newOtherStage(t, "copilot", a)
	},
	"opencode": func(t *testing.T, a func(int, messagesapi.Request) messagesapi.Turn) *stage {
		return newOtherStage(t, "opencode", a)
	},
	"qwen": func(t *testing.T, a func(int, messagesapi.Request) messagesapi.Turn) *stage {
		return newOtherStage(t, "qwen", a)
	},
}

// TestRecordTroubles makes the recordings that TestTroubles in loop/agent/kinds replays, in the folder
// RALPH_RECORD.
func TestRecordTroubles(t *testing.T) {
	dir := os.Getenv("RALPH_RECORD")
	if dir == "" {
		t.Skip("skipped without RALPH_RECORD")
	}
	for name, newStage := range troubledAgents {
		for _, o := range troubles {
			t.Run(name+"/"+o.name, func(t *testing.T) {
				t.Parallel()
				var s *stage
				s = newStage(t, o.answers(func() string { return s.home }))
				s.api.Side = o.side
				s.configure("limits: {session_timeout: 14m, max_sessions: 1}")
				switch o.does {
				case "refuse":
					s.api.Close()
				case "logout":
					for _, key := range []string{
						"GEMINI_API_KEY: k, ", "OPENAI_API_KEY: 'k'", "COPILOT_OFFLINE: 'true'", "COPILOT_PROVIDER_API_KEY: 'k'",
						"COPILOT_PROVIDER_BASE_URL: '" + s.api.URL + "/v1'", "COPILOT_PROVIDER_TYPE: 'openai'", "env: {SCRIPTED_KEY: k}", `,"apiKey":"k"`,
					} {
						s.replace(key, "")
					}
					s.key = "NOBODY=1"
				}
				s.run(0, "task", "add", "First", "--verify", "test -f hi.txt")
				cmd := s.command("run", "--no-wait")
				out, _ := cmd.CombinedOutput()
				var sessions []struct {
					ID, Ending, Reason, Outcome string
					Why                         string `json:"outcome_reason"`
					Exit                        *int
					Stderr                      string  `json:"stderr_tail"`
					Cost                        float64 `json:"cost_usd"`
					Known                       bool    `json:"cost_known"`
				}
				list := s.run(0, "session", "list", "--json")
				if err := json.Unmarshal([]byte(list), &sessions); err != nil {
					t.Fatal(err, list)
				}
				to := filepath.Join(dir, name)
				if err := os.MkdirAll(to, 0o755); err != nil {
					t.Fatal(err)
				}
				write := func(suffix, text string) {
					if err := os.WriteFile(filepath.Join(to, o.name+suffix), []byte(text), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				write(".out", string(out)+"\n"+list)
				if len(sessions) == 0 {
					return
				}
				_ = filepath.WalkDir(s.home, func(path string, _ os.DirEntry, err error) error {
					if err == nil && filepath.Base(path) == "stream.jsonl" {
						text, _ := os.ReadFile(path)
						write(".jsonl", string(text))
					}
					return nil
				})
				write(".home", s.home+"\n"+s.dir)
				exit := "null"
				if sessions[0].Exit != nil {
					exit = strconv.Itoa(*sessions[0].Exit)
				}
				t.Logf("%s/%s: %s, exit %s, $%.2f %t, %q, stderr %q", name, o.name, sessions[0].Ending, exit, sessions[0].Cost,
					sessions[0].Known, sessions[0].Why, sessions[0].Stderr)
			})
		}
	}
}
