package loop_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/loop"
	"ralph/loop/agent"
	"ralph/signals"
	"ralph/store"
)

// TestARunThatBeginsRed checks a run's reaction to a verification that fails before any work.
func TestARunThatBeginsRed(t *testing.T) {
	t.Parallel()
	const named = `echo '{"Action":"run","Package":"p","Test":"TestOld"}'; echo '{"Action":"fail","Package":"p","Test":"TestOld"}'; echo '{"Action":"fail","Package":"p"}'; exit 1`
	green := "test -e made1"
	for _, tt := range []struct {
		name    string
		verify  []string
		onRed   loop.OnRed
		strict  bool
		feature []string // commands of the last task's feature
		only    int64
		mends   int64 // the task that makes it pass; 0 is none
		status  int
		reason  string
		tasks   []int64 // the sessions' tasks
		hint    bool    // the message says that named tests would be excused
		noted   int     // how often the failure is recorded
		timeout time.Duration
	}{
		{name: "green", verify: []string{"true"}, onRed: loop.RedStop, tasks: []int64{1, 2}},
		{name: "nothing verifies", onRed: loop.RedStop, tasks: []int64{1, 2}},
		{name: "red", verify: []string{"true", green}, onRed: loop.RedStop, mends: 1, status: ralph.ExitUsage, reason: "your tests fail already; nothing was spent: `test -e made1` exits 1", hint: true, noted: 1},
		{name: "a program is missing", verify: []string{"no-such-program-of-ours"}, onRed: loop.RedStop, status: ralph.ExitUsage, reason: "your tests cannot run here; nothing was spent: `no-such-program-of-ours` exits 127", noted: 1},
		{name: "red, where nobody has chosen", verify: []string{green}, mends: 1, status: ralph.ExitUsage, reason: "nothing was spent", hint: true, noted: 1},
		{name: "red for it takes too long", verify: []string{"sleep 600"}, onRed: loop.RedStop, timeout: 10 * time.Millisecond, status: ralph.ExitUsage, reason: "nothing was spent", noted: 1},
		{name: "red by one that has no names, strictly", verify: []string{green}, onRed: loop.RedStop, strict: true, status: ralph.ExitUsage, reason: "nothing was spent", noted: 1},
		{name: "red by tests that have names", verify: []string{named}, onRed: loop.RedStop, tasks: []int64{1, 2}},
		{name: "strictly", verify: []string{named}, onRed: loop.RedStop, strict: true, status: ralph.ExitUsage, reason: "nothing was spent", noted: 1},
		{name: "red by a feature's command", verify: []string{"true"}, feature: []string{"false"}, onRed: loop.RedStop, status: ralph.ExitUsage, reason: "`false` exits 1", hint: true, noted: 1},
		{name: "which a run for another task does not need", verify: []string{"true"}, feature: []string{"false"}, only: 1, onRed: loop.RedStop, tasks: []int64{1}},
		{name: "but the one for its task", verify: []string{"true"}, feature: []string{"false"}, only: 2, onRed: loop.RedStop, status: ralph.ExitUsage, reason: "`false` exits 1", hint: true, noted: 1},
		{name: "the first task mends it", verify: []string{green}, onRed: loop.RedFirst, mends: 1, tasks: []int64{1, 2}, noted: 1},
		{name: "the first task does not, until it fails", verify: []string{green}, onRed: loop.RedFirst, status: ralph.ExitUsage, reason: "your tests still fail after TASK-1, which is failed, and the others wait for them: ", tasks: []int64{1, 1}, hint: true, noted: 2},
		{name: "no matter", verify: []string{green}, onRed: loop.RedGo, mends: 1, tasks: []int64{1, 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newWorkshop(t)
			l := b.tree(tt.verify...)
			l.OnRed, l.Check.Strict, l.Task = tt.onRed, tt.strict, tt.only
			l.Rules.VerifyFailures, l.Check.Timeout = 2, cmp.Or(tt.timeout, l.Check.Timeout)
			b.add(ralph.Task{Title: "one"})
			two := ralph.Task{Title: "two"}
			if tt.feature != nil {
				two.Feature = "f"
				b.tx(func(tx *store.Tx) error { return tx.PutFeature(ralph.Feature{Name: "f", Verify: tt.feature}) })
			}
			b.add(two)
			l.Limits = ralph.Limits{
				MaxSessions: 5, MaxTasks: 20, MaxSeconds: 3600, MaxCostUSD: 100, MaxDayCostUSD: 100, MaxMonthCostUSD: 100, SessionSeconds: 3600, IdleSeconds: 3600, SessionCostUSD: 10,
				Attempts: 10, StagnantMaximum: 20,
			}
			var tasks []int64
			var heart heart
			l.Heart = &heart
			l.Agent = deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
				tasks = append(tasks, a.TaskID)
				name := a.SessionID
				if tt.mends == a.TaskID {
					name = "made1"
				}
				write(t, filepath.Join(a.Dir, name), "x")
				_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", signals.Done{Summary: "made it"})
				return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
			})
			result, err := l.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if result.Status != tt.status || !strings.Contains(strings.Join(result.Reasons, "\n"), tt.reason) || !slices.Equal(tasks, tt.tasks) {
				t.Errorf("exit status %d after sessions on %v: %q", result.Status, tasks, result.Reasons)
			}
			if hint := strings.Contains(strings.Join(result.Reasons, "\n"), "name the failing tests"); hint != tt.hint {
				t.Errorf("it is hinted %t at tests with names: %q", hint, result.Reasons)
			}
			if noted := b.red(); len(noted) != tt.noted {
				t.Errorf("it is noted %d times: %+v", len(noted), noted)
			}
			said := strings.Count(strings.Join(heart.statuses, "\n"), "verifies the project")
			if (said > 0) != (tt.verify != nil) || said > 1 && tt.onRed != loop.RedFirst { // which verifies until it passes
				t.Errorf("it said %q", heart.statuses)
			}
		})
	}
}

