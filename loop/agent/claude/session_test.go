package claude_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"ralph"
	"ralph/loop/agent"
	"ralph/loop/agent/claude"
	"ralph/loop/agent/process"
)

// fake returns an agent whose program is one of the fakes.
func fake(name string, change ...func(*claude.Options)) *claude.Agent {
	o := claude.Options{Options: process.Options{
		Command:    []string{os.Args[0]},
		MCPCommand: []string{"false"},
		Env:        map[string]string{fakeEnv: name, "GORACE": "atexit_sleep_ms=0"},
		ExitGrace:  time.Minute,
		KillGrace:  time.Minute,
	}}
	for _, c := range change {
		c(&o)
	}
	return claude.New(o)
}

// impatient does not wait for an agent to end.
func impatient(o *claude.Options) { o.ExitGrace, o.KillGrace = time.Millisecond, 10*time.Millisecond }

// interrupting interrupts an agent at once, and then waits for its end.
func interrupting(o *claude.Options) { o.ExitGrace, o.KillGrace = time.Millisecond, time.Minute }

// assignment returns a minimal task.
func assignment(t *testing.T) agent.Assignment {
	return agent.Assignment{
		SessionID: uuid.NewString(),
		TaskID:    7, Prompt: "the prompt", Dir: t.TempDir(), LogDir: t.TempDir(),
		TurnEnded: func(context.Context, agent.Turn) agent.Answer { return agent.Answer{} },
	}
}

// run runs the agent, and fails the test if that was impossible.
func run(t *testing.T, a agent.Agent, task agent.Assignment) agent.Report {
	t.Helper()
	r, err := a.Work(t.Context(), task)
	if err != nil {
		t.Fatalf("%v (%s: %s)", err, r.Ending, r.Reason)
	}
	return r
}

// texts collects the agent's words.
func texts(into *[]string) func(agent.Event) {
	return func(e agent.Event) {
		if e.Kind == agent.Said {
			*into = append(*into, e.Text)
		}
	}
}

func TestSessions(t *testing.T) {
	tests := []struct {
		fake   string
		change func(*claude.Options)
		ending ralph.Ending
		exit   int // -1: none
		reason string
	}{
		{"polite", nil, ralph.Finished, 0, "ended its turn"},
		{"talkative", nil, ralph.Finished, 0, "ended its turn"},
		{"stubborn", impatient, ralph.Finished, -1, "ended its turn"},
		{"apologetic", interrupting, ralph.Finished, 1, "ended its turn"},
		{"incurious", nil, ralph.Finished, 0, "ended its turn"},
		{"complaining", nil, ralph.Finished, 0, "ended its turn"},
		{"absent", nil, ralph.NoWork, 3, "unknown option '--verbose'"},
		{"broken", nil, ralph.NoWork, 0, "[1,2]"},
		{"mute", impatient, ralph.Lost, -1, "closed its output"},
		{"crashing", nil, ralph.Lost, -1, "killed by SIGKILL"},
		{"limited", nil, ralph.RateLimited, 1, "slow"},
	}
	for _, tt := range tests {
		t.Run(tt.fake, func(t *testing.T) {
			var options []func(*claude.Options)
			if tt.change != nil {
				options = append(options, tt.change)
			}
			task := assignment(t)
			task.Prompt = strings.Repeat("a prompt longer than a pipe holds. ", 1<<15)
			r := run(t, fake(tt.fake, options...), task)
			exit := -1
			if r.Exit != nil {
				exit = *r.Exit
			}
			if r.Ending != tt.ending || exit != tt.exit || !strings.Contains(r.Reason, tt.reason) {
				t.Errorf("got %s, exit %d: %s\nwant %s, exit %d: …%s…", r.Ending, exit, r.Reason, tt.ending, tt.exit, tt.reason)
			}
		})
	}
}

func TestTheConversationGoesOnAsLongAsTheLoopSpeaks(t *testing.T) {
	task := assignment(t)
	var said []string
	task.Seen = texts(&said)
	answers := []string{"again", "/once more", ""}
	task.TurnEnded = func(context.Context, agent.Turn) agent.Answer {
		a := answers[0]
		answers = answers[1:]
		return agent.Say(a)
	}
	r := run(t, fake("polite"), task)
	if want := []string{"the prompt", "again", "\n/once more"}; !slices.Equal(said, want) {
		t.Errorf("it heard %q, want %q", said, want)
	}
	if r.Turns != 3 || !r.CostKnown || r.CostUSD != 0.5 || r.ToolCalls != 3 {
		t.Errorf("got %+v", r)
	}
}

func TestTheLimitOfTurnsCoversTheWholeConversation(t *testing.T) {
	task := assignment(t)
	task.MaxTurns = 2
	task.TurnEnded = func(context.Context, agent.Turn) agent.Answer { return agent.Say("go on") }
	if r := run(t, fake("polite"), task); r.Ending != ralph.TimedOut || r.Turns != 2 {
		t.Errorf("got %s after %d turns: %s", r.Ending, r.Turns, r.Reason)
	}
}

