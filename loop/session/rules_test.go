package session

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/loop/agent"
	"ralph/loop/merging"
	"ralph/loop/order"
	"ralph/signals"
	"ralph/store"
)

func TestASessionsClock(t *testing.T) {
	type act struct {
		at     int // seconds
		do     func(c *clock)
		pauses int
	}
	pause := func(at int) act { return act{at, (*clock).pause, 1} }
	resume := func(at int) act { return act{at, (*clock).resume, -1} }
	for _, tt := range []struct {
		name string
		acts []act
		ring int // when it rings; 0 for never within the minute
	}{
		{"nothing stops it", nil, 10},
		{"a pause is not counted", []act{pause(4), resume(24)}, 30},
		{"what has passed before a pause is not given back", []act{pause(4), resume(5), pause(8), resume(9), pause(11), resume(12)}, 13},
		{"of two pauses at once the last one counts", []act{pause(4), pause(6), resume(10), resume(20)}, 26},
		{"a pause has no end before the time is used up", []act{pause(9)}, 0},
		{"a pause after the time is used up takes nothing back", []act{pause(11), resume(20)}, 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				var rang time.Duration
				paused := 0
				var rings atomic.Int32
				c := newClock(10*time.Second, func() {
					if rings.Add(1) == 1 {
						rang = time.Since(begin)
					}
				})
				for second := range 60 {
					time.Sleep(time.Until(begin.Add(time.Duration(second) * time.Second)))
					for _, a := range tt.acts {
						if a.at == second {
							a.do(c)
							if paused += a.pauses; c.paused() != (paused > 0) {
								t.Errorf("after %d s it stands still: %t", second, c.paused())
							}
						}
					}
				}
				synctest.Wait()
				c.pause()
				if rang != time.Duration(tt.ring)*time.Second || (rings.Load() > 0) != (tt.ring > 0) {
					t.Errorf("rang %d times, first after %s; want %d s", rings.Load(), rang, tt.ring)
				}
			})
		})
	}
}

// A watcher is a log that runs a check whenever a line is written.
type watcher struct {
	slog.Handler
	look func(line string)
}

func (w watcher) Handle(_ context.Context, r slog.Record) error { w.look(r.Message); return nil }

