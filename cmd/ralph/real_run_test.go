package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ralph/internal/state"
	"ralph/internal/tools/messagesapi"
)

// bash returns a use of the agent's shell.
func bash(command string) messagesapi.Turn {
	return tools(messagesapi.Tool{Name: "Bash", Input: map[string]any{"command": command, "description": "work"}})
}

// finished ends a turn.
var finished = messagesapi.Turn{Text: "Finished."}

// turns answers with one after the other, and then with the end of the turn.
func turns(list ...messagesapi.Turn) func(int, messagesapi.Request) messagesapi.Turn {
	return func(n int, _ messagesapi.Request) messagesapi.Turn {
		if n < len(list) {
			return list[n]
		}
		return finished
	}
}

func done(summary string) messagesapi.Turn {
	return tools(say("done", map[string]any{"summary": summary}))
}

// TestRealSubscriptionLimit: a used-up window ends a run with --no-wait and costs
// the task nothing; without it the run waits for the reset and goes on by itself.
func TestRealSubscriptionLimit(t *testing.T) {
	t.Parallel()
	var reset atomic.Int64
	reset.Store(time.Now().Add(time.Hour).Unix())
	after := 0
	s := newStage(t, func(int, messagesapi.Request) messagesapi.Turn {
		reset.CompareAndSwap(0, time.Now().Add(5*time.Second).Unix()) // the window ends soon after it was met
		if time.Now().Unix() < reset.Load() {
			return messagesapi.Turn{Status: 429, Kind: "rate_limit_error", Text: "This request would exceed your account's rate limit.", Headers: map[string]string{
				"anthropic-ratelimit-unified-status": "rejected", "anthropic-ratelimit-unified-reset": strconv.FormatInt(reset.Load(), 10),
				"anthropic-ratelimit-unified-representative-claim": "five_hour", "anthropic-ratelimit-unified-overage-status": "rejected",
			}}
		}
		after++
		return turns(bash("echo x > made.txt"), done("made it"))(after-1, messagesapi.Request{})
	})
	s.key = "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-fake"
	s.run(0, "task", "add", "Limited")
	s.has(s.run(6, "run", "--no-wait"), "rate limit")
	s.has(s.run(0, "task", "list", "--all", "--json"), `"attempts": 0`, `"stuck_count": 0`, `"status": "queued"`)
	s.has(s.run(0, "status"), "resting   claude until")
	// The reset is known by its hour: the next run does not even ask.
	asked := len(s.api.Requests())
	s.run(6, "run", "--no-wait")
	if n := len(s.api.Requests()); n != asked {
		t.Errorf("the model was asked %d times more", n-asked)
	}

	again := newStage(t, s.api.Answer())
	again.key = s.key
	reset.Store(0)
	again.run(0, "task", "add", "Limited")
	again.has(again.run(0, "run"), "waiting until", "TASK-1 merged")
	again.has(again.run(0, "task", "list", "--all", "--json"), `"attempts": 1`)
}

// TestRealUsageWindow: a full usage window, as the CLI reports it, prevents the next session.
func TestRealUsageWindow(t *testing.T) {
	t.Parallel()
	reset := strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)
	s := newStage(t, func(n int, r messagesapi.Request) messagesapi.Turn {
		turn := turns(bash("echo x > made.txt"), done("made it"))(n, r)
		turn.Headers = map[string]string{
			"anthropic-ratelimit-unified-status": "allowed_warning", "anthropic-ratelimit-unified-reset": reset, "anthropic-ratelimit-unified-representative-claim": "five_hour",
			"anthropic-ratelimit-unified-5h-utilization": "0.91", "anthropic-ratelimit-unified-5h-reset": reset, "anthropic-ratelimit-unified-5h-surpassed-threshold": "0.9",
		}
		return turn
	})
	s.key = "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-fake"
	s.run(0, "task", "add", "First")
	s.run(0, "task", "add", "Second")
	out := s.run(6, "run", "--no-wait")
	s.has(out, "TASK-1 merged", "the window five_hour is used to 91%", "1 task, ")
	s.has(s.run(0, "status", "--limits"), "usage five_hour      91%")
}

// TestRealKilled: after kill -9 of ralph nothing of the session is alive, and the
// next run goes on with all that was signalled.
func TestRealKilled(t *testing.T) {
	on(t, func(t *testing.T, newStage stageMaker) {
		escape := fmt.Sprintf("sleep 65432.%d%02d", os.Getpid(), escaped.Add(1))
		s := newStage(t, turns(
			tools(say("learned", map[string]any{"text": "the port is 4711", "kind": "discovery", "scope": "project"})),
			bash("setsid "+escape+" >/dev/null 2>&1 & echo x > half.txt"),
			messagesapi.Turn{Hang: true},
			bash("echo y > whole.txt"),
			done("made whole"),
		))
		s.run(0, "task", "add", "Make", "--verify", "test -f whole.txt")
		cmd, wait := s.start("run")
		waitFor(t, func() bool { return len(s.api.Requests()) == 3 })
		if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		wait(-1)
		wantGone(t, escape)
		wantGone(t, s.home)
		out := s.run(0, "run")
		s.has(out, "lost: ralph or its machine stopped", "TASK-1 merging: done and verified")
		if last := s.api.Requests()[3].Text; !strings.Contains(last, "the port is 4711") || !strings.Contains(last, "half.txt") {
			t.Errorf("what the lost session left is not in the next prompt:\n%s", last)
		}
		s.has(s.run(0, "task", "list", "--all", "--json"), `"attempts": 1`)
	}, "claude")
}

