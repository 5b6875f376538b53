package loop_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ralph"
	"ralph/loop/agent"
	"ralph/signals"
	"ralph/store"
)

// A shift is an agent whose session on a task takes as many minutes as are planned for it (one, if none are),
// and changes something unless the task is idle.
type shift struct {
	t       *testing.T
	b       *bench
	minutes map[int64]int
	idle    map[int64]bool
	says    map[int64]signals.Payload // a partial if it is idle, and a done if not
	costs   float64                   // of each session, in USD

	mu    sync.Mutex
	tasks []int64 // of the sessions, in the order in which they began
}

func (s *shift) Work(ctx context.Context, a agent.Assignment) (agent.Report, error) {
	s.mu.Lock()
	s.tasks = append(s.tasks, a.TaskID)
	s.mu.Unlock()
	select {
	case <-time.After(time.Duration(max(s.minutes[a.TaskID], 1)) * time.Minute):
	case <-ctx.Done():
		return agent.Report{Ending: ralph.Interrupted, CostKnown: true}, nil
	}
	say := signals.Payload(halt)
	if !s.idle[a.TaskID] {
		write(s.t, filepath.Join(a.Dir, a.SessionID), "")
		say = finish
	}
	if planned := s.says[a.TaskID]; planned != nil {
		say = planned
	}
	_, err := s.b.Store.Say(ctx, a.TaskID, a.SessionID, "agent", say)
	return agent.Report{Ending: ralph.Finished, CostUSD: s.costs, CostKnown: true}, err
}

func (*shift) Salvage(string, agent.Death) (agent.Report, error) { return agent.Report{}, nil }

// shift makes the bench's agent a shift, in so many sessions, with so many tasks.
func (b *bench) shift(t *testing.T, jobs, tasks int) *shift {
	t.Helper()
	s := &shift{t: t, b: b, minutes: map[int64]int{}, idle: map[int64]bool{}, says: map[int64]signals.Payload{}}
	b.Agent, b.Parallel = s, jobs
	b.Limits.MaxSeconds, b.Rules.StuckLimit = 1e6, 100
	b.add(t, slices.Repeat([]string{"A"}, tasks)...)
	return s
}

// doing returns the state of the last run, and why.
func (b *bench) doing(t *testing.T) (run ralph.Run) {
	t.Helper()
	b.tx(t, func(tx *store.Tx) (err error) { run, _, err = tx.LastRun(); return err })
	return run
}

// asks sends a request to the run after some time, as people do.
func (b *bench) asks(t *testing.T, after time.Duration, control string) {
	t.Helper()
	time.AfterFunc(after, func() { b.tx(t, func(tx *store.Tx) error { return tx.Control(control) }) })
}

