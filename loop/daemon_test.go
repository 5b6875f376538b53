package loop_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/internal/schedule"
	"ralph/loop"
	"ralph/loop/agent"
	"ralph/signals"
	"ralph/store"
)

// worker is an agent that takes a while over a task and then signals done.
type worker struct {
	db    *store.DB
	takes time.Duration
	idle  bool // it signals and changes nothing

	mu      sync.Mutex
	started []string // day and time of each session's start
}

func (w *worker) Work(ctx context.Context, a agent.Assignment) (agent.Report, error) {
	w.mu.Lock()
	w.started = append(w.started, time.Now().UTC().Format("02 15:04"))
	w.mu.Unlock()
	select {
	case <-time.After(w.takes):
	case <-ctx.Done():
		return agent.Report{Ending: ralph.Interrupted, CostKnown: true}, nil
	}
	if w.idle {
		return agent.Report{Ending: ralph.Finished, CostUSD: 1, CostKnown: true}, nil
	}
	if err := os.WriteFile(filepath.Join(a.Dir, a.SessionID), nil, 0o600); err != nil {
		return agent.Report{}, err
	}
	_, err := w.db.Say(ctx, a.TaskID, a.SessionID, "agent", signals.Done{Summary: "made it"})
	return agent.Report{Ending: ralph.Finished, CostUSD: 1, CostKnown: true}, err
}

func (w *worker) Salvage(string, agent.Death) (agent.Report, error) { return agent.Report{}, nil }

// heart records beats that come later than promised.
type heart struct {
	mu       sync.Mutex
	promised time.Time
	late     []string
	statuses []string
}

func (h *heart) Beat(within time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := time.Now(); !h.promised.IsZero() && now.After(h.promised) {
		h.late = append(h.late, fmt.Sprintf("%s late at %s", now.Sub(h.promised), now))
	}
	h.promised = time.Now().Add(within)
}

func (h *heart) Status(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.statuses); n == 0 || h.statuses[n-1] != text {
		h.statuses = append(h.statuses, text)
	}
}

// A bench is a loop with a worker, in a synctest bubble whose time begins
// on 2000-01-01 at midnight UTC.
type bench struct {
	*loop.Loop
	worker *worker
	heart  *heart
	stop   chan struct{}
	asked  atomic.Int64 // statements, except for checks for new commits
	looked atomic.Int64 // those checks
}

// hear counts a statement.
func (b *bench) hear(query string) {
	if query == "PRAGMA data_version" {
		b.looked.Add(1)
	} else {
		b.asked.Add(1)
	}
}

func inBubble(t *testing.T, f func(t *testing.T, b *bench)) {
	t.Helper()
	pgtest.Timeless(t)
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		b := &bench{heart: &heart{}, stop: make(chan struct{})}
		db, err := store.Open(t.Context(), filepath.Join(dir, ".ralph", "ralph.db"), store.Options{Statement: b.hear})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		b.worker = &worker{db: db, takes: 10 * time.Minute}
		b.Loop = newLoop(t, db, dir, b.worker)
		b.Loop.Stop = b.stop
		b.Loop.Heart = b.heart
		f(t, b)
	})
}