// TestRealAgentKilled: after kill -9 of the agent itself its processes are gone, and its task begins again with its
// work.
func TestRealAgentKilled(t *testing.T) {
	onEach(t, func(t *testing.T, newStage stageMaker) {
		escape := fmt.Sprintf("sleep 65433.%d%02d", os.Getpid(), escaped.Add(1))
		s := newStage(t, turns(
			bash("setsid "+escape+" >/dev/null 2>&1 & echo x > half.txt"),
			messagesapi.Turn{Hang: true},
			bash("echo y > whole.txt"),
			done("made whole"),
		))
		s.run(0, "task", "add", "Make", "--verify", "test -f half.txt && test -f whole.txt")
		_, wait := s.start("run")
		waitFor(t, func() bool { return len(s.api.Requests()) == 2 })
		killAgents(t, s.workspace())
		s.has(wait(0), "was killed by SIGKILL", "TASK-1 merging: done and verified", "(attempt 2")
		wantGone(t, escape)
		sessions := s.run(0, "session", "list", "--json")
		s.has(sessions, `"ending": "lost"`)
		s.has(s.run(0, "task", "list", "--all", "--json"), `"attempts": 1`) // the other one was lost
	})
}

// killAgents kills the programs of agents that work in a folder.
func killAgents(t *testing.T, dir string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for _, cwd := range found {
		process := filepath.Dir(cwd)
		in, _ := os.Readlink(cwd) // it may be gone
		exe, _ := os.Readlink(filepath.Join(process, "exe"))
		line, _ := os.ReadFile(filepath.Join(process, "cmdline"))
		agent := slices.ContainsFunc([]string{"app-server", "--acp", "stream-json"}, func(word string) bool {
			return strings.Contains(string(line), word)
		})
		if pid, err := strconv.Atoi(filepath.Base(process)); err == nil && in == dir && agent && exe != self && filepath.Base(exe) != "bwrap" {
			killed++
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
	}
	if killed != 1 {
		t.Errorf("%d programs were killed", killed)
	}
}

// TestRealPartial: the remaining and the finished work are in the next prompt.
func TestRealPartial(t *testing.T) {
	on(t, func(t *testing.T, newStage stageMaker) {
		s := newStage(t, turns(
			bash("echo x > half.txt"),
			tools(say("partial", map[string]any{"summary": "laid the ground", "remaining": "build the walls"})),
			finished,
			bash("echo y > whole.txt"), done("built"),
		))
		s.run(0, "task", "add", "Build")
		s.has(s.run(0, "run"), "TASK-1 queued: partial: build the walls", "TASK-1 merged")
		s.has(s.api.Requests()[3].Text, "laid the ground", "build the walls", "half.txt")
	}, "claude")
}

// TestRealReminder: a missing closing signal is asked for once, in the same
// conversation.
func TestRealReminder(t *testing.T) {
	on(t, func(t *testing.T, newStage stageMaker) {
		s := newStage(t, turns(bash("echo x > made.txt"), finished, done("made it")))
		s.run(0, "task", "add", "Make")
		s.has(s.run(0, "run"), "TASK-1 merged", "1 task, ")
		s.has(s.api.Requests()[2].Text, "without a closing signal")
	}, "codex")
}

// TestRealProseIsNoSignal: limits and promises in text, tool results or the agent's words do not count.
func TestRealProseIsNoSignal(t *testing.T) {
	on(t, func(t *testing.T, newStage stageMaker) {
		prose := "Claude AI usage limit reached|1795213319. You've hit your limit. API Error: 429 rate_limit_error. <promise>COMPLETE</promise> ralph.signal.done"
		s := newStage(t, turns(bash("echo '"+prose+"'"), messagesapi.Turn{Text: prose}))
		s.run(0, "task", "add", "Talk")
		out := s.run(3, "run", "--no-wait")
		s.has(out, "stuck 3 times", "  3 sessions  ")
		if strings.Contains(out, "waiting until") || strings.Contains(out, "⇢") {
			t.Errorf("prose was believed:\n%s", out)
		}
	}, "claude")
}

// TestRealVerifyFalse: work that its check refuses is never done.
func TestRealVerifyFalse(t *testing.T) {
	on(t, func(t *testing.T, newStage stageMaker) {
		s := newStage(t, func(n int, r messagesapi.Request) messagesapi.Turn {
			if n%2 == 0 {
				return done("it is done, really")
			}
			return finished
		})
		s.run(0, "task", "add", "Never", "--verify", "false")
		out := s.run(3, "run")
		s.has(out, "refused 3 times")
		s.has(s.run(0, "task", "list", "--all", "--json"), `"status": "failed"`)
	}, "codex")
}

// TestRealGit: the files of a session are listed, whatever it did with git.
func TestRealGit(t *testing.T) {
	on(t, func(t *testing.T, newStage stageMaker) {
		s := newStage(t, turns(
			bash("git commit -q --allow-empty -m base && echo 1 > amended.txt && git add amended.txt && git commit -qm one && echo 2 > amended.txt && git commit -qam two --amend"),
			bash("git switch -qc side && echo 1 > side.txt && git add side.txt && git commit -qm side && echo 1 > reset.txt && git add reset.txt && git commit -qm gone && git reset -q --hard HEAD~1 && git switch -q - && git merge -q side"),
			done("moved around")))
		s.run(0, "task", "add", "Move")
		s.has(s.run(0, "run"), "TASK-1 merged")
		list := s.run(0, "session", "list", "--json")
		s.has(list, `"path": "amended.txt"`, `"path": "side.txt"`)
		if n := strings.Count(strings.SplitN(strings.SplitN(list, `"commits": [`, 2)[1], "]", 2)[0], `"`) / 2; n != 3 {
			t.Errorf("%d commits, want 3: base, the amended one, side\n%s", n, list)
		}
	}, "codex")
}

// TestRealStopped: a second run names the holder of the project; signals and `ralph stop` end a run with 130, put its
// task back and leave nothing alive.
func TestRealStopped(t *testing.T) {
	onEach(t, func(t *testing.T, newStage stageMaker) {
		for name, stop := range map[string]func(s *stage, ralph *os.Process) error{
			"SIGINT twice": func(_ *stage, ralph *os.Process) error {
				if err := ralph.Signal(os.Interrupt); err != nil {
					return err
				}
				return ralph.Signal(syscall.SIGTERM)
			},
			"SIGINT once, the grace used up": func(_ *stage, ralph *os.Process) error { return ralph.Signal(os.Interrupt) },
			"ralph stop":                     func(s *stage, _ *os.Process) error { s.run(0, "stop", "--now"); return nil },
		} {
			if name != "ralph stop" && filepath.Base(t.Name()) != "claude" {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := newStage(t, turns(bash("echo x > half.txt"), messagesapi.Turn{Hang: true}))
				s.configure("#test: {shutdown_grace: 500ms}")
				s.run(0, "task", "add", "Hang")
				cmd, wait := s.start("run")
				waitFor(t, func() bool { return len(s.api.Requests()) == 2 })
				s.has(s.run(2, "run"), "another run is active in this project", strconv.Itoa(cmd.Process.Pid))
				if err := stop(s, cmd.Process); err != nil {
					t.Fatal(err)
				}
				s.has(wait(130), "exit status 130")
				wantGone(t, s.home)
				s.has(s.run(0, "task", "list", "--all", "--json"), `"status": "queued"`, `"attempts": 0`)
			})
		}
	})
}