// red returns the recorded failure of the verification before any work.
func (b *workshop) red() []ralph.BaselineRed {
	b.t.Helper()
	return redOf(b.t, b.db)
}

func redOf(t *testing.T, db *store.DB) (noted []ralph.BaselineRed) {
	t.Helper()
	if err := db.View(t.Context(), func(tx *store.Tx) error {
		events, err := tx.Events(0, 1000)
		for _, e := range events {
			if e.Type != ralph.EventType(ralph.BaselineRed{}) || e.TaskID != 0 {
				continue
			}
			var red ralph.BaselineRed
			if err := json.Unmarshal(e.Payload, &red); err != nil {
				return err
			}
			noted = append(noted, red)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return noted
}

// TestEarlierFailuresRunAgain, once.
func TestEarlierFailuresRunAgain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		command string
		breaks  bool // the first session leaves the file "broken"
		onRed   loop.OnRed
		status  int
		ran     [2]int // how often the command has run after each run
		noted   int
	}{
		{"people's", "false", false, loop.RedFirst, ralph.ExitLimit, [2]int{1, 2}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newWorkshop(t)
			runs := filepath.Join(t.TempDir(), "runs")
			l := b.tree("echo x >> " + runs + "; " + tt.command)
			l.OnRed, l.Rules.StuckLimit = tt.onRed, 100
			b.add(ralph.Task{Title: "one"})
			b.add(ralph.Task{Title: "two"})
			l.Limits = ralph.Limits{
				MaxSessions: 2, MaxTasks: 20, MaxSeconds: 3600, MaxCostUSD: 100, MaxDayCostUSD: 100, MaxMonthCostUSD: 100,
				SessionSeconds: 3600, IdleSeconds: 3600, SessionCostUSD: 10, Attempts: 10, StagnantMaximum: 5,
			}
			l.Agent = deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
				b.passed.Add(int64(time.Minute))
				if tt.breaks {
					write(t, filepath.Join(a.Dir, "broken"), "x")
				}
				_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", halt)
				return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
			})
			for i := range 2 {
				result, err := l.Run(t.Context())
				if err != nil || result.Status != tt.status {
					t.Errorf("run %d: %+v, %v", i+1, result, err)
				}
				marks, err := os.ReadFile(runs)
				if n := strings.Count(string(marks), "x"); err != nil || n != tt.ran[i] {
					t.Errorf("after run %d the command has run %d times, want %d, %v", i+1, n, tt.ran[i], err)
				}
			}
			if noted := b.red(); len(noted) != tt.noted {
				t.Errorf("it is noted %d times: %+v", len(noted), noted)
			}
		})
	}
}

