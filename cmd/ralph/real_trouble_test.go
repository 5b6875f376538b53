package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"ralph"
	"ralph/internal/tools/messagesapi"
)

// An apiError is how an API refuses, as its provider documents it: the body's parts.
type apiError struct{ kind, text string }

// A trouble may happen to an agent between it and its model.
type trouble struct {
	name   string
	status int // of the answers; 0 is none
	once   bool
	late   bool // only after the model has called a tool
	// The answers of the three families of APIs: Anthropic's, OpenAI's, Gemini's.
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
		gemini:    apiError{"RESOURCE_EXHAUSTED", "Your prepayment credits are depleted. Please go to AI Studio at https://ai.studio/projects to manage your project and billing."},
	},
	{name: "logged-out", does: "logout"},
	{name: "killed", does: "kill", late: true},
	{name: "garbage", does: "garbage"},
	{name: "429-later", status: 429, late: true, anthropic: rateLimits[0], openai: rateLimits[1], gemini: rateLimits[2]},
}

var rateLimits = []apiError{
	{"rate_limit_error", "This request would exceed your account's rate limit. Please try again later."},
	{"rate_limit_exceeded", "Rate limit reached for m on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 7s."},
	{"RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan and billing details. For more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits."},
}

var tooLarge = []apiError{
	{"invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum"},
	{"context_length_exceeded", "Your input exceeds the context window of this model. Please adjust your input and try again."},
	{"INVALID_ARGUMENT", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."},
}

// body returns the answer of an API for a path.
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

// answers makes the model one that has the trouble. The agent's processes are those with where as their home.
func (o trouble) answers(home func() string) func(int, messagesapi.Request) messagesapi.Turn {
	work := turns(bash("echo hi > hi-$RALPH_TASK_ID.txt"), bash("echo ho > ho-$RALPH_TASK_ID.txt"), done("did it"))
	failed := 0
	return func(n int, r messagesapi.Request) messagesapi.Turn {
		now := !o.late || n > 0
		switch {
		case o.does == "logout": // an agent that needs no key for the model has it refused
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

// side answers an agent's side calls to its model, such as to shorten a long text.
func (o trouble) side(r messagesapi.Request) messagesapi.Turn {
	if o.status == 0 || o.once || o.late && !strings.Contains(r.Body, "echo hi") {
		return messagesapi.Turn{Text: "A title"}
	}
	status, body := o.body(r.Path)
	return messagesapi.Turn{Status: status, Body: body}
}

// killAgentsOf kills the agents of a home folder, and their processes.
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

// logOut takes the agent's credentials away.
func (s *stage) logOut() {
	s.t.Helper()
	for _, key := range []string{
		"GEMINI_API_KEY: k, ", "OPENAI_API_KEY: 'k'", "COPILOT_OFFLINE: 'true'", "COPILOT_PROVIDER_API_KEY: 'k'",
		"COPILOT_PROVIDER_BASE_URL: '" + s.api.URL + "/v1'", "COPILOT_PROVIDER_TYPE: 'openai'", "env: {SCRIPTED_KEY: k}", `,"apiKey":"k"`,
	} {
		s.replace(key, "")
	}
	s.key = "NOBODY=1"
}

// dailyTroubles are the troubles of each agent that `make check` plays, which its program sees at once.
// RALPH_TEST_TROUBLES plays all of them.
var dailyTroubles = map[string]string{
	"claude":  "401 402 403 429-once 429 429-later 500 529 too-large too-large-later no-model no-credit killed garbage refused logged-out",
	"codex":   "401 402 403 429 429-later 500 529 too-large too-large-later no-model no-credit killed hangs garbage logged-out",
	"gemini":  "401 403 too-large no-model killed",
	"copilot": "401 402 no-model killed",
}

// wanted returns the endings that the recordings of an agent's troubles come to.
func wanted(t *testing.T) map[string]ralph.Ending {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "loop", "agent", "kinds", "testdata", "troubles", "verdicts.txt"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]ralph.Ending{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		all[f[0]+"/"+f[1]] = ralph.Ending(f[2])
	}
	return all
}

// A badSession is one as it is listed.
type badSession struct {
	Task    int64 `json:"task_id"`
	Agent   string
	Attempt int
	Ending  ralph.Ending
	Why     string  `json:"outcome_reason"`
	Cost    float64 `json:"cost_usd"`
	Known   bool    `json:"cost_known"`
	Tokens  ralph.Tokens
}

// sessions returns a task's, in order; nil if they cannot be read.
func (s *stage) sessions(task int) []badSession {
	out, err := s.command("session", "list", "--task", strconv.Itoa(task), "--json").Output()
	var list []badSession
	if err != nil || json.Unmarshal(out, &list) != nil {
		return nil
	}
	slices.SortFunc(list, func(a, b badSession) int { return a.Attempt - b.Attempt })
	return list
}

// taskOf finds the task of a prompt.
var taskOf = regexp.MustCompile(`Your task: TASK-(\d+) `)

// A badDay is a model that has one trouble with each task, until the task's first session has ended.
type badDay struct {
	stage    *stage
	troubles []trouble // of the tasks, from TASK-1
	mu       sync.Mutex
	tasks    map[int]*badTask
}

type badTask struct {
	trouble
	answer func(int, messagesapi.Request) messagesapi.Turn
	n      int // requests
	over   bool
}

// of is the state of the task that a request is about; nil if it is about none.
func (b *badDay) of(r messagesapi.Request) *badTask {
	m := taskOf.FindStringSubmatch(r.Text)
	if m == nil {
		return nil
	}
	id, err := strconv.Atoi(m[1])
	if err != nil || id > len(b.troubles) {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	its := b.tasks[id]
	if its == nil {
		o := b.troubles[id-1]
		its = &badTask{trouble: o, answer: o.answers(func() string { return b.stage.home })}
		b.tasks[id] = its
	}
	if its.n > 0 && !its.over && len(b.stage.sessions(id)) > 1 {
		its.over, its.n, its.answer = true, 0, trouble{}.answers(nil)
	}
	return its
}

func (b *badDay) side(r messagesapi.Request) messagesapi.Turn {
	if its := b.of(r); its != nil && !its.over {
		return its.side(r)
	}
	return messagesapi.Turn{Text: "A title"}
}

func (b *badDay) answers(_ int, r messagesapi.Request) messagesapi.Turn {
	its := b.of(r)
	if its == nil {
		return finished
	}
	its.n++
	return its.answer(its.n-1, r)
}

// spare is a program that stands in.
const spare = `#!/bin/sh
[ "$1" = --version ] && echo spare 1.2.3 && exit 0
ticket=$(sed -n 's/^Your ticket is \([^.]*\)\..*/\1/p')
echo spare > hi-$RALPH_TASK_ID.txt
ralph signal $ticket done summary="stood in"
`

// TestRealTroubles: real agents on bad days, each in one run with a task for each trouble. The ending matches its
// recording. It is not an attempt at the task and costs the seen tokens, a stand-in works if one helps, and each task is
// completed.
func TestRealTroubles(t *testing.T) {
	t.Parallel()
	want := wanted(t)
	for name, newStage := range troubledAgents {
		chosen := strings.Fields(dailyTroubles[name])
		if _, other := others[name]; other && !slices.Contains(otherNames(), name) {
			continue
		}
		if os.Getenv("RALPH_TEST_TROUBLES") != "" {
			chosen = nil
			for _, o := range troubles {
				chosen = append(chosen, o.name)
			}
		}
		day := &badDay{tasks: map[int]*badTask{}}
		var alone []trouble
		for _, o := range troubles {
			switch {
			case !slices.Contains(chosen, o.name):
			case o.does == "refuse" || o.does == "logout":
				alone = append(alone, o)
			default:
				day.troubles = append(day.troubles, o)
			}
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			day.stage = newStage(t, day.answers)
			day.stage.api.Side = day.side
			day.play(t, name, want)
		})
		for _, o := range alone {
			t.Run(name+"/"+o.name, func(t *testing.T) {
				t.Parallel()
				s := newStage(t, o.answers(nil))
				s.patience()
				if o.does == "refuse" {
					s.api.Close()
				} else {
					s.logOut()
				}
				s.run(0, "task", "add", "Make", "--verify", "ls hi-*.txt")
				out := s.run(6, "run", "--no-wait")
				list := s.sessions(1)
				if len(list) == 0 {
					t.Fatal("there was no session:\n", out)
				}
				checkTrouble(t, name, o, list[0], want)
				s.has(s.run(0, "task", "list", "--all", "--json"), `"attempts": 0`, `"status": "queued"`)
			})
		}
	}
}

// patience is how long agents may be silent; their own is shortened.
func (s *stage) patience() {
	idle := "30s"
	if os.Getenv("RALPH_TEST_TROUBLES") != "" {
		idle = "6m"
	}
	s.configure("limits: {idle_timeout: " + idle + "}\n#test: {backoff_initial: 10s, backoff_max: 10s}")
	s.environ = append(s.environ, "CLAUDE_CODE_MAX_RETRIES=1")
}

// checkTrouble checks the ending and the cost of a trouble's session.
func checkTrouble(t *testing.T, name string, o trouble, is badSession, want map[string]ralph.Ending) {
	t.Helper()
	t.Logf("%-9s %-15s %-15s %.4f %t, %s", name, o.name, is.Ending, is.Cost, is.Known, is.Why)
	w := want[name+"/"+o.name]
	if is.Ending != w {
		t.Errorf("%s was %s (%s), and its recording is %s", o.name, is.Ending, is.Why, w)
	}
	// A request at a price that may be unknown was cut off without a word about its tokens; of a killed agent by its time.
	known := is.Known && name != "opencode" // which tells its cost, and its tokens at the end of a turn that ends well
	if is.Tokens.Sum() == 0 && is.Cost > 0 && (known || is.Cost > 0.5) || is.Tokens.Sum() > 0 && is.Cost > 0.05 {
		t.Errorf("%s: $%f for %d tokens", o.name, is.Cost, is.Tokens.Sum())
	}
}

func (b *badDay) play(t *testing.T, name string, want map[string]ralph.Ending) {
	t.Helper()
	s := b.stage
	program := filepath.Join(s.dir, "spare.sh")
	s.file(program, spare)
	if name == "claude" {
		s.configure("agents:\n  claude:\n    command: [" + realClaude(t) + "]")
	}
	config, err := os.ReadFile(filepath.Join(s.dir, "ralph.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	_, itself, _ := strings.Cut(string(config), "\n  "+name+":\n")
	for _, o := range b.troubles { // each has an agent of its own, as one rests after most of them
		s.configure("  " + name + "-" + o.name + ":\n    kind: " + name + "\n" + itself)
	}
	s.configure("  spare: {kind: command, command: [" + program + "]}")
	s.replace("agent: {", "agent: {fallback: [spare], ")
	s.patience()
	for i, o := range b.troubles {
		s.run(0, "task", "add", "Make "+o.name, "--agent", name+"-"+o.name, "--verify", fmt.Sprintf("test -f hi-%d.txt", i+1))
	}
	s.run(0, "run")
	var tasks []struct {
		ID       int
		Status   string
		Attempts int
	}
	if err := json.Unmarshal([]byte(s.run(0, "task", "list", "--all", "--json")), &tasks); err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		o := b.troubles[task.ID-1]
		list := s.sessions(task.ID)
		checkTrouble(t, name, o, list[0], want)
		if task.Status != "merged" || task.Attempts > 1 {
			t.Errorf("%s: its task is %s after %d attempts", o.name, task.Status, task.Attempts)
		}
		if list[0].Ending == ralph.Finished {
			continue
		}
		next := list[0].Agent
		if list[0].Ending.StandsIn() {
			next = "spare"
		}
		if len(list) != 2 || list[1].Agent != next {
			t.Errorf("%s: after %s came %+v, and it should be %s", o.name, list[0].Ending, list[1:], next)
		}
	}
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
					s.logOut()
				}
				s.run(0, "task", "add", "First", "--verify", "ls hi-*.txt")
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
