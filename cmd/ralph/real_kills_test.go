package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"ralph"
	"ralph/internal/tools/messagesapi"
)

// TestRealKilledAtAnyMoment kills ralph with SIGKILL while it works with the real
// CLI, every second time in the check, for which that is frozen. Nothing of a session
// is left some seconds later, and in the end each task was done once.
// RALPH_TEST_REAL_KILLS says how often.
func TestRealKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	escape := fmt.Sprintf("sleep 87654.%d", os.Getpid())
	l := newLookout(t)
	st := newStage(t, func(_ int, r messagesapi.Request) messagesapi.Turn {
		switch answered(t, r) {
		case 0:
			return bash("setsid " + escape + " >/dev/null 2>&1 & date +%N >> made.txt")
		case 1:
			return tools(say("learned", map[string]any{"text": "the port is 4711", "kind": "discovery", "scope": "project"}))
		case 2:
			if err := os.WriteFile(l.agent, nil, 0o600); err != nil {
				t.Error(err)
			}
			return done("made it")
		}
		return finished
	})
	st.configure("permissions: {writable: [" + l.dir + "]}\nverify: {commands: [\"" + l.command + "; test -f made.txt\"], on_red: go}\nlimits: {max_sessions: 1000, stagnant_sessions: 1000, max_cost_usd: 10000, max_cost_per_day_usd: 10000}\n#test: {refused: 1000}\n")
	s := &scriptedProject{t: t, dir: st.dir, env: st.command().Env}
	random, wanted, begun := chance(t), testNumber(t, "RALPH_TEST_REAL_KILLS", 2), time.Now()
	tasks, kills, frozen := 0, 0, 0
	for kills < wanted {
		if tasks == 0 {
			tasks++
			s.ralph(0, "task", "add", fmt.Sprintf("Task %d", tasks))
		}
		cmd := s.command("run")
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		still := kills%2 == 1
		killed, err := l.kill(t, cmd, random, 6*time.Second, still)
		switch {
		case killed:
			kills++
			if still {
				frozen++
			}
			wantDeserted(t, s.dir)
		case cmd.ProcessState.ExitCode() == ralph.ExitWaiting:
			s.retryLost()
		case err != nil:
			t.Fatalf("%v\n%s", err, out.String())
		default:
			tasks++
			s.ralph(0, "task", "add", fmt.Sprintf("Task %d", tasks))
		}
	}
	s.finish()
	s.sound(tasks)
	s.ralph(0, "db", "check")
	wantGone(t, escape)
	wantDeserted(t, s.dir)
	t.Logf("%d kills, %d of them while the agent was frozen; %d tasks done, in %s", kills, frozen, tasks, time.Since(begun).Round(time.Second))
}

// answered returns how many answers of the model are in the conversation so far.
func answered(t *testing.T, r messagesapi.Request) (n int) {
	var body struct{ Messages []struct{ Role string } }
	if err := json.Unmarshal([]byte(r.Body), &body); err != nil {
		t.Error(err)
	}
	for _, m := range body.Messages {
		if m.Role == "assistant" {
			n++
		}
	}
	return n
}
