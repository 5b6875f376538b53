package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"ralph/internal/sandbox"
	"ralph/internal/state"
	"ralph/internal/tools/messagesapi"
	"ralph/loop/agent/claude"
	"ralph/loop/gate/gatetest"
)

// claudeVersion is the version of the CLI that was measured; another one can be
// tried with RALPH_TEST_CLAUDE_VERSION.
const claudeVersion = "2.1.197"

// realClaude returns the real CLI, from RALPH_TEST_CLAUDE or installed once with npm. Without npm the test is skipped,
// unless RALPH_REQUIRE_CLAUDE is set.
func realClaude(t *testing.T) string {
	t.Helper()
	long(t)
	if path := os.Getenv("RALPH_TEST_CLAUDE"); path != "" {
		return path
	}
	path, err := installClaude(t.Context())
	if err != nil {
		if os.Getenv("RALPH_REQUIRE_CLAUDE") != "" {
			t.Fatal("the real claude is required here: ", err)
		}
		t.Skip("skipped without the real claude: ", err)
	}
	return path
}

func installClaude(ctx context.Context) (path string, err error) {
	version := claudeVersion
	if v := os.Getenv("RALPH_TEST_CLAUDE_VERSION"); v != "" {
		version = v
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "ralph-test", "claude-"+version)
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	path = filepath.Join(dir, "node_modules", "@anthropic-ai", "claude-code-"+runtime.GOOS+"-"+arch, "claude")
	return gatetest.Install(ctx, dir, path, "@anthropic-ai/claude-code@"+version)
}

// A stage is a project, ralph's binary, the real CLI and a model that follows a script.
type stage struct {
	t     *testing.T
	dir   string
	ralph string
	api   *messagesapi.Server
	home  string
	key   string // what the CLI is signed in with, as NAME=value
	first string // a folder of programs before all others

	environ []string // of ralph, besides
}

// A stageMaker makes a stage on which one agent works.
type stageMaker func(t *testing.T, answer func(n int, r messagesapi.Request) messagesapi.Turn) *stage

// backends are the agents for tests that do not depend on one.
var backends = map[string]stageMaker{"claude": newStage, "codex": newCodexStage, "gemini": newGeminiStage}

// escaped numbers the processes that agents leave running, so that no two are alike.
var escaped atomic.Int32

// onEach runs tests of each agent's own program: how it is addressed, asks, ends and is ended.
func onEach(t *testing.T, try func(t *testing.T, newStage stageMaker)) {
	t.Helper()
	on(t, try, slices.Collect(maps.Keys(backends))...)
}

// on tries something on some agents: on one of them, where the rule is ralph's and the same for all.
func on(t *testing.T, try func(t *testing.T, newStage stageMaker), names ...string) {
	t.Helper()
	t.Parallel()
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			try(t, backends[name])
		})
	}
}

func newStage(t *testing.T, answer func(n int, r messagesapi.Request) messagesapi.Turn) *stage {
	t.Helper()
	claude := realClaude(t)
	binary, err := exec.LookPath("ralph") // this program, under the name by which it is ralph; see TestMain
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, dir: t.TempDir(), home: t.TempDir(), ralph: binary, api: messagesapi.New(answer), key: "ANTHROPIC_API_KEY=fake"}
	t.Cleanup(s.api.Close)
	if err := os.WriteFile(filepath.Join(s.dir, "ralph.yaml"), []byte("agent: {command: ["+claude+"]}\n#test: {exit_grace: 5s}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.git("init", "-q", "-b", "main")
	s.commit()
	return s
}

// configure adds to ralph.yaml.
func (s *stage) configure(text string) {
	s.t.Helper()
	f, err := os.OpenFile(filepath.Join(s.dir, "ralph.yaml"), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(text + "\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// write writes files of the project.
func (s *stage) write(files map[string]string) {
	s.t.Helper()
	for name, text := range files {
		s.file(filepath.Join(s.dir, name), text)
	}
}

// file writes a file anywhere.
func (s *stage) file(path, text string) {
	s.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o700)); err != nil {
		s.t.Fatal(err)
	}
}

// commit commits the whole project: agents work on commits.
func (s *stage) commit() {
	s.t.Helper()
	s.git("add", "-A")
	s.git("commit", "-qm", "project")
}

// workspace returns the folder in which the first session works.
func (s *stage) workspace() string {
	s.t.Helper()
	return filepath.Join(stateOf(s.t, s.dir, s.command().Env), "workspaces", "1", "tree")
}

// git runs a person's git command in the project.
func (s *stage) git(args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "git", args...)
	cmd.Dir, cmd.Env = s.dir, s.command().Env
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// command is ralph in the project.
func (s *stage) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(s.t.Context(), s.ralph, args...)
	cmd.Dir = s.dir
	cmd.Env = []string{
		"PATH=" + strings.TrimPrefix(s.first+":"+os.Getenv("PATH"), ":"), "HOME=" + s.home, "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"ANTHROPIC_BASE_URL=" + s.api.URL, s.key,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
	}
	cmd.Env = append(cmd.Env, s.environ...)
	return cmd
}

// start starts ralph; wait wants its exit status and gives its output.
func (s *stage) start(args ...string) (cmd *exec.Cmd, wait func(status int) string) {
	s.t.Helper()
	var out bytes.Buffer
	cmd = s.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	return cmd, func(status int) string {
		s.t.Helper()
		var exit *exec.ExitError
		if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
			s.t.Fatal(err)
		}
		if got := cmd.ProcessState.ExitCode(); got != status {
			s.t.Fatalf("ralph %s: exit status %d, want %d\n%s", strings.Join(args, " "), got, status, out.String())
		}
		return out.String()
	}
}

