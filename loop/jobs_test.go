package loop_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ralph"
	"ralph/internal/proc"
	"ralph/loop"
	"ralph/loop/agent"
	"ralph/signals"
	"ralph/store"
)

// newYear is when a bubble begins.
var newYear = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// A roster is an agent with a planned time for each task. It closes its sessions on it with the planned signals, the
// last of these again and again.
type roster struct {
	t     *testing.T
	b     *bench
	takes map[int64]time.Duration // a minute if it is not in there
	says  map[int64][]signals.Payload

	mu    sync.Mutex
	begun map[int64]int // sessions by task
	order []int64       // the tasks of the sessions, in the order in which they began
}

func (r *roster) Work(ctx context.Context, a agent.Assignment) (agent.Report, error) {
	r.mu.Lock()
	n := r.begun[a.TaskID]
	r.begun[a.TaskID]++
	r.order = append(r.order, a.TaskID)
	r.mu.Unlock()
	takes, planned := r.takes[a.TaskID]
	if !planned {
		takes = time.Minute
	}
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return agent.Report{Ending: ralph.Interrupted, CostKnown: true}, nil
	}
	write(r.t, filepath.Join(a.Dir, a.SessionID), "")
	var say signals.Payload = finish
	if says := r.says[a.TaskID]; len(says) > 0 {
		say = says[min(n, len(says)-1)]
	}
	_, err := r.b.Store.Say(ctx, a.TaskID, a.SessionID, "agent", say)
	return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
}

func (*roster) Salvage(string, agent.Death) (agent.Report, error) { return agent.Report{}, nil }

// enlist makes the bench's agent a roster, in so many sessions.
func (b *bench) enlist(t *testing.T, jobs int, tasks ...ralph.Task) *roster {
	t.Helper()
	b.Parallel, b.Rules.Scope = jobs, signals.PolicyNote // what files a task names is for the schedule
	b.Limits.MaxSeconds, b.Limits.SessionSeconds, b.Limits.IdleSeconds = 1e6, 1e6, 1e6
	r := &roster{t: t, b: b, takes: map[int64]time.Duration{}, says: map[int64][]signals.Payload{}, begun: map[int64]int{}}
	b.Agent = r
	b.tx(t, func(tx *store.Tx) error {
		for i, task := range tasks {
			task.Title = "A"
			if b.Check.Enter != nil {
				task.Verify = []string{fmt.Sprint("true ", i)}
			}
			if _, err := tx.AddTask(task, "human"); err != nil {
				return err
			}
		}
		return nil
	})
	return r
}

// whileMadeReady calls f while a task of [bench.enlist], which is called next, is made ready for its first session:
// when its own command runs before any work.
func (b *bench) whileMadeReady(f func()) {
	var known sync.Map
	b.Check.Timeout = time.Minute
	b.Check.Enter = func(s *proc.Spec) (func(), error) {
		if _, again := known.LoadOrStore(s.Args[2], true); !again {
			f()
		}
		return func() {}, nil
	}
}

func (b *bench) tx(t *testing.T, f func(*store.Tx) error) {
	t.Helper()
	if err := b.Store.Tx(context.WithoutCancel(t.Context()), f); err != nil {
		t.Error(err)
	}
}

// TestResultsAreAppliedInOrder up to the first failure; the rest is applied later.
func TestResultsAreAppliedInOrder(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		full           bool
		results, fails int
		want           []int
		left           int
	}{
		{false, 0, -1, nil, 0}, {false, 1, -1, []int{0}, 0}, {false, 3, -1, []int{0, 1, 2}, 0}, {true, 3, -1, []int{0, 1, 2}, 0}, {true, 3, 1, []int{0, 1}, 1},
	} {
		applied, left, err := loop.Heed(t.Context(), tt.full, tt.results, tt.fails)
		if !slices.Equal(applied, tt.want) || left != tt.left || (err != nil) != (tt.fails >= 0) {
			t.Errorf("%+v: it applied %v, has %d left, and ended with %v", tt, applied, left, err)
		}
	}
}