// commit has a person commit a new file.
func (b *bench) commit(t *testing.T, name string) {
	t.Helper()
	write(t, filepath.Join(b.Here.Dir, name), "x")
	commit := exec.Command("sh", "-ec", "git add "+name+"; git -c user.name=Ann -c user.email=ann@example.org commit -qm "+name)
	commit.Dir = b.Here.Dir
	if out, err := commit.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func (b *bench) add(t *testing.T, titles ...string) {
	t.Helper()
	for _, title := range titles {
		err := b.Store.Tx(t.Context(), func(tx *store.Tx) error {
			_, err := tx.AddTask(ralph.Task{Title: title, Priority: 2}, "human")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// serve runs the loop; the returned function waits for its end.
func (b *bench) serve(t *testing.T) (wait func() loop.Result) {
	t.Helper()
	ended := make(chan loop.Result)
	go func() {
		result, err := b.Serve(context.WithoutCancel(t.Context()))
		if err != nil {
			t.Error(err)
		}
		ended <- result
	}()
	return func() loop.Result { return <-ended }
}

// stopAt stops the loop at a time on the bubble's first day.
func (b *bench) stopAt(after time.Duration) { time.AfterFunc(after, func() { close(b.stop) }) }

func (b *bench) expect(t *testing.T, result loop.Result, status int, starts ...string) {
	t.Helper()
	if result.Status != status {
		t.Errorf("status %d (%s), want %d", result.Status, strings.Join(result.Reasons, "; "), status)
	}
	if !slices.Equal(b.worker.started, starts) {
		t.Errorf("sessions began %q, want %q", b.worker.started, starts)
	}
	if len(b.heart.late) > 0 {
		t.Errorf("the loop promised to get on and did not: %q", b.heart.late)
	}
}

func window(t *testing.T, s string) schedule.Between {
	t.Helper()
	b, err := schedule.ParseBetween(s, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func cron(t *testing.T, s string) schedule.Cron {
	t.Helper()
	c, err := schedule.ParseCron(s, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSessionsBeginOnlyWithinTheWindow(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bench) {
		b.Between, b.Limits.MaxSeconds = window(t, "02:00-02:25"), 5400
		b.add(t, "one", "two", "three", "four")
		b.stopAt(5 * time.Hour)
		// Longer than a run's limit, before the window and after it.
		b.expect(t, b.serve(t)(), ralph.ExitStopped, "01 02:00", "01 02:10", "01 02:20")
		if last := b.heart.statuses[len(b.heart.statuses)-1]; !strings.HasPrefix(last, "waiting for the window 02:00-02:25 until Jan 2 ") {
			t.Errorf("the last status is %q", last)
		}
	})
}

func TestARunEndsWithItsWorkWhateverTheWindow(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bench) {
		b.Between = window(t, "23:55-00:05")
		b.add(t, "one")
		b.expect(t, b.serve(t)(), ralph.ExitOK, "01 00:00")
		if time.Now().Hour() != 0 {
			t.Errorf("it ended at %s", time.Now())
		}
	})
}

func TestADaemonTakesLaterTasks(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bench) {
		b.Daemon = true
		wait := b.serve(t)
		time.Sleep(3*time.Hour + 30*time.Second) // longer than a run's limit
		b.add(t, "one")
		time.Sleep(time.Hour)
		b.add(t, "two")
		time.Sleep(time.Hour)
		close(b.stop)
		b.expect(t, wait(), ralph.ExitStopped, "01 03:00", "01 04:00")
		want := []string{"waiting for new tasks and answers", "running", "on TASK-1 one", "waiting for new tasks and answers", "running", "on TASK-2 two", "waiting for new tasks and answers"}
		if !slices.Equal(b.heart.statuses, want) {
			t.Errorf("it said %q, want %q", b.heart.statuses, want)
		}
	})
}

// TestWaitingAsksNothingOfTheDatabase: neither a session whose agent is working
// nor a daemon without work reads the database while nothing happens in it.
func TestWaitingAsksNothingOfTheDatabase(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bench) {
		b.Daemon = true
		b.add(t, "one")
		wait := b.serve(t)
		quiet := func(what string, d time.Duration) {
			t.Helper()
			synctest.Wait()
			asked, looked := b.asked.Load(), b.looked.Load()
			time.Sleep(d)
			synctest.Wait()
			if n := b.asked.Load() - asked; n > 0 {
				t.Errorf("%s: %d statements in %s", what, n, d)
			}
			if b.looked.Load() == looked {
				t.Errorf("%s: nobody looked for a commit in %s", what, d)
			}
		}
		time.Sleep(30 * time.Second)
		quiet("a session", 9*time.Minute)
		time.Sleep(5 * time.Minute) // the session ends
		quiet("a daemon without work", 50*time.Minute)
		close(b.stop)
		b.expect(t, wait(), ralph.ExitStopped, "01 00:00")
	})
}

// TestADaemonHasItsLimitsEachDay: it waits for midnight where a run would end.
func TestADaemonHasItsLimitsEachDay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		set    func(*ralph.Limits)
		why    string
		month  bool // it waits for the next month
		starts []string
	}{
		{"cost", func(l *ralph.Limits) { l.MaxCostUSD = 2 }, "the limit of $2.00 per day is reached ($2.00 spent)", false, []string{"01 23:57", "01 23:58", "02 00:00", "02 00:01"}},
		{"cost of a day over all runs", func(l *ralph.Limits) { l.MaxDayCostUSD = 2 }, "the limit of $2.00 per day is reached ($2.00 spent since midnight, over all runs)", false, []string{"01 23:57", "01 23:58", "02 00:00", "02 00:01"}},
		{"cost of a month over all runs", func(l *ralph.Limits) { l.MaxMonthCostUSD = 2 }, "the limit of $2.00 per month is reached ($2.00 spent since the month began, over all runs)", true, []string{"01 23:57", "01 23:58"}},
		{"sessions", func(l *ralph.Limits) { l.MaxSessions = 1 }, "the limit of 1 session per day is reached", false, []string{"01 23:57", "02 00:00"}},
		{"tasks", func(l *ralph.Limits) { l.MaxTasks = 2 }, "the limit of 2 tasks per day is reached", false, []string{"01 23:57", "01 23:58", "02 00:00", "02 00:01"}},
		{"time", func(l *ralph.Limits) { l.MaxSeconds = 100 }, "the limit of 1m40s per day is reached", false, []string{"01 23:57", "01 23:58", "02 00:00", "02 00:01"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.Daemon = true
				tt.set(&b.Limits)
				b.add(t, "one", "two", "three", "four")
				b.worker.takes = time.Minute
				time.Sleep(23*time.Hour + 57*time.Minute)
				b.stopAt(4*time.Minute + 30*time.Second)
				var waiting ralph.Run
				time.AfterFunc(2*time.Minute+30*time.Second, func() { waiting = b.doing(t) })
				b.expect(t, b.serve(t)(), ralph.ExitStopped, tt.starts...)
				want, until := "waiting until Jan 2 00:00:00: "+tt.why+"; it goes on at midnight", newYear.AddDate(0, 0, 1)
				if tt.month {
					want, until = "waiting until Feb 1 00:00:00: "+tt.why+"; it goes on with the next month", newYear.AddDate(0, 1, 0)
				}
				if !waiting.WaitUntil.Equal(until) {
					t.Errorf("it waits until %s, want %s", waiting.WaitUntil, until)
				}
				if !slices.Contains(b.heart.statuses, want) {
					t.Errorf("it said %q, want %q", b.heart.statuses, want)
				}
			})
		})
	}
}