// TestSessionsInARowThatAreLostEndARun, even of different tasks: the agent is then at fault.
func TestSessionsInARowThatAreLostEndARun(t *testing.T) {
	t.Parallel()
	lost := act{report: agent.Report{Ending: ralph.Lost, Reason: "lost: it is gone"}}
	end := act{change: true, say: []signals.Payload{finish}}
	broken, halted := act{report: agent.Report{Ending: ralph.NoWork}}, act{report: agent.Report{Ending: ralph.Interrupted, Reason: "interrupted: it was"}}
	const ten = "10 sessions in a row were lost, the last one of TASK-"
	for _, tt := range []struct {
		name     string
		tasks    int
		acts     []act
		noWait   bool
		status   int
		reason   string
		sessions int
	}{
		{"ten in a row", 3, []act{lost}, false, ralph.ExitAgent, ten, 10},
		{"with others between them that say nothing", 3, []act{lost, broken, lost, halted, lost}, false, ralph.ExitAgent, ten, 12},
		{"one that worked counts anew", 3, slices.Concat(slices.Repeat([]act{lost}, 9), []act{end, lost}), false, ralph.ExitWaiting, "waiting for people: ", 14},
		{"five of one task, which waits for a person", 1, []act{lost}, false, ralph.ExitWaiting, "waiting for people: TASK-1", 5},
		{"who does not wait ends after the first", 1, []act{lost}, true, ralph.ExitAgent, "and --no-wait: before TASK-1 is tried again (lost: it is gone; 1 in a row, 5 are the limit)", 1},
		{"a task that is lost once is tried again", 1, []act{lost, end}, false, ralph.ExitOK, "nothing is left to do", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.NoWait, b.Limits.MaxSeconds = tt.noWait, 86400
				p := b.perform(tt.acts...)
				b.add(t, []string{"one", "two", "three"}[:tt.tasks]...)
				result := b.serve(t)()
				if result.Status != tt.status || !strings.Contains(strings.Join(result.Reasons, "\n"), tt.reason) || len(p.sessions) != tt.sessions {
					t.Errorf("status %d after %d sessions: %q", result.Status, len(p.sessions), result.Reasons)
				}
			})
		})
	}
	t.Run("of a run for one task, which waits for a person", func(t *testing.T) {
		inBubble(t, func(t *testing.T, b *bench) {
			b.Task = 1
			p := b.perform(lost)
			b.add(t, "one")
			if result := b.serve(t)(); result.Status != ralph.ExitWaiting || len(p.sessions) != 5 {
				t.Errorf("got %+v after %d sessions", result, len(p.sessions))
			}
		})
	})
	t.Run("of a run for one task", func(t *testing.T) {
		inBubble(t, func(t *testing.T, b *bench) {
			b.Task = 2
			p := b.perform(lost, end)
			b.add(t, "one", "two")
			began := time.Now()
			if result := b.serve(t)(); result.Status != ralph.ExitOK || len(p.sessions) != 2 || p.sessions[0].TaskID != 2 {
				t.Errorf("got %+v after %+v", result, p.sessions)
			}
			if took := time.Since(began); took < 3*time.Second || took > 6*time.Second {
				t.Errorf("it took %s: two sessions, and a wait of a second between them", took)
			}
		})
	})
}

// TestADaemonWaitsUntilItsVerificationPasses, until either the files or the commands change.
func TestADaemonWaitsUntilItsVerificationPasses(t *testing.T) {
	t.Parallel()
	broken := errors.New("ralph.yaml: not a map")
	elsewhere := filepath.Join(t.TempDir(), "made") // the work tree does not change with it
	for _, tt := range []struct {
		name     string
		mend     func(b *bench)
		commands func() ([]string, error) // as configured later
		verified int
		starts   []string
	}{
		{"the work tree is mended", func(b *bench) { b.commit(t, "made") }, nil, 2, []string{"01 00:01"}},
		{"nobody mends it", nil, nil, 1, nil},
		{"something else is changed", func(b *bench) { b.commit(t, "other") }, nil, 2, nil},
		{"other commands are configured", nil, func() ([]string, error) { return []string{"true"}, nil }, 2, []string{"01 00:01"}},
		{"the configuration is broken meanwhile", nil, func() ([]string, error) { return nil, broken }, 1, nil},
		{"one more command is configured", nil, func() ([]string, error) { return []string{"test -e made || test -e " + elsewhere, "true"}, nil }, 2, nil},
		{"it passes by hand", func(b *bench) {
			write(t, elsewhere, "x")
			if _, _, err := b.Verify(context.Background(), 0, func(ralph.Check, io.ReadSeeker) error { return nil }); err != nil {
				t.Error(err)
			}
		}, nil, 2, []string{"01 00:01"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.Daemon, b.worker.takes = true, time.Second
				red := "test -e made || test -e " + elsewhere
				b.Check.Commands, b.Check.Timeout, b.Check.Env = []string{red}, time.Minute, os.Environ()
				b.Commands = func() ([]string, error) {
					if tt.commands != nil && time.Now().Minute() > 0 {
						return tt.commands()
					}
					return []string{red}, nil
				}
				if tt.mend != nil {
					time.AfterFunc(time.Minute, func() { tt.mend(b) })
				}
				b.add(t, "one")
				b.stopAt(3 * time.Minute)
				b.expect(t, b.serve(t)(), ralph.ExitStopped, tt.starts...)
				if noted := redOf(t, b.Store); len(noted) != 1 {
					t.Errorf("it is noted %d times: %+v", len(noted), noted)
				}
				if left, err := os.ReadDir(filepath.Join(b.Here.State, "baseline")); err != nil || len(left) > 0 {
					t.Errorf("it left %v, %v", left, err)
				}
				said := strings.Join(b.heart.statuses, "\n")
				if n := strings.Count(said, "verifies the project"); n != tt.verified || !strings.Contains(said, "\nwaiting until your tests pass: ") {
					t.Errorf("it verified %d times, and said\n%s", n, said)
				}
			})
		})
	}
}