func TestTurnEndedIsNotCalledForAFailure(t *testing.T) {
	task := assignment(t)
	task.TurnEnded = func(context.Context, agent.Turn) agent.Answer {
		t.Error("TurnEnded was called")
		return agent.Answer{}
	}
	run(t, fake("limited"), task)
	run(t, fake("crashing"), task)
}

func TestAPersonIsHeardDuringATurn(t *testing.T) {
	for _, name := range []string{"late", "silent", "lossy"} {
		t.Run(name, func(t *testing.T) {
			task := assignment(t)
			var mu sync.Mutex
			var said []string
			say := make(chan agent.Message, 1)
			task.Say = say
			sent, delivered := false, 0
			task.Seen = func(e agent.Event) {
				mu.Lock()
				texts(&said)(e)
				mu.Unlock()
				if e.Kind == agent.Ran && !sent {
					sent = true
					say <- agent.Message{Text: "careful", Delivered: func() { delivered++ }}
				}
			}
			asked := 0
			task.TurnEnded = func(context.Context, agent.Turn) agent.Answer {
				mu.Lock()
				defer mu.Unlock()
				asked++
				said = append(said, "(turn ended)")
				return agent.Answer{}
			}
			var options []func(*claude.Options)
			if name == "lossy" {
				options = append(options, impatient)
			}
			run(t, fake(name, options...), task)
			if delivered != 1 || asked != 1 {
				t.Errorf("delivered %d times, TurnEnded called %d times", delivered, asked)
			}
			if name == "late" && !slices.Equal(said, []string{"careful", "(turn ended)"}) {
				t.Errorf("it heard %q", said)
			}
		})
	}
}

func TestAMessageDuringACheckStartsATurn(t *testing.T) {
	task := assignment(t)
	var said []string
	task.Seen = texts(&said)
	say := make(chan agent.Message)
	task.Say = say
	asked := 0
	task.TurnEnded = func(context.Context, agent.Turn) agent.Answer {
		if asked++; asked == 1 {
			say <- agent.Message{Text: "one more thing"}
		}
		return agent.Answer{}
	}
	run(t, fake("polite"), task)
	if want := []string{"the prompt", "one more thing"}; !slices.Equal(said, want) || asked != 2 {
		t.Errorf("it heard %q and TurnEnded was called %d times", said, asked)
	}
}

func TestAnAgentThatDoesNotReadIsNotWaitedFor(t *testing.T) {
	task := assignment(t)
	task.Prompt = strings.Repeat("a prompt longer than a pipe holds. ", 1<<15)
	asked := 0
	task.TurnEnded = func(context.Context, agent.Turn) agent.Answer { asked++; return agent.Say("are you there?") }
	if r := run(t, fake("absorbed", impatient), task); r.Ending != ralph.Finished || asked != 1 {
		t.Errorf("got %s (%s), TurnEnded called %d times", r.Ending, r.Reason, asked)
	}
}

func TestAnInterruptedSession(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	task := assignment(t)
	task.Seen = func(e agent.Event) {
		if e.Kind == agent.Ran {
			cancel()
		}
	}
	r, err := fake("parental").Work(ctx, task)
	if err != nil {
		t.Fatal(err)
	}
	if r.Ending != ralph.Interrupted || r.Exit == nil || *r.Exit != 1 || r.CostUSD != 0.25 {
		t.Errorf("got %+v", r)
	}
	if len(r.Leftovers) != 1 || !strings.Contains(r.Leftovers[0], "sleep 1000") {
		t.Errorf("leftovers: %q", r.Leftovers)
	}
}

func TestAnAgentThatTalksForeverIsStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	task := assignment(t)
	lines := 0
	task.Seen = func(agent.Event) {
		if lines++; lines == 10000 {
			cancel()
		}
	}
	r, err := fake("chatty", impatient, func(o *claude.Options) { o.MaxTranscript = 1 << 20 }).Work(ctx, task)
	if err != nil || r.Ending != ralph.Interrupted || r.Unreadable < 9000 {
		t.Errorf("got %s, %d lines, %v", r.Ending, r.Unreadable, err)
	}
	b, err := os.ReadFile(filepath.Join(task.LogDir, agent.TranscriptFile))
	if err != nil || len(b) > 1<<20+100 || !strings.Contains(string(b), "transcript_full\"}\n") || strings.HasSuffix(string(b), "transcript_full\"}\n") {
		t.Errorf("the transcript has %d bytes, %v", len(b), err)
	}
}