// run runs ralph and wants an exit status.
func (s *stage) run(status int, args ...string) string {
	s.t.Helper()
	return wantStatus(s.t, s.command(args...), status)
}

func (s *stage) has(text string, parts ...string) {
	s.t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			s.t.Errorf("%q is not in\n%s", p, text)
		}
	}
}

func say(verb string, input map[string]any) messagesapi.Tool {
	return messagesapi.Tool{Name: claude.SignalPrefix + verb, Input: input}
}

func tools(use ...messagesapi.Tool) messagesapi.Turn { return messagesapi.Turn{Tools: use} }

// TestRealTwoTasks: two tasks end to end. The first one's learning is in the prompt of the second, and files that the
// session committed are listed.
func TestRealTwoTasks(t *testing.T) {
	onEach(t, func(t *testing.T, newStage stageMaker) {
		s := newStage(t, func(n int, r messagesapi.Request) messagesapi.Turn {
			switch n {
			case 0:
				return tools(messagesapi.Tool{Name: "Bash", Input: map[string]any{"command": "echo hi > hi.txt && git add hi.txt && git commit -qm hi", "description": "commit"}})
			case 1:
				return tools(say("learned", map[string]any{"text": "the cache lives in /var/cache", "kind": "discovery", "scope": "project"}))
			case 2, 4, 6: // the last one confirms a done without a change
				return tools(say("done", map[string]any{"summary": "did it"}))
			}
			return messagesapi.Turn{Text: "Finished."}
		})
		s.run(0, "task", "add", "First", "--verify", "test -f hi.txt")
		s.run(0, "task", "add", "Second")
		out := s.run(0, "run")
		s.has(out, "TASK-1 merging: done and verified", "TASK-2 merged")
		s.has(s.run(0, "task", "show", "1", "--json"), `"path": "hi.txt"`)
		sessions := s.run(0, "session", "list", "--json")
		s.has(sessions, `"agent": "`+filepath.Base(t.Name())+`"`, `"cost_known": true`)
		if strings.Contains(sessions, `"agent_version": ""`) || strings.Contains(sessions, `"output": 0,`) {
			t.Errorf("who worked, or what it used, is not known:\n%s", sessions)
		}
		if requests := s.api.Requests(); len(requests) < 5 || !strings.Contains(requests[4].Text, "the cache lives in /var/cache") {
			t.Errorf("the learning is not in the second prompt (%d requests)", len(requests))
		}
	})
}

// TestRealPromiseIsNotBelieved: text is never taken for a result.
func TestRealPromiseIsNotBelieved(t *testing.T) {
	on(t, func(t *testing.T, newStage stageMaker) {
		s := newStage(t, func(int, messagesapi.Request) messagesapi.Turn {
			return messagesapi.Turn{Text: "<promise>COMPLETE</promise> rate limit 429 overloaded"}
		})
		s.run(0, "task", "add", "Promise")
		out := s.run(3, "run")
		s.has(out, "stuck 3 times")
		if n := len(s.api.Requests()); n != 6 {
			t.Errorf("the model was asked %d times, want 6: three sessions, each reminded once", n)
		}
	}, "codex")
}