// TestATaskIsPassedOverFiveTimes in favour of others of its priority, each time that it waits for a session.
func TestATaskIsPassedOverFiveTimes(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bench) {
		tasks := []ralph.Task{{Files: []string{"web/**"}}, {Files: []string{"web/x"}}}
		for i := range 11 { // each its own: the one before may be merging still
			tasks = append(tasks, ralph.Task{Files: []string{fmt.Sprint("doc", i)}})
		}
		r := b.enlist(t, 2, tasks...)
		r.takes[1] = 30 * time.Minute
		r.says[2] = []signals.Payload{halt, finish}
		if result := b.serve(t)(); result.Status != ralph.ExitOK {
			t.Errorf("it ended with %q", result.Reasons)
		}
		beside := slices.DeleteFunc(r.order, func(id int64) bool { return id == 1 })
		if want := []int64{3, 4, 5, 6, 7, 2, 8, 9, 10, 11, 12, 2, 13}; !slices.Equal(beside, want) {
			t.Errorf("beside the first the sessions were on %v, want %v", beside, want)
		}
	})
}

// TestATaskInPreparationIsInProgress before it has a session.
func TestATaskInPreparationIsInProgress(t *testing.T) {
	t.Parallel()
	for name, tasks := range map[string][]ralph.Task{
		"files":      {{Files: []string{"web/**"}}, {Files: []string{"web/x"}}, {}},
		"discipline": {{Discipline: "ui"}, {Discipline: "ui"}, {}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.tx(t, func(tx *store.Tx) error { return tx.PutDiscipline(ralph.Discipline{Name: "ui", Parallel: 1}) })
				var idle []string
				b.whileMadeReady(func() {
					time.Sleep(time.Minute)
					b.tx(t, func(tx *store.Tx) error {
						run, _, err := tx.LastRun()
						idle = append(idle, run.Idle)
						return err
					})
				})
				r := b.enlist(t, 2, tasks...)
				r.takes[1] = 10 * time.Minute
				if result := b.serve(t)(); result.Status != ralph.ExitOK || time.Since(newYear) > 20*time.Minute {
					t.Errorf("it ended with %q after %s", result.Reasons, time.Since(newYear))
				}
				if len(r.order) != 3 || r.order[2] != 2 {
					t.Errorf("the sessions were on %v, want the second task last", r.order)
				}
				if len(idle) != 3 || !strings.HasPrefix(idle[0], "made ready for TASK-") {
					t.Errorf("while they are made ready it says %q", idle)
				}
			})
		})
	}
}

// TestARunWithOneSessionIsNotIdle while it makes its session ready.
func TestARunWithOneSessionIsNotIdle(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bench) {
		idle := "?"
		b.whileMadeReady(func() {
			b.tx(t, func(tx *store.Tx) error {
				run, _, err := tx.LastRun()
				idle = run.Idle
				return err
			})
		})
		b.enlist(t, 1, ralph.Task{})
		if result := b.serve(t)(); result.Status != ralph.ExitOK || idle != "" {
			t.Errorf("it says %q, and ended with %q", idle, result.Reasons)
		}
	})
}

// TestAPlanningSessionNeedsNoBaseline, since it merges nothing.
func TestAPlanningSessionNeedsNoBaseline(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bench) {
		b.whileMadeReady(func() { t.Error("a command ran") })
		r := b.enlist(t, 1, ralph.Task{Role: ralph.RolePlan})
		r.says[1] = []signals.Payload{halt}
		b.Limits.MaxSessions = 1
		if b.serve(t)(); len(r.order) != 1 {
			t.Errorf("the sessions were on %v", r.order)
		}
	})
}

// TestARunWithOneSessionKeepsTheOrderOfTheQueue for any files of a worker's task.
func TestARunWithOneSessionKeepsTheOrderOfTheQueue(t *testing.T) {
	t.Parallel()
	for jobs, want := range map[int]int64{1: 2, 2: 3} {
		inBubble(t, func(t *testing.T, b *bench) {
			r := b.enlist(t, jobs, ralph.Task{Files: []string{"web/**"}}, ralph.Task{Files: []string{"web/x"}}, ralph.Task{Files: []string{"doc"}})
			if _, err := b.Claim(t.Context(), 1, "ann"); err != nil {
				t.Fatal(err)
			}
			b.Limits.MaxSessions = 1
			if b.serve(t)(); !slices.Equal(r.order, []int64{want}) {
				t.Errorf("with %d sessions the session was on %v, want %d", jobs, r.order, want)
			}
		})
	}
}

