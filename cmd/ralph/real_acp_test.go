package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ralph/internal/state"
	"ralph/internal/tools/messagesapi"
	"ralph/loop/gate/gatetest"
)

// geminiVersion is the version of the Gemini CLI that was measured.
const geminiVersion = "0.61.0"

// installed returns the script of an npm package, which is installed once.
func installed(t *testing.T, name, version, script string) string {
	t.Helper()
	long(t)
	cache, err := os.UserCacheDir()
	path := ""
	if err == nil {
		dir := filepath.Join(cache, "ralph-test", filepath.Base(name)+"-"+version)
		path, err = gatetest.Install(t.Context(), dir, filepath.Join(dir, "node_modules", ".bin", script), name+"@"+version)
	}
	if err != nil {
		if os.Getenv("RALPH_REQUIRE_CLAUDE") != "" {
			t.Fatalf("the real %s is required here: %v", script, err)
		}
		t.Skipf("skipped without the real %s: %v", script, err)
	}
	return path
}

// ready is a program, but says its version at once, which one of Node.js takes two seconds of CPU for. The first test of
// each agent has the program itself.
func ready(t *testing.T, program, version string) string {
	t.Helper()
	path := filepath.Join(filepath.Dir(program), "ready-"+filepath.Base(program))
	if state.Exists(path) {
		return path
	}
	// It appears whole: tests of other processes look at it meanwhile.
	f, err := os.CreateTemp(filepath.Dir(program), "ready-")
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(f, "#!/bin/sh\n[ \"$1\" = --version ] && exec echo %s\nexec '%s' \"$@\"\n", version, program)
	if err := errors.Join(err, f.Chmod(0o755), f.Close(), os.Rename(f.Name(), path)); err != nil {
		t.Fatal(err)
	}
	return path
}

// newGeminiStage returns a stage on which the Gemini CLI works.
func newGeminiStage(t *testing.T, answer func(n int, r messagesapi.Request) messagesapi.Turn) *stage {
	t.Helper()
	s := newStage(t, answer)
	s.replace("agent: {", "agent: {use: gemini, ")
	s.configure("agents:\n" + s.geminiAgent(ready(t, realGemini(t), geminiVersion)))
	return s
}

func realGemini(t *testing.T) string {
	t.Helper()
	return installed(t, "@google/gemini-cli", geminiVersion, "gemini")
}

// geminiAgent returns the configuration of the agent gemini, whose settings have it ask the scripted model.
func (s *stage) geminiAgent(program string) string {
	s.file(filepath.Join(s.home, ".gemini", "settings.json"), `{"security":{"auth":{"selectedType":"gemini-api-key"}},`+
		`"general":{"disableAutoUpdate":true},"privacy":{"usageStatisticsEnabled":false},"telemetry":{"enabled":false}}`)
	return "  gemini:\n    command: ['" + program + "', --acp, --skip-trust]\n    model: gemini-2.5-pro\n" +
		"    env: {GEMINI_API_KEY: k, GOOGLE_GEMINI_BASE_URL: '" + s.api.URL + "'}\n    prices: {gemini-2.5-pro: [1.25, 0.31, 10]}\n"
}

// TestRealGeminiDone: a task end to end, with its use and cost.
func TestRealGeminiDone(t *testing.T) {
	t.Parallel()
	s := newGeminiStage(t, turns(bash("echo hi > hi.txt && git add hi.txt && git commit -qm hi"), done("did it")))
	s.replace(ready(t, realGemini(t), geminiVersion), realGemini(t))
	s.run(0, "task", "add", "First", "--verify", "test -f hi.txt")
	s.has(s.run(0, "run"), "TASK-1 merging: done and verified")
	s.has(s.run(0, "session", "list", "--json"), `"agent": "gemini"`, `"agent_version": "`+geminiVersion, `"model": "gemini-2.5-pro"`,
		`"output": 150`, `"cost_known": true`)
	if shown := s.api.Requests()[0].Text; !strings.Contains(shown, "`mcp_ralph_ralph.signal.done`") {
		t.Errorf("its prompt names ralph's tools otherwise:\n%s", shown)
	}
}

// refusedThenDone returns a model that is refused a command, ends its turn, and goes on when it has heard why.
func refusedThenDone() func(n int, r messagesapi.Request) messagesapi.Turn {
	heard := 0
	return func(n int, r messagesapi.Request) messagesapi.Turn {
		if strings.Contains(r.Text, "denied by ralph (root)") {
			heard++
		}
		switch {
		case heard == 1:
			return bash("echo fine > fine.txt")
		case heard == 2:
			return done("did it in another way")
		case n == 0:
			return bash("cd . && sudo -n id")
		}
		return finished
	}
}

// TestRealGeminiRefused: why a command was refused, which it cannot be told, it is told in the
// next prompt of the same session.
func TestRealGeminiRefused(t *testing.T) {
	t.Parallel()
	s := newGeminiStage(t, refusedThenDone())
	wantRefusedThenDone(s)
}

func wantRefusedThenDone(s *stage) {
	s.t.Helper()
	s.run(0, "task", "add", "Reach out")
	s.has(s.run(0, "run"), "TASK-1 merged")
	sessions := s.run(0, "session", "list", "--json")
	s.has(sessions, `"permission_denials": [`, "sudo -n id")
	if n := strings.Count(sessions, `"attempt":`); n != 1 {
		s.t.Errorf("%d sessions instead of one:\n%s", n, sessions)
	}
	id := strings.SplitN(strings.SplitN(sessions, `"id": "`, 2)[1], `"`, 2)[0]
	s.has(s.run(0, "permission", "--session", id), "deny  (root)")
}