// TestRealRefusedDone: the failure is told in the same conversation and mended there.
func TestRealRefusedDone(t *testing.T) {
	onEach(t, func(t *testing.T, newStage stageMaker) {
		s := newStage(t, func(n int, r messagesapi.Request) messagesapi.Turn {
			switch {
			case n == 0:
				return tools(say("done", map[string]any{"summary": "claimed"}))
			case n == 2:
				return tools(messagesapi.Tool{Name: "Bash", Input: map[string]any{"command": "touch made", "description": "make it"}})
			case n == 3:
				return tools(say("done", map[string]any{"summary": "mended"}))
			}
			return messagesapi.Turn{Text: "Finished."}
		})
		s.run(0, "task", "add", "Make", "--verify", "test -f made")
		s.has(s.run(0, "run"), "refused: `test -f made` exits 1", "done and verified: mended", "1 task, ")
		if r := s.api.Requests(); !strings.Contains(r[2].Text, "does not hold") {
			t.Error("the model was not told of the refusal")
		}
	})
}

// askedAs finds how the inbox has a question answered.
var askedAs = regexp.MustCompile(`ralph answer (Q\d+) "TEXT"`)

// question names the question that waits. Its number is not sure where an agent makes the calls of one turn at once, as
// codex does.
func (s *stage) question() string {
	s.t.Helper()
	inbox := s.run(0, "inbox")
	m := askedAs.FindStringSubmatch(inbox)
	if m == nil {
		s.t.Fatalf("no question waits:\n%s", inbox)
	}
	return m[1]
}

// TestRealAsk: a blocking question parks its task; its answer is in the next prompt.
func TestRealAsk(t *testing.T) {
	on(t, func(t *testing.T, newStage stageMaker) {
		dir := make(chan string, 1)
		s := newStage(t, func(n int, r messagesapi.Request) messagesapi.Turn {
			switch n {
			case 0:
				return tools(say("ask", map[string]any{"question": "red or blue?", "blocking": true}),
					say("partial", map[string]any{"summary": "looked", "remaining": "paint"}))
			case 2:
				return tools(messagesapi.Tool{Name: "Write", Input: map[string]any{"file_path": filepath.Join(<-dir, "paint.txt"), "content": "blue"}})
			case 3:
				return tools(say("done", map[string]any{"summary": "painted"}))
			}
			return messagesapi.Turn{Text: "Finished."}
		})
		dir <- s.workspace()
		s.run(0, "task", "add", "Paint")
		s.has(s.run(4, "run"), "needs you")
		s.run(0, "answer", s.question(), "blue, of course")
		s.has(s.run(0, "run"), "TASK-1 merged")
		s.has(s.api.Requests()[2].Text, `ANSWER to your question "red or blue?": blue, of course`)
	}, "codex")
}

// TestRealPermissions: the CLI asks ralph, a refusal reaches the model with its
// reason and is listed, and the built-in rules hold.
func TestRealPermissions(t *testing.T) {
	on(t, func(t *testing.T, newStage stageMaker) {
		outside := filepath.Join("/usr", "ralph-real-test.txt")
		s := newStage(t, func(n int, r messagesapi.Request) messagesapi.Turn {
			switch n {
			case 0:
				return tools(messagesapi.Tool{Name: "Bash", Input: map[string]any{"command": "cd . && sudo -n id", "description": "be root"}})
			case 1:
				return tools(messagesapi.Tool{Name: "Write", Input: map[string]any{"file_path": outside, "content": "x"}})
			case 2:
				return tools(messagesapi.Tool{Name: "Bash", Input: map[string]any{"command": "echo fine > fine.txt", "description": "work"}})
			case 3:
				return tools(say("done", map[string]any{"summary": "did what I could"}))
			}
			return messagesapi.Turn{Text: "Finished."}
		})
		s.run(0, "task", "add", "Reach out")
		s.has(s.run(0, "run"), "TASK-1 merged")
		if state.Exists(outside) || !state.Exists(filepath.Join(s.dir, "fine.txt")) {
			t.Error("the rules did not hold, or refused what they should not")
		}
		s.has(s.api.Requests()[1].Text, "denied by ralph (root)")
		s.has(s.api.Requests()[2].Text, "denied by ralph (outside)")
		sessions := s.run(0, "session", "list", "--json")
		s.has(sessions, "sudo -n id")
		id := strings.SplitN(strings.SplitN(sessions, `"id": "`, 2)[1], `"`, 2)[0]
		s.has(s.run(0, "permission", "--session", id), "deny  (root)", "deny  (outside)", "fine.txt")
	}, "claude", "codex") // gemini has a test of its own: it cannot be told why
}