func TestASessionWithoutItsToolsIsStopped(t *testing.T) {
	task := assignment(t)
	task.Channel.Socket = "/c/mcp"
	r := run(t, fake("serverless"), task)
	const want = "the MCP server ralph is \"failed\": the agent cannot start `false`, or that does not reach the run at /c/mcp"
	if r.Ending != ralph.MCPFailed || r.Reason != want {
		t.Errorf("got %s: %s", r.Ending, r.Reason)
	}
}

// TestAnAgentThatIsKilledAtItsEnd had ended its turn before: its signals and cost stay the same, and its leftover
// processes are named.
func TestAnAgentThatIsKilledAtItsEnd(t *testing.T) {
	task := assignment(t)
	turns := 0
	task.TurnEnded = func(ctx context.Context, turn agent.Turn) agent.Answer {
		if turns++; turns == 1 {
			return agent.Say("go on")
		}
		killed, err := turn.Process.Prune(ctx, turn.Keep)
		if errors.Is(err, errors.ErrUnsupported) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(killed) != 1 || !strings.Contains(killed[0].Command, "sleep") {
			t.Errorf("killed %v, want what its turn had left", killed)
		}
		if err := turn.Process.Kill(); err != nil {
			t.Error(err)
		}
		return agent.Answer{Over: true}
	}
	r := run(t, fake("repentant"), task)
	if r.Ending != ralph.Finished || !r.CostKnown || r.Turns != 2 || r.ToolCalls != 2 || len(r.Leftovers) != 0 {
		t.Errorf("got %+v", r)
	}
}

func TestStderrIsBounded(t *testing.T) {
	task := assignment(t)
	r := run(t, fake("complaining"), task)
	b, err := os.ReadFile(filepath.Join(task.LogDir, process.StderrFile))
	if err != nil || len(b) > 2<<20 {
		t.Errorf("%d bytes were kept, %v", len(b), err)
	}
	for _, s := range []string{string(b), r.StderrTail} {
		if !strings.HasSuffix(s, "the last complaint\n") {
			t.Errorf("the end is %q", s[max(0, len(s)-50):])
		}
	}
}

func TestAProgramThatCannotBeStarted(t *testing.T) {
	t.Run("does not exist", func(t *testing.T) {
		a := claude.New(claude.Options{Options: process.Options{Command: []string{"no-such-claude"}, MCPCommand: []string{"x"}, Env: map[string]string{"ANTHROPIC_API_KEY": "s3cret"}}})
		_, err := a.Work(t.Context(), assignment(t))
		if !errors.Is(err, exec.ErrNotFound) || !strings.Contains(err.Error(), "agent.command") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("has nowhere to log to", func(t *testing.T) {
		task := assignment(t)
		task.LogDir = filepath.Join(task.LogDir, "missing")
		if _, err := fake("polite").Work(t.Context(), task); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("was stopped before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := fake("polite").Work(ctx, assignment(t)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

func TestTheTranscriptIsTheOutput(t *testing.T) {
	task := assignment(t)
	run(t, fake("broken"), task)
	b, err := os.ReadFile(filepath.Join(task.LogDir, agent.TranscriptFile))
	if want := "TypeError: undefined is not a function\n[1,2]\n"; err != nil || string(b) != want {
		t.Errorf("got %q, %v", b, err)
	}
}

func TestSalvage(t *testing.T) {
	task := assignment(t)
	a := fake("crashing")
	run(t, a, task)
	r, err := a.Salvage(task.LogDir, agent.Unseen)
	if err != nil || r.ToolCalls != 1 || r.CostUSD < 3 || r.CostKnown || r.Version != "2.1.197" {
		t.Errorf("got %+v, %v", r, err)
	}
	if r, err := a.Salvage(t.TempDir(), agent.Unseen); err != nil || r.Ending != "" {
		t.Errorf("of a session that never began: %+v, %v", r, err)
	}
}

func TestTheAgentIsStartedWithItsArgumentsAndEnvironment(t *testing.T) {
	task := assignment(t)
	task.MaxCost = 2.5
	var said []string
	task.Seen = texts(&said)
	a := fake("environment", func(o *claude.Options) {
		o.Environ = []string{"PATH=/bin", "CLAUDECODE=1", "RALPH_SECRET=x", "ANTHROPIC_API_KEY=k"}
		o.ExtraArgs = []string{"--effort", "high"}
	})
	run(t, a, task)
	lines := strings.Split(strings.Join(said, "\n"), "\n")
	for _, want := range []string{"PATH=/bin", "ANTHROPIC_API_KEY=k", "RALPH_TASK_ID=7", "RALPH_SESSION_ID=" + task.SessionID, "--max-budget-usd", "2.5", "--effort", "high"} {
		if !slices.Contains(lines, want) {
			t.Errorf("it does not have %q", want)
		}
	}
	for _, line := range lines {
		if strings.HasPrefix(line, "CLAUDECODE=") || strings.HasPrefix(line, "RALPH_SECRET=") {
			t.Errorf("it has %q", line)
		}
	}
}