// TestATaskThatFitsIsFoundFarDownTheQueue, behind others that do not fit beside those in progress, but not wherever it is.
func TestATaskThatFitsIsFoundFarDownTheQueue(t *testing.T) {
	t.Parallel()
	for before, want := range map[int]int64{19: 21, 20: 2} {
		inBubble(t, func(t *testing.T, b *bench) {
			b.whileMadeReady(func() { time.Sleep(time.Minute) }) // the first is still in the queue
			meets := slices.Repeat([]ralph.Task{{Files: []string{"web/x"}}}, before)
			r := b.enlist(t, 2, slices.Concat([]ralph.Task{{Files: []string{"web/**"}}}, meets, []ralph.Task{{}})...)
			b.Limits.MaxSessions = 2
			b.serve(t)()
			if slices.Sort(r.order); !slices.Equal(r.order, []int64{1, want}) {
				t.Errorf("with %d that do not fit the sessions were on %v, want 1 and %d", before, r.order, want)
			}
		})
	}
}

// TestASessionThatDoesNotGetReadyIsNoticed by the daemon's watchdog, beside any other sessions.
func TestASessionThatDoesNotGetReadyIsNoticed(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bench) {
		var begun atomic.Int64
		b.whileMadeReady(func() {
			if begun.Add(1) == 2 {
				time.Sleep(time.Hour)
			}
		})
		r := b.enlist(t, 2, ralph.Task{}, ralph.Task{})
		r.takes[1], r.takes[2] = 90*time.Minute, 90*time.Minute
		result := b.serve(t)()
		if result.Status != ralph.ExitOK || len(b.heart.late) == 0 {
			t.Errorf("it ended with %q, and promised nothing that it did not keep", result.Reasons)
		}
		if !slices.Contains(b.heart.statuses, "on TASK-1 A; on TASK-2 A") {
			t.Errorf("it said %q", b.heart.statuses)
		}
		b.tx(t, func(tx *store.Tx) error {
			sessions, err := tx.Sessions(store.SessionFilter{})
			if len(sessions) != 2 || sessions[0].Number+sessions[1].Number != 1+2 {
				t.Errorf("the sessions are %+v", sessions)
			}
			return err
		})
	})
}

// TestARunThatEndsLeavesItsOtherSessionsTheirTime, unless ralph itself fails meanwhile.
func TestARunThatEndsLeavesItsOtherSessionsTheirTime(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		fails     error // of the third session
		completed int
		reasons   int
	}{
		{"they end by themselves", nil, 2, 1},
		{"one is a reason to end, too", exec.ErrNotFound, 1, 2},
		{"one cannot be begun", errors.New("no memory"), 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.enlist(t, 4, slices.Repeat([]ralph.Task{{}}, 4)...)
				b.Limits.StagnantMaximum = 2
				var interrupted atomic.Int64
				b.Agent = deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
					r := agent.Report{Ending: ralph.Finished, CostKnown: true}
					takes := time.Duration(a.TaskID) * 10 * time.Minute
					if a.TaskID <= 2 { // these change nothing, which ends the run
						takes = time.Minute
					}
					select {
					case <-time.After(takes):
					case <-ctx.Done():
						interrupted.Add(1)
						r.Ending = ralph.Interrupted
						return r, nil
					}
					if a.TaskID <= 2 {
						return r, nil
					}
					if a.TaskID == 3 && tt.fails != nil {
						return agent.Report{}, tt.fails
					}
					write(t, filepath.Join(a.Dir, a.SessionID), "")
					_, err := b.Store.Say(ctx, a.TaskID, a.SessionID, "agent", finish)
					return r, err
				})
				result, err := b.Run(t.Context())
				if tt.completed == 0 {
					if err == nil || !strings.Contains(err.Error(), "no memory") || interrupted.Load() != 1 {
						t.Errorf("it ended with %v, and has interrupted %d sessions", err, interrupted.Load())
					}
					return
				}
				if err != nil || interrupted.Load() != 0 || len(result.Reasons) < tt.reasons {
					t.Errorf("it ended with %q, %v, and has interrupted %d sessions", result.Reasons, err, interrupted.Load())
				}
				b.tx(t, func(tx *store.Tx) error {
					counts, err := tx.Counts()
					if counts[ralph.Completed] != tt.completed {
						t.Errorf("the tasks are %v", counts)
					}
					return err
				})
			})
		})
	}
}