// TestRealHang: a model that never answers is a timeout, and nothing stays alive.
func TestRealHang(t *testing.T) {
	onEach(t, func(t *testing.T, newStage stageMaker) {
		escape := fmt.Sprintf("sleep 76543.%d%02d", os.Getpid(), escaped.Add(1))
		s := newStage(t, func(n int, r messagesapi.Request) messagesapi.Turn {
			if n == 0 {
				command := "setsid sh -c '>up; exec " + escape + "' >/dev/null 2>&1 & until test -e up; do sleep 0.1; done; echo started"
				return tools(messagesapi.Tool{Name: "Bash", Input: map[string]any{"command": command, "description": "escape"}})
			}
			return messagesapi.Turn{Hang: true}
		})
		s.run(0, "task", "add", "Hang")
		s.has(s.run(5, "run", "--session-timeout", "60s", "--max-sessions", "1"), "timed out after 1m0s")
		wantGone(t, escape)
		began := len(s.api.Requests()) > 1                    // on a busy machine it may not have
		if began && !strings.HasSuffix(t.Name(), "/gemini") { // which may end what it has started before it ends
			s.has(s.run(0, "session", "list", "--json"), ": "+escape+`"`)
		}
	})
}

// onEachSandbox tries the same in each sandbox that there is here. first is the folder of
// programs with which a search finds that one; "" for none.
func onEachSandbox(t *testing.T, try func(t *testing.T, name, first string)) {
	t.Helper()
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "bwrap"), []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, first := range map[string]string{sandbox.Bubblewrap: "", sandbox.Landlock: broken} {
		t.Run(name, func(t *testing.T) {
			path := strings.TrimPrefix(first+":"+os.Getenv("PATH"), ":")
			if m := sandbox.Find(t.Context(), path, sandbox.Policy{Network: true, Paths: map[string]sandbox.Access{"/": sandbox.ReadOnly}}); m.Name != name {
				t.Skipf("skipped without %s: %v", name, m.Why)
			}
			try(t, name, first)
		})
	}
}

// TestRealSandbox: the agent works in each sandbox, reaches neither ralph's state nor people's own files, and nothing
// gets out.
func TestRealSandbox(t *testing.T) {
	t.Parallel()
	onEachSandbox(t, func(t *testing.T, name, first string) {
		escape := fmt.Sprintf("sleep 76544.%d%d", os.Getpid(), len(name))
		folder := make(chan string, 1)
		s := newStage(t, func(n int, r messagesapi.Request) messagesapi.Turn {
			switch n {
			case 0:
				script := "echo x > where.txt; git add where.txt && git commit -qm where; setsid " + escape + " >/dev/null 2>&1 & " +
					"cat ~/.ssh/id " + <-folder + "/ralph.db; touch ~/new ~/.claude/settings.json; echo x > $TMPDIR/x && echo own-temp; test -w /usr || echo read-only"
				return tools(messagesapi.Tool{Name: "Bash", Input: map[string]any{"command": script, "description": "look around"}})
			case 1:
				return tools(say("done", map[string]any{"summary": "looked"}))
			}
			return messagesapi.Turn{Text: "Finished."}
		})
		s.first = first
		s.file(filepath.Join(s.home, ".ssh", "id"), "private-key")
		s.file(filepath.Join(s.home, ".claude", "settings.json"), "{}")
		s.configure("permissions: {guards: false}") // which would refuse to look
		folder <- stateOf(t, s.dir, s.command().Env)
		s.run(0, "task", "add", "Look", "--verify", "test -f where.txt && ! cat ~/.ssh/id")
		s.has(s.run(0, "run"), "sandbox: "+name, "TASK-1 merging: done and verified")
		wantGone(t, escape)
		s.has(s.run(0, "session", "list", "--json"), ": "+escape+`"`)
		said := s.api.Requests()[1].Text
		s.has(said, "own-temp", "read-only", ".ssh/id", "ralph.db")
		if strings.Contains(said, "private-key") || strings.Contains(said, "SQLite format") || state.Exists(filepath.Join(s.home, "new")) {
			t.Errorf("the agent got out:\n%s", said)
		}
		if left, err := filepath.Glob(filepath.Join(s.home, ".claude", "projects", "*", "*.jsonl")); err != nil || len(left) != 1 {
			t.Errorf("its transcripts are %v, %v", left, err)
		}
		s.has(s.run(0, "report", "-v"), "sandbox: "+name)
	})
}

