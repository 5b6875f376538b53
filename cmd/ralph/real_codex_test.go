package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ralph/internal/state"
	"ralph/internal/tools/messagesapi"
	"ralph/loop/gate/gatetest"
)

// codexVersion is the version of codex that was measured.
const codexVersion = "0.169.0"

// realCodex returns the real CLI, from RALPH_TEST_CODEX or installed once with npm.
func realCodex(t *testing.T) string {
	t.Helper()
	long(t)
	if path := os.Getenv("RALPH_TEST_CODEX"); path != "" {
		return path
	}
	cache, err := os.UserCacheDir()
	path := ""
	if err == nil {
		arch := map[string]string{"amd64": "x64/vendor/x86_64", "arm64": "arm64/vendor/aarch64"}[runtime.GOARCH]
		dir := filepath.Join(cache, "ralph-test", "codex-"+codexVersion)
		path = filepath.Join(dir, "node_modules", "@openai", "codex-linux-"+arch+"-unknown-linux-musl", "bin", "codex")
		path, err = gatetest.Install(t.Context(), dir, path, "@openai/codex@"+codexVersion)
	}
	if err != nil {
		if os.Getenv("RALPH_REQUIRE_CLAUDE") != "" {
			t.Fatal("the real codex is required here: ", err)
		}
		t.Skip("skipped without the real codex: ", err)
	}
	return path
}

// newCodexStage returns a stage on which codex works, with a model that is shown ralph's tools only where it looks for
// them.
func newCodexStage(t *testing.T, answer func(n int, r messagesapi.Request) messagesapi.Turn) *stage {
	t.Helper()
	codex := realCodex(t)
	s := newStage(t, answer)
	s.codexHome()
	s.replace("agent: {", "agent: {use: codex, ")
	s.configure("agents:\n" + codexAgent(codex))
	return s
}

// codexAgent returns the configuration of the agent codex.
func codexAgent(program string) string {
	return "  codex:\n    command: ['" + program + "', app-server]\n    model: gpt-5.5\n    env: {SCRIPTED_KEY: k}\n" +
		"    prices: {gpt-5.5: [1.25, 0.125, 10]}\n"
}

// codexHome has codex ask the scripted model.
func (s *stage) codexHome() {
	s.file(filepath.Join(s.home, ".codex", "config.toml"), `model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "`+s.api.URL+`/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 0
stream_max_retries = 0
`)
}

// replace edits ralph.yaml.
func (s *stage) replace(old, now string) {
	s.t.Helper()
	path := filepath.Join(s.dir, "ralph.yaml")
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.Replace(string(text), old, now, 1)), 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestRealCodexOfToday: the model of codex's own choice, which writes programs that use the
// tools. It is refused once, and mends that in the same conversation; its folder is there
// already.
func TestRealCodexOfToday(t *testing.T) {
	t.Parallel()
	s := newCodexStage(t, turns(
		bash("sudo -n id"), done("claimed"), finished,
		bash("echo hi > made && git add made && git commit -qm made"), done("mended"), finished,
		done("looked"), finished, done("looked again, there is nothing to do"),
	))
	s.replace("    model: gpt-5.5\n", "")
	s.run(0, "task", "add", "Make", "--verify", "test -f made")
	s.has(s.run(0, "run"), "refused: `test -f made` exits 1", "mended", "1 task, ")
	r := s.api.Requests()
	if !strings.Contains(r[0].Body, "additional_tools") {
		t.Error("it is offered its tools as older models are")
	}
	s.has(r[1].Text, "denied by ralph (root)")
	s.has(r[3].Text, "does not hold")
	s.has(s.run(0, "session", "list", "--json"), `"agent": "codex"`, `"agent_version": "codex-cli `+codexVersion, "denied by ralph (root)",
		`"cost_known": false`) // its price is not configured
	if cost := s.api.Requests(); len(cost) != 6 {
		t.Errorf("the model was asked %d times", len(cost))
	}
	// The first session has made them in the person's folder.
	s.file(filepath.Join(s.home, ".codex", "state_5.sqlite"), "not for sessions")
	s.file(filepath.Join(s.home, ".codex", "installation_id"), "x")
	s.run(0, "task", "add", "Look")
	s.has(s.run(0, "run"), "TASK-2 merged")
}