// TestADaemonHasGoneOnWithATaskOfTheDay: only further tasks wait for midnight.
func TestADaemonHasGoneOnWithATaskOfTheDay(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bench) {
		b.Daemon, b.Limits.MaxTasks = true, 1
		again := act{change: true, say: []signals.Payload{halt}}
		b.perform(again, again, act{change: true, say: []signals.Payload{finish}}).takes = time.Minute
		b.add(t, "one", "two")
		b.stopAt(time.Hour)
		b.expect(t, b.serve(t)(), ralph.ExitStopped, "01 00:00", "01 00:01", "01 00:02")
	})
}

func TestARunWithALimitOfTheDayEnds(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bench) {
		b.Limits.MaxDayCostUSD = 2
		b.add(t, "one", "two", "three")
		b.expect(t, b.serve(t)(), ralph.ExitLimit, "01 00:00", "01 00:10")
	})
}

// TestASessionEndsWithTheTimeOfItsRun, although it has some left.
func TestASessionEndsWithTheTimeOfItsRun(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bench) {
		b.Limits.MaxSeconds = 300
		b.add(t, "one")
		b.expect(t, b.serve(t)(), ralph.ExitLimit, "01 00:00")
		if took := time.Since(newYear); took < 5*time.Minute || took > 6*time.Minute {
			t.Errorf("it ended after %s", took)
		}
	})
}