// TestRealSteering: a person's words during a session reach it.
func TestRealSteering(t *testing.T) {
	onEach(t, func(t *testing.T, newStage stageMaker) {
		binary := make(chan string, 1)
		s := newStage(t, func(n int, r messagesapi.Request) messagesapi.Turn {
			switch n {
			case 0:
				path := <-binary
				wait := `echo green > paint.txt && ` + path + ` comment 1 'use green paint' && until ` + path + ` timeline 1 --json | grep -q '"delivered_at": "2'; do sleep 0.3; done`
				return tools(messagesapi.Tool{Name: "Bash", Input: map[string]any{"command": wait, "description": "a person speaks"}})
			case 1:
				return tools(say("done", map[string]any{"summary": "painted"}))
			}
			return messagesapi.Turn{Text: "Finished."}
		})
		binary <- s.ralph
		// An agent has no business with ralph's commands; here it stands for a person.
		s.configure("permissions: {guards: false}")
		s.run(0, "task", "add", "Paint")
		s.has(s.run(0, "run"), "TASK-1 merged")
		heard := false
		for _, r := range s.api.Requests() {
			heard = heard || strings.Contains(r.Text, "use green paint")
		}
		if !heard {
			t.Error("the comment did not reach the model")
		}
	})
}

// TestRealMCPBroken: without ralph's tools a session is stopped at once, tried
// again once, and the run ends.
func TestRealMCPBroken(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(int, messagesapi.Request) messagesapi.Turn { return messagesapi.Turn{Text: "Hello."} })
	s.run(0, "task", "add", "Try")
	// The server cannot start without this socket, which is missing.
	wrapper := filepath.Join(s.dir, "wrapper.sh")
	config, err := os.ReadFile(filepath.Join(s.dir, "ralph.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	claude := strings.TrimSuffix(strings.TrimPrefix(strings.SplitN(string(config), "]", 2)[0], "agent: {command: ["), "]")
	script := `#!/bin/bash
args=()
for arg; do
	case $arg in */servers.json) arg=$(sed 's,"RALPH_CHANNEL":",&/gone,' "$arg") ;; esac
	args+=("$arg")
done
exec ` + claude + ` "${args[@]}"
`
	if err := errors.Join(os.WriteFile(wrapper, []byte(script), 0o700),
		os.WriteFile(filepath.Join(s.dir, "ralph.yaml"), []byte("agent: {command: ["+wrapper+"]}\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	out := s.run(6, "run")
	s.has(out, "twice in a row", "2 sessions  ")
	s.has(s.run(0, "task", "list", "--all", "--json"), `"attempts": 0`)
}

// TestRealPromptTooLong: the budget is halved twice, then the task fails and the
// run goes on.
func TestRealPromptTooLong(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(int, messagesapi.Request) messagesapi.Turn {
		return messagesapi.Turn{Status: 400, Kind: "invalid_request_error", Text: "prompt is too long: 250000 tokens > 200000 maximum"}
	})
	s.run(0, "task", "add", "Long")
	s.has(s.run(3, "run"), "even after its budget was halved 2 times", "3 sessions  ")
}

// wantGone fails if a process with this command line is alive. It must be of
// this test only: others may run on the machine at the same time.
func wantGone(t *testing.T, commandLine string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "pgrep", "-af", commandLine)
	out, err := cmd.Output()
	if cmd.ProcessState.ExitCode() != 1 { // no process matches
		t.Errorf("still alive: %s (%v)", out, err)
	}
}