// TestRealFallback: the limited agent rests until its reset, if it knows that. The next one begins a new session on the
// first one's work, and then the first one is back.
func TestRealFallback(t *testing.T) {
	on(t, func(t *testing.T, newStage stageMaker) {
		name := filepath.Base(t.Name())
		var reset atomic.Int64
		first, claude := 0, 0
		s := newStage(t, func(_ int, r messagesapi.Request) messagesapi.Turn {
			if r.Path == "/v1/messages" {
				claude++
				return turns(bash("cat half.txt && echo y > whole.txt"), done("made whole"))(claude-1, r)
			}
			switch first++; {
			case first == 1:
				return bash("echo x > half.txt")
			case first == 2:
				reset.Store(time.Now().Add(4 * time.Second).Unix())
				fallthrough
			case time.Now().Unix() < reset.Load():
				at := strconv.FormatInt(reset.Load(), 10)
				return messagesapi.Turn{Status: 429, Kind: "usage_limit_reached", Text: "limited", Resets: reset.Load(), Headers: map[string]string{
					"x-codex-primary-used-percent": "100", "x-codex-primary-window-minutes": "300", "x-codex-primary-reset-at": at,
				}}
			}
			return turns(bash("echo z > next.txt"), done("went on"))(first-3, r)
		})
		s.replace("use: "+name+", ", "use: "+name+", fallback: [claude], ")
		s.configure("#test: {backoff_initial: 10s}") // at least half of them
		s.run(0, "task", "add", "Make", "--verify", "test -f half.txt && test -f whole.txt")
		out := s.run(0, "run")
		s.has(out, "by "+name, "TASK-1 merged")
		if strings.Contains(out, "waiting until") {
			t.Errorf("it waited although another agent could work:\n%s", out)
		}
		s.has(s.run(0, "task", "list", "--all", "--json"), `"attempts": 1`)
		s.has(s.run(0, "session", "list", "--json"), `"agent": "claude"`, `"agent": "`+name+`"`, `"ending": "rate_limited"`)
		s.has(s.run(0, "events", "--json"), `"agent":"`+name+`"`, `"agent":"claude"`)
		waitFor(t, func() bool { return strings.Contains(s.run(0, "status", "--json"), `"agents_resting": []`) })
		s.run(0, "task", "add", "Next")
		s.has(s.run(0, "run"), "TASK-2 merged")
		if claude > 3 || first < 4 {
			t.Errorf("the first agent did not come back: claude was asked %d times, %s %d", claude, name, first)
		}
	}, "codex")
}

// TestRealCodexDone: a task end to end, with its use and cost.
func TestRealCodexDone(t *testing.T) {
	t.Parallel()
	s := newCodexStage(t, func(n int, r messagesapi.Request) messagesapi.Turn {
		switch n {
		case 0:
			return bash("echo hi > hi.txt && git add hi.txt && git commit -qm hi")
		case 1:
			return tools(say("done", map[string]any{"summary": "did it"}))
		}
		return messagesapi.Turn{Text: "Finished."}
	})
	s.run(0, "task", "add", "First", "--verify", "test -f hi.txt")
	s.has(s.run(0, "run"), "TASK-1 merging: done and verified")
	s.has(s.run(0, "task", "show", "1", "--json"), `"path": "hi.txt"`)
	s.has(s.run(0, "session", "list", "--json"), `"agent": "codex"`, `"agent_version": "codex-cli `+codexVersion, `"model": "gpt-5.5"`,
		`"output": 150`, `"cost_known": true`, `"cost_usd": 0.0`)
	if !state.Exists(filepath.Join(s.dir, "hi.txt")) {
		t.Error("what it made is not there")
	}
}

// TestRealCodexTyped: codex has no hook for input typed into a running program. It is told that it has no terminal; one
// that types all the same is stopped.
func TestRealCodexTyped(t *testing.T) {
	t.Parallel()
	use := func(name string, in map[string]any) messagesapi.Turn {
		in["yield_time_ms"] = 1000
		return tools(messagesapi.Tool{Name: name, Input: in})
	}
	id := regexp.MustCompile(`session ID (\d+)`)
	typing := func(r messagesapi.Request) messagesapi.Turn {
		if found := id.FindStringSubmatch(r.Text); found != nil {
			return use("write_stdin", map[string]any{"session_id": json.Number(found[1]), "chars": "print(open('/etc/hostname'))\n"})
		}
		return finished
	}
	python := func() messagesapi.Turn { return use("exec_command", map[string]any{"cmd": "python3 -iq", "tty": true}) }
	s := newCodexStage(t, func(n int, r messagesapi.Request) messagesapi.Turn {
		switch n {
		case 0:
			return python()
		case 1:
			return use("exec_command", map[string]any{"cmd": "sleep 30"})
		case 2:
			return typing(r)
		case 3:
			return done("tried to type")
		}
		return finished
	})
	s.run(0, "task", "add", "Type")
	s.run(5, "run", "--max-sessions", "1")
	s.has(s.api.Requests()[1].Text, "TTY execution is disabled")
	s.has(s.api.Requests()[3].Text, "stdin is closed")

	s = newCodexStage(t, func(n int, r messagesapi.Request) messagesapi.Turn {
		if n%2 == 0 {
			return python()
		}
		return typing(r)
	})
	other := filepath.Join(s.dir, "other.sh")
	s.file(other, "#!/bin/bash\nexec "+realCodex(t)+` "${@/unified_exec_tty=false/unified_exec_tty=true}"`+"\n")
	s.replace(realCodex(t), other)
	s.run(0, "task", "add", "Type")
	s.has(s.run(6, "run"), "codex did this without asking ralph first, and was stopped: typed into a program: print(open(")
}