// TestATurnIsNotOfTheSessionsTime: the session's clock stops while ralph judges a
// turn. If the signals cannot be read, the agent is not told that there are none.
func TestATurnIsNotOfTheSessionsTime(t *testing.T) {
	db, err := store.Open(t.Context(), pgtest.Path(t, filepath.Join(t.TempDir(), "state", "ralph.db")), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s := &Session{
		Parts: Parts{
			Config: &order.Config{Rules: signals.Rules{Reminders: 1}}, Store: db, Merger: &merging.Merger{Links: &merging.Links{}},
		},
		clock: newClock(time.Hour, func() {}),
	}
	defer s.clock.pause()
	looked := 0
	s.Log = slog.New(watcher{slog.NewTextHandler(io.Discard, nil), func(line string) {
		if looked++; !s.clock.paused() {
			t.Error("it runs while the turn is looked at")
		}
		if !strings.Contains(line, "is checked only after its session") {
			t.Errorf("it says %q", line)
		}
	}})
	if got := s.TurnEnded(t.Context(), agent.Turn{}); got != (agent.Answer{}) || looked != 1 || s.clock.paused() {
		t.Errorf("it is told %+v, %d warnings, and the clock stands still: %t", got, looked, s.clock.paused())
	}
}

// TestAnAgentIsNotRemindedWhereNothingCanBeStored: it may have closed, and would call in vain again.
func TestAnAgentIsNotRemindedWhereNothingCanBeStored(t *testing.T) {
	db, err := store.Open(t.Context(), pgtest.Path(t, filepath.Join(t.TempDir(), "state", "ralph.db")), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithCancel(t.Context())
	if err := db.Tx(ctx, func(*store.Tx) error {
		cancel() // so that it does not wait for room
		return syscall.ENOSPC
	}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	s := &Session{Parts: Parts{Config: &order.Config{Rules: signals.Rules{Reminders: 1}}, Store: db}}
	if got, err := s.reply(t.Context(), agent.Turn{}); !got.Over || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("it is told %+v, %v", got, err)
	}
}

func TestWhyASessionWasInterrupted(t *testing.T) {
	interrupted := agent.Report{Ending: ralph.Interrupted, Reason: "killed"}
	for _, tt := range []struct {
		name   string
		report agent.Report
		cause  error
		want   agent.Report
	}{
		{"nobody did it", interrupted, nil, interrupted},
		{"it had ended by itself", agent.Report{Ending: ralph.Finished, Reason: "fine"}, timeUp, agent.Report{Ending: ralph.Finished, Reason: "fine"}},
		{"its time is up", interrupted, timeUp, agent.Report{Ending: ralph.TimedOut, Reason: "timed out after 45m0s"}},
		{"it was idle", interrupted, wasIdle, agent.Report{Ending: ralph.TimedOut, Reason: "timed out: idle for 10m0s, without an event, a signal, CPU use or a change in the work tree"}},
		{"the run's time is up", interrupted, runLimit, agent.Report{Ending: ralph.Interrupted, Reason: "interrupted: the run's time is up"}},
		{"its task was cancelled", interrupted, cancelled, agent.Report{Ending: ralph.Interrupted, Reason: "interrupted: its task was cancelled"}},
		{"what it does cannot be kept", interrupted, errors.New("no space left"), agent.Report{Ending: ralph.Interrupted, Reason: "interrupted: no space left"}},
		{"the run was stopped at once", interrupted, context.Canceled, agent.Report{Ending: ralph.Interrupted, Reason: "interrupted: the run was stopped at once"}},
	} {
		if diff := cmp.Diff(tt.want, withCause(order.Limits{Time: 45 * time.Minute, Idle: 10 * time.Minute}, tt.report, tt.cause)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

func TestThePartsThatASessionChanged(t *testing.T) {
	before := hashes{Definitions: "a", Files: "a", Head: "a", WorkTree: "a"}
	for _, tt := range []struct {
		name    string
		now     hashes
		want    parts
		missing []string
	}{
		{"none", before, parts{}, []string{"definitions", "files", "head", "work_tree"}},
		{"the definitions", hashes{Definitions: "b", Files: "a", Head: "a", WorkTree: "a"}, parts{definitions: true}, []string{"files", "head", "work_tree"}},
		{"the files", hashes{Definitions: "a", Files: "b", Head: "a", WorkTree: "a"}, parts{files: true}, []string{"definitions", "head", "work_tree"}},
		{"the head", hashes{Definitions: "a", Files: "a", Head: "b", WorkTree: "a"}, parts{head: true}, []string{"definitions", "files", "work_tree"}},
		{"the work tree", hashes{Definitions: "a", Files: "a", Head: "a", WorkTree: "b"}, parts{workTree: true}, []string{"definitions", "files", "head"}},
		{"all", hashes{Definitions: "b", Files: "b", Head: "b", WorkTree: "b"}, parts{true, true, true, true}, []string{}},
	} {
		got := tt.now.differ(before)
		if got != tt.want || got.any() != (tt.want != parts{}) {
			t.Errorf("%s: got %+v", tt.name, got)
		}
		if diff := cmp.Diff(tt.missing, got.missing()); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		for _, or := range []parts{got.or(parts{}), parts{}.or(got), got.or(got)} {
			if or != tt.want {
				t.Errorf("%s: what has changed once stays so: %+v", tt.name, or)
			}
		}
	}
}

func TestChargesOfSessions(t *testing.T) {
	const limit = 10
	for _, tt := range []struct {
		name   string
		report agent.Report
		usd    float64
		known  bool
	}{
		{"what its agent reported", agent.Report{Began: true, CostUSD: 0.5, CostKnown: true}, 0.5, true},
		{"nothing, where that is what it reported", agent.Report{Began: true, CostKnown: true}, 0, true},
		{"what was streamed, where it did not come to report", agent.Report{Began: true, CostUSD: 0.25}, 0.25, false},
		{"one turn, where it may have called its model and nothing is known", agent.Report{Began: true}, 0.25, false},
		{"no money for tokens whose price is unknown", agent.Report{Began: true, Tokens: ralph.Tokens{Input: 9}}, 0, false},
		{"nothing, where it never came so far", agent.Report{}, 0, true},
		{"nothing, however it ended", agent.Report{Ending: ralph.Interrupted}, 0, true},
		{"what the request cost that reached its limit", agent.Report{CostUSD: limit + overshoot, CostKnown: true}, limit + overshoot, true},
		{"its limit, where its agent cannot have spent so much", agent.Report{CostUSD: 1000, CostKnown: true}, limit, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if usd, known := charge(tt.report, limit, 0.25, 9); usd != tt.usd || known != tt.known {
				t.Errorf("got %g, %t, want %g, %t", usd, known, tt.usd, tt.known)
			}
		})
	}
	if usd, known := charge(agent.Report{CostUSD: 1000, CostKnown: true}, 0, 1, 1); usd != 1000 || !known {
		t.Errorf("without a limit: %g, %t", usd, known)
	}
}

// TestAMuteSession: an agent without reports is charged by its time, and never more than its limit.
func TestAMuteSession(t *testing.T) {
	refused := agent.Report{Began: true, Ending: ralph.RateLimited, ToolCalls: 2}
	killed := agent.Report{Began: true, Ending: ralph.Lost, ToolCalls: 1}
	if usd, known := charge(killed, 10, 0.25, 3600); usd != 0.5 || known {
		t.Errorf("killed in its second request: %g, %t", usd, known)
	}
	if usd, known := charge(refused, 10, 0.25, 3600); usd != 0.5 || known {
		t.Errorf("refused for an hour after two calls: %g, %t", usd, known)
	}
	refused.ToolCalls = 0
	if usd, known := charge(refused, 10, 0.25, 3600); usd != 0.25 || known {
		t.Errorf("refused for an hour at its first request: %g, %t", usd, known)
	}
	for seconds, want := range map[float64]float64{1: 0.25, 25: 0.75, 3600: 10} {
		if usd, known := charge(agent.Report{Began: true}, 10, 0.25, seconds); usd != want || known {
			t.Errorf("after %g s: %g, %t, want %g", seconds, usd, known, want)
		}
	}
}

// TestASessionCallsNobodyAboveIt except by Progress: its fields hold no functions of its caller.
func TestASessionCallsNobodyAboveIt(t *testing.T) {
	for _, made := range []reflect.Type{reflect.TypeFor[Parts](), reflect.TypeFor[order.Order](), reflect.TypeFor[Place]()} {
		for i := range made.NumField() {
			if f := made.Field(i); f.Type.Kind() == reflect.Func {
				t.Errorf("%s has the function %s", made, f.Name)
			}
		}
	}
	if n := reflect.TypeFor[Progress]().NumMethod(); n > 2 {
		t.Errorf("Progress has %d methods", n)
	}
}