// TestRealGeminiWithoutTools: it says nothing of a server of tools that does not start; that ralph
// knows from its own side.
func TestRealGeminiWithoutTools(t *testing.T) {
	t.Parallel()
	s := newGeminiStage(t, func(int, messagesapi.Request) messagesapi.Turn { return messagesapi.Turn{Text: "Hello."} })
	gemini := ready(t, realGemini(t), geminiVersion)
	wrapper := filepath.Join(s.dir, "wrapper.sh")
	s.file(wrapper, "#!/bin/sh\n[ $1 = --version ] && exec "+gemini+" --version\n"+
		`sed -u 's,"RALPH_CHANNEL"\,"value":",&/gone,' | `+gemini+` "$@"`+"\n")
	s.replace(gemini, wrapper)
	s.run(0, "task", "add", "Try")
	s.has(s.run(6, "run"), "twice in a row: Gemini CLI was not told ralph's tools", "2 sessions  ")
	s.has(s.run(0, "session", "list", "--json"), `"ending": "mcp_failed"`)
	s.has(s.run(0, "task", "list", "--all", "--json"), `"attempts": 0`)
}

// others are the agents that are tried where RALPH_TEST_AGENTS names them or is all: as they are installed, and
// pointed to a scripted API.
var others = map[string]struct {
	pkg, version, script string
	args                 []string
	model                string
	env                  func(url string) map[string]string
}{
	"opencode": {"opencode-ai", "1.18.33", "../opencode-linux-x64/bin/opencode", []string{"acp"}, "fake/m", func(url string) map[string]string {
		return map[string]string{
			"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
			"OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
			"OPENCODE_CONFIG_CONTENT": `{"model":"fake/m","provider":{"fake":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"` + url +
				`/v1","apiKey":"k"},"models":{"m":{"cost":{"input":3,"output":15,"cache_read":0.3},"limit":{"context":200000,"output":8000}}}}}}`,
		}
	}},
	"copilot": {"@github/copilot", "1.0.102", "copilot", []string{"--acp"}, "m", func(url string) map[string]string {
		return map[string]string{
			"COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_BASE_URL": url + "/v1", "COPILOT_PROVIDER_TYPE": "openai",
			"COPILOT_PROVIDER_API_KEY": "k", "COPILOT_MODEL": "m",
		}
	}},
	"qwen": {"@qwen-code/qwen-code", "0.15.10", "qwen", []string{"--acp", "--auth-type", "openai"}, "m", func(url string) map[string]string {
		return map[string]string{"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": url + "/v1", "OPENAI_MODEL": "m"}
	}},
	"claude-agent-acp": {"@agentclientprotocol/claude-agent-acp", "0.49.0", "claude-agent-acp", nil, "", func(url string) map[string]string {
		return map[string]string{"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "fake", "IS_SANDBOX": "1"}
	}},
}

// newOtherStage returns a stage on which one of them works.
func newOtherStage(t *testing.T, name string, answer func(n int, r messagesapi.Request) messagesapi.Turn) *stage {
	t.Helper()
	a := others[name]
	program := ready(t, installed(t, a.pkg, a.version, a.script), a.version)
	s := newStage(t, answer)
	s.replace("agent: {", "agent: {use: "+name+", ")
	text := "agents:\n  " + name + ":\n    command: [" + strings.Join(append([]string{program}, a.args...), ", ") + "]\n    env:\n"
	for key, value := range a.env(s.api.URL) {
		text += "      " + key + ": '" + value + "'\n"
	}
	if a.model != "" {
		text += "    model: " + a.model + "\n"
	}
	s.configure(text + "    prices: {m: [3, 0.3, 15]}")
	return s
}

// otherNames returns the other agents that are tried.
func otherNames() []string {
	chosen := os.Getenv("RALPH_TEST_AGENTS")
	return slices.DeleteFunc(slices.Sorted(maps.Keys(others)), func(name string) bool {
		return chosen != "all" && !slices.Contains(strings.Split(chosen, ","), name)
	})
}

// TestOtherAgents: done, and a refused permission, with agents that are too large for every run.
func TestOtherAgents(t *testing.T) {
	t.Parallel()
	if len(otherNames()) == 0 {
		t.Skip("skipped: RALPH_TEST_AGENTS names none of them")
	}
	for _, name := range otherNames() {
		a := others[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Run("done", func(t *testing.T) {
				s := newOtherStage(t, name, turns(bash("echo hi > hi.txt && git add hi.txt && git commit -qm hi"), done("did it")))
				program := installed(t, a.pkg, a.version, a.script)
				s.replace(ready(t, program, a.version), program)
				s.run(0, "task", "add", "First", "--verify", "test -f hi.txt")
				s.has(s.run(0, "run"), "TASK-1 merging: done and verified")
				sessions := s.run(0, "session", "list", "--json")
				s.has(sessions, `"agent": "`+name+`"`, `"agent_version": "`+a.version, `"cost_known": true`)
				if strings.Contains(sessions, `"output": 0,`) {
					t.Errorf("its tokens are not known:\n%s", sessions)
				}
			})
			t.Run("refused", func(t *testing.T) { wantRefusedThenDone(newOtherStage(t, name, refusedThenDone())) })
		})
	}
}