// TestRealCodexSetsToWork: an agent that codex starts also asks for permissions, and its use counts.
func TestRealCodexSetsToWork(t *testing.T) {
	t.Parallel()
	own, its := 0, 0
	s := newCodexStage(t, func(_ int, r messagesapi.Request) messagesapi.Turn {
		if !strings.Contains(r.Text, "Your task: TASK-1") {
			its++
			return turns(bash("cd . && sudo -n id"), bash("echo x > made.txt"))(its-1, r)
		}
		own++
		return turns(
			tools(messagesapi.Tool{Name: "collaboration__spawn_agent", Input: map[string]any{"message": "m", "task_name": "helper", "fork_turns": "none"}}),
			tools(messagesapi.Tool{Name: "collaboration__wait_agent", Input: map[string]any{"timeout_ms": 60000}}),
			done("made it"))(own-1, r)
	})
	s.replace("    model: gpt-5.5\n", "")
	s.run(0, "task", "add", "Make", "--verify", "test -f made.txt")
	s.has(s.run(0, "run"), "TASK-1 merged")
	sessions := s.run(0, "session", "list", "--json")
	s.has(sessions, "denied by ralph (root)", fmt.Sprintf(`"turns": %d`, own+its), fmt.Sprintf(`"output": %d`, 50*(own+its)))
	if its != 3 {
		t.Errorf("the helper's model was asked %d times", its)
	}
	id := strings.SplitN(strings.SplitN(sessions, `"id": "`, 2)[1], `"`, 2)[0]
	s.has(s.run(0, "session", "log", id), "helper")
}

// TestRealDoctorOfAgents: each that is configured is looked at, and begins a session, without a
// word to its model.
func TestRealDoctorOfAgents(t *testing.T) {
	t.Parallel()
	s := newCodexStage(t, func(int, messagesapi.Request) messagesapi.Turn { return messagesapi.Turn{Text: "Asked."} })
	program := filepath.Join(s.dir, "mine.sh")
	s.file(program, "#!/bin/sh\n")
	s.replace("use: codex, ", "use: codex, fallback: [claude, codex], ")
	s.configure("  mine: {kind: command, command: [" + program + "]}\nsandbox: off")
	said := s.run(1, "doctor", "--no-check")
	s.has(said, "codex-cli "+codexVersion, "no credentials can be seen", "it asks ralph before it uses a tool, and is told why it may not",
		"by the prices of gpt-5.5", "a test session started, and could use ralph's tools",
		"agent claude", "2.1.197", "agent mine", "it asks nobody before it uses tools", "agents.mine.unguarded",
		"codex is to stand in for itself: agent.use and agent.fallback are codex, claude, codex")
	if strings.Count(said, "a test session started") != 2 {
		t.Errorf("claude or codex begins no session:\n%s", said)
	}
	if n := len(s.api.Requests()); n != 0 {
		t.Errorf("a model was asked %d times", n)
	}
	// One that begins none.
	s.file(program, "#!/bin/sh\n[ $1 = --version ] && echo codex-cli 9.9.9 && exit\necho no home >&2; exit 3\n")
	s.replace("mine: {kind: command", "mine: {kind: codex")
	s.has(s.run(1, "doctor", "--no-check"), "codex-cli 9.9.9", "FAIL agent mine", "ralph's tools do not reach it: Codex did nothing", ": no home")
}

// TestRealDemoWithCodex: the demo's project, with codex.
func TestRealDemoWithCodex(t *testing.T) {
	t.Parallel()
	s := newCodexStage(t, func(n int, _ messagesapi.Request) messagesapi.Turn {
		if n%2 == 0 {
			return tools(say("stuck", map[string]any{"reason": "I am a script"}))
		}
		return finished
	})
	s.first, s.environ = filepath.Dir(realCodex(t)), []string{"CODEX_API_KEY=k"}
	home := filepath.Join(s.home, ".codex", "config.toml")
	config, err := os.ReadFile(home)
	if err != nil {
		t.Fatal(err)
	}
	s.file(home, strings.Replace(string(config), `"SCRIPTED_KEY"`, `"CODEX_API_KEY"`, 1))
	said := s.run(0, "demo", "--agent", "codex", "--dir", filepath.Join(s.dir, "demo"))
	s.has(said, "by codex", "I am a script")
}