// TestARunThatHasDecidedToEndSaysSo while other sessions work, and goes on if people want it to.
func TestARunThatHasDecidedToEndSaysSo(t *testing.T) {
	t.Parallel()
	const stagnant = "the sessions of 1 task in a row changed nothing; it waits for TASK-2"
	for _, tt := range []struct {
		name   string
		plan   func(*testing.T, *bench, *shift)
		at     time.Duration
		state  string // at that time
		why    string
		status int
		tasks  []int64
	}{
		{
			"and ends", func(*testing.T, *bench, *shift) {}, 5 * time.Minute,
			"ending", stagnant + "; queued and left: 3 tasks; `ralph resume` goes on", ralph.ExitLimit,
			[]int64{1, 2},
		},
		{
			"and waits for the second of three, then for the third", func(_ *testing.T, b *bench, s *shift) {
				b.Parallel, s.minutes[3] = 3, 20
			}, 15 * time.Minute, "ending",
			"the sessions of 1 task in a row changed nothing; it waits for TASK-3; queued and left: 2 tasks; `ralph resume` goes on",
			ralph.ExitLimit,
			[]int64{1, 2, 3},
		},
		{
			"and goes on", func(t *testing.T, b *bench, s *shift) {
				b.asks(t, 5*time.Minute, ralph.ControlNone)
			}, 5*time.Minute + 30*time.Second, "running", "", ralph.ExitLimit, []int64{1, 1, 2},
		},
		{
			"and goes on after a stop, whose grace is over then for nobody", func(t *testing.T, b *bench, s *shift) {
				s.idle[1], b.Session.Grace = false, 3*time.Minute
				b.asks(t, 90*time.Second, ralph.ControlStop)
				b.asks(t, 4*time.Minute, ralph.ControlNone)
			}, 10 * time.Minute, "running", "", ralph.ExitOK, []int64{1, 2, 3, 4},
		},
		{
			"and says whom it stops after", func(t *testing.T, b *bench, s *shift) {
				s.idle[1], b.Session.Grace = false, time.Hour
				b.asks(t, 30*time.Second, ralph.ControlStop)
			}, 5 * time.Minute, "ending",
			"stopped by `ralph stop`; it waits for TASK-2; queued and left: 2 tasks; `ralph resume` goes on", ralph.ExitStopped,
			[]int64{1, 2},
		},
		{
			"and offers nothing where a limit stays", func(_ *testing.T, b *bench, s *shift) {
				s.idle[1], s.costs, b.Limits.MaxCostUSD = false, 5, 5
			}, 5 * time.Minute, "ending",
			"the limit of $5.00 per run is reached ($5.00 spent); it waits for TASK-2; queued and left: 2 tasks", ralph.ExitLimit,
			[]int64{1, 2},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				s := b.shift(t, 2, 4)
				s.idle[1], s.minutes[2], b.Limits.StagnantMaximum = true, 12, 1
				tt.plan(t, b, s)
				var then ralph.Run
				time.AfterFunc(tt.at, func() { then = b.doing(t) })
				result := b.serve(t)()
				if then.State != tt.state || then.StateReason != tt.why {
					t.Errorf("it was %s: %q", then.State, then.StateReason)
				}
				slices.Sort(s.tasks)
				if result.Status != tt.status || !slices.Equal(s.tasks, tt.tasks) {
					t.Errorf("status %d (%q), sessions on %v", result.Status, result.Reasons, s.tasks)
				}
			})
		})
	}
}

// TestABadTaskEndsNoNight: tasks that change nothing use up their own attempts, and the others are done.
func TestABadTaskEndsNoNight(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bench) {
		s := b.shift(t, 1, 22)
		s.idle[1], s.idle[2] = true, true
		b.Limits.StagnantMaximum, b.Limits.Attempts, b.Rules.Attempts = 5, 3, 3
		result := b.serve(t)()
		if want := append([]int64{1, 1, 1, 2, 2, 2}, s.tasks[6:]...); !slices.Equal(s.tasks, want) || len(s.tasks) != 26 {
			t.Errorf("sessions on %v", s.tasks)
		}
		if result.Status != ralph.ExitFailed || b.status(t, 1) != ralph.Failed || b.status(t, 22) != ralph.Completed {
			t.Errorf("status %d (%q); TASK-1 is %s, TASK-22 %s", result.Status, result.Reasons, b.status(t, 1), b.status(t, 22))
		}
	})
}

func (b *bench) status(t *testing.T, id int64) (status ralph.Status) {
	t.Helper()
	b.tx(t, func(tx *store.Tx) error {
		task, err := tx.Task(id)
		status = task.Status
		return err
	})
	return status
}

// TestPeopleAreWarnedBeforeARunEnds because nothing changes: from the third task of five on.
func TestPeopleAreWarnedBeforeARunEnds(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bench) {
		s := b.shift(t, 1, 9)
		for id := range int64(9) {
			s.idle[id+1] = true
		}
		b.Limits.StagnantMaximum, b.Limits.Attempts, b.Rules.Attempts = 5, 1, 1
		var said []string
		for n := range 5 {
			time.AfterFunc(time.Duration(n)*time.Minute+30*time.Second, func() { said = append(said, b.doing(t).StateReason) })
		}
		result := b.serve(t)()
		want := []string{
			"", "", "", "3 tasks in a row changed nothing (TASK-1, TASK-2, TASK-3); the run ends at 5",
			"4 tasks in a row changed nothing (TASK-1, TASK-2, TASK-3, TASK-4); the run ends at 5",
		}
		if diff := cmp.Diff(want, said); diff != "" {
			t.Error(diff)
		}
		if result.Status != ralph.ExitLimit || result.Reasons[0] != "the sessions of 5 tasks in a row changed nothing" || len(s.tasks) != 5 {
			t.Errorf("status %d (%q) after %d sessions", result.Status, result.Reasons, len(s.tasks))
		}
	})
}