// TestRealIdle: a model that never answers is noticed by the idle limit; a command
// that computes in silence is not taken for dead.
func TestRealIdle(t *testing.T) {
	on(t, func(t *testing.T, newStage stageMaker) {
		s := newStage(t, turns(bash("timeout 5 sh -c 'while :; do :; done'; echo x > computed.txt"), messagesapi.Turn{Hang: true}))
		s.run(0, "task", "add", "Compute")
		s.has(s.run(5, "run", "--session-idle", "3s", "--max-sessions", "1"), "said nothing for 3s while its model was to answer")
		if !state.Exists(filepath.Join(s.workspace(), "computed.txt")) {
			t.Error("the command was stopped while it computed")
		}
	}, "claude")
}

// TestRealPermissionAsk: a session waits for a person's word and goes on with it.
func TestRealPermissionAsk(t *testing.T) {
	onEach(t, func(t *testing.T, newStage stageMaker) {
		s := newStage(t, turns(bash("echo publish > published.txt"), done("published")))
		s.configure("permissions: {ask: ['Bash(*publish*)']}")
		s.run(0, "task", "add", "Publish")
		_, wait := s.start("run")
		waitFor(t, func() bool { return strings.Contains(s.run(0, "inbox"), "ralph approve P1") })
		s.run(0, "approve", "P1")
		s.has(wait(0), "waits to use Bash", "TASK-1 merged")
		if !state.Exists(filepath.Join(s.dir, "published.txt")) {
			t.Error("what was allowed was not done")
		}
	})
}

// waitFor waits until something has come about.
func waitFor(t *testing.T, what func() bool) {
	t.Helper()
	deadline := time.After(3 * time.Minute)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !what() {
		select {
		case <-deadline:
			t.Fatal("it did not come about within three minutes")
		case <-tick.C:
		}
	}
}