func TestADaemonThatWaitsForMidnightIsStopped(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bench) {
		b.Daemon, b.Limits.MaxSessions = true, 1
		b.add(t, "one", "two")
		wait := b.serve(t)
		time.Sleep(time.Hour)
		if err := b.Store.Tx(t.Context(), func(tx *store.Tx) error { return tx.Control(ralph.ControlStop) }); err != nil {
			t.Fatal(err)
		}
		asked := time.Now()
		b.expect(t, wait(), ralph.ExitStopped, "01 00:00")
		if took := time.Since(asked); took > 2*time.Second {
			t.Errorf("it ended after %s", took)
		}
	})
}

// TestADaemonStillEndsWithoutProgress: this limit is not a daily one. The first task fails after its three sessions,
// and with the first one of the second task two in a row have changed nothing.
func TestADaemonStillEndsWithoutProgress(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bench) {
		b.Daemon, b.Limits.StagnantMaximum, b.worker.idle = true, 2, true
		b.add(t, "one", "two")
		b.expect(t, b.serve(t)(), ralph.ExitLimit, "01 00:00", "01 00:10", "01 00:20", "01 00:30")
	})
}

func TestBatchesBeginOnScheduleEachWithItsOwnLimits(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bench) {
		b.Daemon, b.Schedule, b.Limits.MaxSessions = true, cron(t, "30 * * * *"), 2
		b.add(t, "one", "two", "three")
		b.stopAt(3 * time.Hour)
		b.expect(t, b.serve(t)(), ralph.ExitStopped, "01 00:30", "01 00:40", "01 01:30")
		var statuses []int
		err := b.Store.View(t.Context(), func(tx *store.Tx) error {
			for id := int64(1); ; id++ {
				run, err := tx.Run(id)
				if err != nil {
					return nil
				}
				statuses = append(statuses, *run.ExitStatus)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		// A batch ended by its limit, a completed one, an empty one, and one that
		// was stopped while it waited.
		if want := []int{ralph.ExitLimit, ralph.ExitOK, ralph.ExitOK, ralph.ExitStopped}; !slices.Equal(statuses, want) {
			t.Errorf("the batches ended with %v, want %v", statuses, want)
		}
	})
}

func TestABatchWaitsForTheWindowToo(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bench) {
		b.Daemon, b.Schedule, b.Between = true, cron(t, "*/15 * * * *"), window(t, "01:05-01:20")
		b.add(t, "one", "two", "three")
		b.stopAt(2 * time.Hour)
		b.expect(t, b.serve(t)(), ralph.ExitStopped, "01 01:05", "01 01:15")
	})
}

func TestADaemonCanBePausedAndStoppedFromElsewhere(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"daemon", "schedule", "window"} {
		t.Run(mode, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				switch mode {
				case "schedule":
					b.Schedule = cron(t, "@daily")
				case "window":
					b.Between = window(t, "12:00-13:00")
					b.add(t, "one")
				}
				b.Daemon = true
				wait := b.serve(t)
				for _, control := range []string{ralph.ControlPause, ralph.ControlNone, ralph.ControlStop} {
					time.Sleep(90 * time.Second)
					if err := b.Store.Tx(t.Context(), func(tx *store.Tx) error { return tx.Control(control) }); err != nil {
						t.Fatal(err)
					}
				}
				asked := time.Now()
				b.expect(t, wait(), ralph.ExitStopped)
				if took := time.Since(asked); took > 2*time.Second {
					t.Errorf("it ended after %s", took)
				}
			})
		})
	}
}