// TestWhatComesBetweenTwoTasksThatChangeNothing: only a session that changes something
// shows that the run gets on.
func TestWhatComesBetweenTwoTasksThatChangeNothing(t *testing.T) {
	t.Parallel()
	idle, end := act{say: []signals.Payload{halt}}, act{change: true, say: []signals.Payload{finish}}
	ended := func(e ralph.Ending) act { return act{report: agent.Report{Ending: e, Reason: "why"}} }
	for _, tt := range []struct {
		name    string
		between act
		status  int
	}{
		{"a change", end, ralph.ExitFailed},
		{"an agent that cannot work", ended(ralph.NoWork), ralph.ExitLimit},
		{"an interruption", ended(ralph.Interrupted), ralph.ExitLimit},
		{"a loss", ended(ralph.Lost), ralph.ExitLimit},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.Limits.StagnantMaximum, b.Limits.Attempts, b.Rules.Attempts = 2, 1, 1
				b.perform(idle, tt.between, idle, end)
				b.add(t, "one", "two", "three")
				if result := b.serve(t)(); result.Status != tt.status {
					t.Errorf("status %d (%q), want %d", result.Status, result.Reasons, tt.status)
				}
			})
		})
	}
}

// TestARefusedDoneIsNoStagnation if it has changed something.
func TestARefusedDoneIsNoStagnation(t *testing.T) {
	t.Parallel()
	for _, changes := range []bool{true, false} {
		t.Run(fmt.Sprint("with changes ", changes), func(t *testing.T) {
			b := newWorkshop(t)
			l := b.tree("! test -e broken")
			l.Limits = ralph.Limits{
				MaxSessions: 9, MaxTasks: 9, MaxSeconds: 3600, MaxCostUSD: 1, MaxDayCostUSD: 1, MaxMonthCostUSD: 1, SessionSeconds: 3600, IdleSeconds: 3600,
				SessionCostUSD: 1, Attempts: 1, StagnantMaximum: 1,
			}
			for range 3 {
				b.add(ralph.Task{Title: "A"})
			}
			l.Rules.Attempts = 1
			l.Agent = deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
				say := signals.Payload(halt)
				if changes {
					write(t, filepath.Join(a.Dir, "broken"), a.SessionID)
					say = finish
				}
				_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", say)
				return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
			})
			result, err := l.Run(t.Context())
			if stagnant := strings.Contains(strings.Join(result.Reasons, "; "), "changed nothing"); err != nil || stagnant == changes {
				t.Errorf("it ended for %q (%v)", result.Reasons, err)
			}
		})
	}
}

// TestResultsOfOneMomentEndARun: the first of them ends it, and those after it are not waited for again.
func TestResultsOfOneMomentEndARun(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bench) {
		b.Parallel = 3
		b.add(t, "one", "two", "three")
		b.Agent = deed(func(context.Context, agent.Assignment) (agent.Report, error) {
			time.Sleep(time.Minute)
			return agent.Report{Ending: ralph.NoWork, Reason: "it is not logged in", CostKnown: true}, nil
		})
		b.NoWait = true
		began := time.Now()
		if result := b.serve(t)(); result.Status != ralph.ExitAgent || time.Since(began) > 3*time.Minute {
			t.Errorf("status %d (%q) after %s", result.Status, result.Reasons, time.Since(began))
		}
	})
}

// TestARunThatIsStoppedAtOnceNamesAllReasons: also those of the sessions that end with it, or the failure of one.
func TestARunThatIsStoppedAtOnceNamesAllReasons(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		fails error
		want  []string
	}{
		{nil, []string{"stopped by a signal", "the agent's credentials were refused: expired"}},
		{errors.New("no memory"), []string{"no memory"}},
	} {
		inBubble(t, func(t *testing.T, b *bench) {
			ctx, stop := context.WithCancel(t.Context())
			time.AfterFunc(time.Minute, stop)
			b.Parallel = 3
			b.add(t, "one", "two")
			b.Agent = deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
				<-ctx.Done()
				switch {
				case a.TaskID == 2:
					time.Sleep(time.Minute)
					return agent.Report{Ending: ralph.Interrupted, CostKnown: true}, nil
				case tt.fails != nil:
					return agent.Report{}, tt.fails
				}
				return agent.Report{Ending: ralph.AuthFailed, Reason: "expired", CostKnown: true}, nil
			})
			if result, err := b.Run(ctx); !errors.Is(err, tt.fails) || !slices.Equal(result.Reasons, tt.want) {
				t.Errorf("it ended with %q, %v; want %q", result.Reasons, err, tt.want)
			}
		})
	}
}
