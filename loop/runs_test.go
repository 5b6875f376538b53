package loop_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ralph"
	"ralph/loop"
	"ralph/loop/agent"
	"ralph/signals"
	"ralph/store"
)

// A performer is an agent that plays the next act in each session.
type performer struct {
	b        *bench
	acts     []act
	takes    time.Duration // duration of each act
	n        int
	sessions []agent.Assignment
}

// An act is the part of one session.
type act struct {
	change bool
	say    []signals.Payload
	report agent.Report // a missing Ending is "finished"
}

func (p *performer) Work(ctx context.Context, a agent.Assignment) (agent.Report, error) {
	p.b.worker.started = append(p.b.worker.started, time.Now().UTC().Format("02 15:04"))
	p.sessions = append(p.sessions, a)
	now := p.acts[min(p.n, len(p.acts)-1)]
	p.n++
	time.Sleep(p.takes)
	if now.change {
		if err := os.WriteFile(filepath.Join(a.Dir, fmt.Sprint("change", p.n)), nil, 0o600); err != nil {
			return agent.Report{}, err
		}
	}
	for _, say := range now.say {
		if _, err := p.b.Store.Say(ctx, a.TaskID, a.SessionID, "agent", say); err != nil {
			return agent.Report{}, err
		}
	}
	if now.report.Ending == "" {
		now.report.Ending = ralph.Finished
	}
	now.report.CostKnown = true
	return now.report, nil
}

func (p *performer) Salvage(string, agent.Death) (agent.Report, error) { return agent.Report{}, nil }

func (*performer) Profile() *agent.Profile {
	return &agent.Profile{ToolPrefix: "mcp__ralph__", Escalates: true, LogIn: "log in with `it`"}
}

// perform makes the bench's agent play these acts.
func (b *bench) perform(acts ...act) *performer {
	p := &performer{b: b, acts: acts, takes: time.Second}
	b.Agent = p
	return p
}

var (
	finish = signals.Done{Summary: "made it"}
	halt   = signals.Partial{Summary: "a part", Remaining: "the rest"}
)

// TestSessionsInARowThatChangeNothingEndARun: a session that changes something
// resets the count, and one in which the agent could not work does not count.
func TestSessionsInARowThatChangeNothingEndARun(t *testing.T) {
	t.Parallel()
	idle, busy := act{say: []signals.Payload{halt}}, act{change: true, say: []signals.Payload{halt}}
	broken := act{report: agent.Report{Ending: ralph.NoWork}}
	halted := act{report: agent.Report{Ending: ralph.Interrupted, Reason: "interrupted: it was"}}
	end := act{change: true, say: []signals.Payload{finish}}
	for _, tt := range []struct {
		name     string
		acts     []act
		status   int
		sessions int
	}{
		{"one", []act{busy, idle, end}, ralph.ExitLimit, 2},
		{"of one task, again and again", []act{busy, idle, idle, idle, end}, ralph.ExitOK, 5},
		{"never two in a row", []act{idle, busy, idle, busy, idle, end}, ralph.ExitOK, 6},
		{"after an agent that could not work", []act{broken, idle, end}, ralph.ExitLimit, 2},
		{"after one that was interrupted", []act{halted, idle, end}, ralph.ExitLimit, 2},
		{"an agent that could not work is not idle", []act{broken, busy, broken, idle, end}, ralph.ExitOK, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.Limits.StagnantMaximum, b.Rules.StuckLimit = 2, 100
				p := b.perform(tt.acts...)
				b.add(t, "one")
				if tt.status != ralph.ExitOK {
					b.Limits.StagnantMaximum = 1 // of one task: a second one is not counted twice
				}
				result := b.serve(t)()
				if result.Status != tt.status || len(p.sessions) != tt.sessions {
					t.Errorf("status %d (%s) after %d sessions, want %d after %d", result.Status, strings.Join(result.Reasons, "; "), len(p.sessions), tt.status, tt.sessions)
				}
				if tt.status == ralph.ExitLimit && result.Reasons[0] != "the sessions of 1 task in a row changed nothing" {
					t.Errorf("it ended for %q", result.Reasons)
				}
			})
		})
	}
}

// TestAnAgentThatCannotWorkEndsARun: one that does nothing does so twice in a row, not if it worked in between.
func TestAnAgentThatCannotWorkEndsARun(t *testing.T) {
	t.Parallel()
	nothing := act{report: agent.Report{Ending: ralph.NoWork, Reason: "it is not logged in"}}
	tools := act{report: agent.Report{Ending: ralph.MCPFailed, Reason: "no tools"}}
	poor := act{report: agent.Report{Ending: ralph.Billing, Reason: "it is empty"}}
	unknown := act{report: agent.Report{Ending: ralph.AuthFailed, Reason: "expired"}}
	end := act{change: true, say: []signals.Payload{finish}}
	for _, tt := range []struct {
		name     string
		acts     []act
		status   int
		reason   string
		sessions int
	}{
		{"twice in a row", []act{nothing, nothing, end}, ralph.ExitAgent, "the agent did nothing at all, twice in a row: it is not logged in", 2},
		{"once and again", []act{nothing, end, nothing, end}, ralph.ExitOK, "nothing is left to do", 4},
		{"for other reasons", []act{nothing, tools, nothing, end}, ralph.ExitOK, "nothing is left to do", 5},
		{"without credit", []act{poor, end}, ralph.ExitAgent, "the agent's account has no credit: it is empty", 1},
		{"without a login", []act{unknown, end}, ralph.ExitAgent, "the agent's credentials were refused: expired; log in with `it`, then `ralph run`", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				p := b.perform(tt.acts...)
				b.add(t, "one", "two")
				if result := b.serve(t)(); result.Status != tt.status || result.Reasons[0] != tt.reason || len(p.sessions) != tt.sessions {
					t.Errorf("status %d after %d sessions: %q", result.Status, len(p.sessions), result.Reasons)
				}
			})
		})
	}
}

// TestSessionsAtOnceThatFailTogether count as one failure of their agent.
func TestSessionsAtOnceThatFailTogether(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		endings  []ralph.Ending // of the sessions, in the order in which they begin; those after them are done
		status   int
		sessions int
	}{
		{"one error", []ralph.Ending{ralph.Network, ralph.Network}, ralph.ExitOK, 4},
		{"a second one after it", []ralph.Ending{ralph.Network, ralph.Network, ralph.Network}, ralph.ExitAgent, 4},
		{"for other reasons", []ralph.Ending{ralph.NoWork, ralph.MCPFailed, ralph.NoWork}, ralph.ExitAgent, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				var begun atomic.Int64
				b.Agent = deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
					n := int(begun.Add(1))
					time.Sleep(time.Duration(n) * time.Second)
					if n <= len(tt.endings) {
						return agent.Report{Ending: tt.endings[n-1], Reason: "why", CostKnown: true}, nil
					}
					write(t, filepath.Join(a.Dir, fmt.Sprint("made", n)), "")
					_, err := b.Store.Say(ctx, a.TaskID, a.SessionID, "agent", finish)
					return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
				})
				b.Parallel, b.Backoff = 2, loop.Backoff{Initial: time.Minute, Max: time.Minute, Tries: 1}
				b.add(t, "one", "two")
				if result := b.serve(t)(); result.Status != tt.status || int(begun.Load()) != tt.sessions {
					t.Errorf("status %d after %d sessions: %q", result.Status, begun.Load(), result.Reasons)
				}
			})
		})
	}
}

// TestALostDatabaseEndsTheSessionsBeside: their results could not be stored.
func TestALostDatabaseEndsTheSessionsBeside(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bench) {
		var begun atomic.Int64
		var stopped time.Duration
		b.Agent = deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
			if begun.Add(1) == 1 {
				time.Sleep(time.Minute)
				return agent.Report{Ending: ralph.Finished, CostKnown: true}, os.Remove(filepath.Join(b.Here.State, "ralph.db"))
			}
			began := time.Now()
			<-ctx.Done()
			stopped = time.Since(began)
			return agent.Report{Ending: ralph.Interrupted, CostKnown: true}, nil
		})
		b.Parallel, b.Limits.MaxSessions = 3, 2 // it does not begin more, and waits for these
		b.add(t, "one", "two")
		if _, err := b.Run(t.Context()); !errors.Is(err, store.ErrGone) || !strings.Contains(err.Error(), "decide on session ") {
			t.Errorf("the run ended with %v", err)
		}
		if stopped == 0 || stopped > 10*time.Minute {
			t.Errorf("the other one worked for %s", stopped)
		}
	})
}

// TestARunWorksOnSoManyTasks, however many sessions each of them takes.
func TestARunWorksOnSoManyTasks(t *testing.T) {
	t.Parallel()
	again, end := act{change: true, say: []signals.Payload{halt}}, act{change: true, say: []signals.Payload{finish}}
	for _, tt := range []struct {
		name   string
		limit  int
		acts   []act
		status int
		tasks  []int64 // the sessions' tasks
		reason string
	}{
		{"as many as there are", 2, []act{end}, ralph.ExitOK, []int64{1, 2}, "nothing is left to do"},
		{"fewer", 1, []act{end}, ralph.ExitLimit, []int64{1}, "the limit of 1 task per run is reached"},
		{"the last one may go on", 1, []act{again, again, end}, ralph.ExitLimit, []int64{1, 1, 1}, "the limit of 1 task per run is reached"},
		{"all of them may", 2, []act{again, end, again, end}, ralph.ExitOK, []int64{1, 1, 2, 2}, "nothing is left to do"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.Limits.MaxTasks = tt.limit
				p := b.perform(tt.acts...)
				b.add(t, "one", "two")
				result := b.serve(t)()
				var tasks []int64
				for _, a := range p.sessions {
					tasks = append(tasks, a.TaskID)
				}
				if result.Status != tt.status || result.Reasons[0] != tt.reason || !slices.Equal(tasks, tt.tasks) {
					t.Errorf("status %d (%q), sessions on %v", result.Status, result.Reasons, tasks)
				}
			})
		})
	}
}

// TestARemoteThatIsAwayIsNoReasonToWait where no lost machine may have handed anything over.
func TestARemoteThatIsAwayIsNoReasonToWait(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bench) {
		if err := b.Store.Tx(t.Context(), func(tx *store.Tx) error {
			return tx.WaitForRemote(time.Hour, time.Hour)
		}); err != nil {
			t.Fatal(err)
		}
		if r := b.serve(t)(); r.Status != ralph.ExitOK || r.Reasons[0] != "nothing is left to do" {
			t.Errorf("status %d (%q)", r.Status, r.Reasons)
		}
	})
}

// TestATaskWaitsForTheRemote that its work is built on.
func TestATaskWaitsForTheRemote(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bench) {
		b.Merger.Push, b.Limits.MaxSeconds = "origin", 600
		b.tx(t, func(tx *store.Tx) error { return tx.WaitForRemote(time.Hour, time.Hour) })
		b.add(t, "one")
		b.expect(t, b.serve(t)(), ralph.ExitLimit)
		if want := "waiting for the remote, which cannot be reached until Jan 1 01:00:00"; !slices.Contains(b.heart.statuses, want) {
			t.Errorf("it said %q, want %q", b.heart.statuses, want)
		}
	})
}

// TestARunEndsWithAWorkspaceThatCannotBeSetUp: no other one could.
func TestARunEndsWithAWorkspaceThatCannotBeSetUp(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bench) {
		b.Pool.Setup = []string{"echo no compiler; exit 3"}
		b.add(t, "one")
		result := b.serve(t)()
		if b.expect(t, result, ralph.ExitUsage); !strings.Contains(result.Reasons[0], "no compiler") {
			t.Errorf("it ended with %q", result.Reasons)
		}
	})
}

// TestAUsageWindowThatIsUsedUpIsWaitedFor by this run and by the next one.
func TestAUsageWindowThatIsUsedUpIsWaitedFor(t *testing.T) {
	t.Parallel()
	used := func(share float64) act {
		return act{change: true, say: []signals.Payload{finish}, report: agent.Report{Usage: []ralph.UsageWindow{
			{Name: "five_hour", Utilization: 0.1, ResetsAt: ralph.At(time.Date(2000, 1, 1, 0, 5, 0, 0, time.UTC))},
			{Name: "seven_day", Utilization: share, ResetsAt: ralph.At(time.Date(2000, 1, 1, 0, 9, 0, 0, time.UTC))},
		}}}
	}
	for _, tt := range []struct {
		name   string
		share  float64
		starts []string
	}{
		{"below the limit", 0.79, []string{"01 00:00", "01 00:00"}},
		{"at the limit", 0.8, []string{"01 00:00", "01 00:09"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.Limits.Usage, b.Limits.MaxSeconds = map[string]int{"five_hour": 80, "seven_day": 80}, 86400
				b.perform(used(tt.share), act{change: true, say: []signals.Payload{finish}})
				b.add(t, "one", "two")
				b.expect(t, b.serve(t)(), ralph.ExitOK, tt.starts...)
				said := slices.ContainsFunc(b.heart.statuses, func(s string) bool {
					return strings.HasPrefix(s, "waiting until Jan 1 00:09:00: usage limit: the window seven_day is used to 80%")
				})
				if said != (tt.share == 0.8) {
					t.Errorf("it said %q", b.heart.statuses)
				}
			})
		})
	}
	t.Run("by the next run", func(t *testing.T) {
		inBubble(t, func(t *testing.T, b *bench) {
			b.Limits.Usage, b.Limits.MaxSeconds = map[string]int{"five_hour": 80, "seven_day": 80}, 86400
			b.perform(used(0.9))
			b.add(t, "one")
			b.expect(t, b.serve(t)(), ralph.ExitOK, "01 00:00")
			b.add(t, "two")
			b.expect(t, b.serve(t)(), ralph.ExitOK, "01 00:00", "01 00:09")
		})
	})
	t.Run("unless nobody is to wait", func(t *testing.T) {
		inBubble(t, func(t *testing.T, b *bench) {
			b.Limits.Usage, b.NoWait = map[string]int{"five_hour": 80, "seven_day": 80}, true
			b.perform(used(0.9))
			b.add(t, "one", "two")
			result := b.serve(t)()
			b.expect(t, result, ralph.ExitAgent, "01 00:00")
			if want := "no session before 2000-01-01T00:09:00.000Z, and --no-wait: usage limit: the window seven_day is used to 90%, and limits.usage allows 80%"; result.Reasons[0] != want {
				t.Errorf("it says %q", result.Reasons)
			}
		})
	})
}

// TestALapsedClaimGoesBackToTheQueueOfARun: a worker that disappears holds
// nothing up for longer than its lease.
func TestALapsedClaimGoesBackToTheQueueOfARun(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bench) {
		b.Daemon, b.Limits.MaxSeconds = true, 86400
		p := b.perform(act{change: true, say: []signals.Payload{finish}})
		b.add(t, "one")
		if _, err := b.Claim(t.Context(), 1, "ann"); err != nil {
			t.Fatal(err)
		}
		b.stopAt(32 * time.Minute)
		b.expect(t, b.serve(t)(), ralph.ExitStopped, "01 00:30")
		if len(p.sessions) != 1 {
			t.Fatalf("%d sessions", len(p.sessions))
		}
		var sessions []ralph.Session
		if err := b.Store.View(t.Context(), func(tx *store.Tx) (err error) { sessions, err = tx.Sessions(store.SessionFilter{Task: 1}); return err }); err != nil {
			t.Fatal(err)
		}
		if len(sessions) != 2 || sessions[1].Ending != ralph.Lost || sessions[0].Outcome != ralph.OutcomeSuccess {
			t.Errorf("got %+v", sessions)
		}
	})
}

// TestTheThirdSessionOfAStuckTaskHasTheEscalationModel, as the agent is told.
func TestTheThirdSessionOfAStuckTaskHasTheEscalationModel(t *testing.T) {
	t.Parallel()
	stuck, moved := act{say: []signals.Payload{signals.Stuck{Reason: "no idea"}}}, act{change: true, say: []signals.Payload{halt}}
	for _, tt := range []struct {
		name       string
		escalation string
		acts       []act
		want       []string
	}{
		{"after two that were stuck", "opus", []act{stuck, stuck, stuck}, []string{"config", "config", "opus"}},
		{"not where it is switched off", "", []act{stuck, stuck, stuck}, []string{"config", "config", "config"}},
		{"progress takes it back", "opus", []act{stuck, stuck, moved, stuck, stuck, stuck}, []string{"config", "config", "opus", "config", "config", "opus"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.Models.Config, b.Models.Escalation = "config", tt.escalation
				p := b.perform(tt.acts...)
				b.add(t, "one")
				if result := b.serve(t)(); result.Status != ralph.ExitFailed {
					t.Errorf("got %+v", result)
				}
				var models []string
				for _, a := range p.sessions {
					models = append(models, a.Model)
				}
				if !slices.Equal(models, tt.want) {
					t.Errorf("got %q, want %q", models, tt.want)
				}
			})
		})
	}
}

// TestEachSessionOfATaskSpeaksForItself: each session of a task keeps its
// own signals, and is judged by these alone.
func TestEachSessionOfATaskSpeaksForItself(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bench) {
		learned := signals.Learned{Text: "it is slow", Kind: "discovery", Scope: "task"}
		p := b.perform(
			act{change: true, say: []signals.Payload{finish, learned, halt}}, // the last one closes it
			act{change: true}, // no signals: those of the session before do not count
			act{change: true, say: []signals.Payload{finish}},
			act{change: true, say: []signals.Payload{finish}},
		)
		b.add(t, "one", "two")
		b.expect(t, b.serve(t)(), ralph.ExitOK, "01 00:00", "01 00:00", "01 00:00", "01 00:00")
		type stored struct {
			Task    int64
			Attempt int
			Verbs   []ralph.Verb
			Closing ralph.Verb
			Outcome string
		}
		want := []stored{
			{1, 1, []ralph.Verb{"done", "learned", "partial"}, "partial", "success"},
			{1, 2, nil, "", "failure"},
			{1, 3, []ralph.Verb{"done"}, "done", "success"},
			{2, 1, []ralph.Verb{"done"}, "done", "success"},
		}
		var got []stored
		ids := map[string]bool{}
		err := b.Store.View(t.Context(), func(tx *store.Tx) error {
			for _, a := range p.sessions {
				ids[a.SessionID] = true
				s, err := tx.Session(a.SessionID)
				if err != nil {
					return err
				}
				k := stored{s.TaskID, s.Attempt, nil, s.ClosingVerb, s.Outcome}
				said, err := tx.SessionSignals(a.SessionID)
				if err != nil {
					return err
				}
				for _, s := range said {
					k.Verbs = append(k.Verbs, s.Payload.Verb())
				}
				got = append(got, k)
			}
			task, err := tx.Task(1)
			if task.Attempts != 3 {
				t.Errorf("%d attempts are counted of three", task.Attempts)
			}
			return err
		})
		if diff := cmp.Diff(want, got); err != nil || diff != "" || len(ids) != 4 {
			t.Errorf("%d ids, %v\n%s", len(ids), err, diff)
		}
	})
}

// TestTheWaitsForAnAgentGrow with each error in a row, even with interrupted
// or lost sessions in between. A session that worked resets them.
func TestTheWaitsForAnAgentGrow(t *testing.T) {
	t.Parallel()
	busy := act{report: agent.Report{Ending: ralph.Overloaded, Reason: "busy"}}
	end := act{change: true, say: []signals.Payload{finish}}
	halted := act{report: agent.Report{Ending: ralph.Interrupted, Reason: "interrupted: it was"}}
	lost := act{report: agent.Report{Ending: ralph.Lost, Reason: "lost: it is gone"}}
	for _, tt := range []struct {
		name  string
		acts  []act
		waits []int // after each session but the last: minimum in seconds; the maximum is twice that
	}{
		{"twice in a row", []act{busy, busy, end}, []int{20, 40, 0}},
		{"with one between them that worked", []act{busy, end, busy, end}, []int{20, 0, 20}},
		{"with one that was interrupted", []act{busy, halted, busy, end}, []int{20, 0, 40, 0}},
		{"with one that was lost", []act{busy, lost, busy, end}, []int{20, 0, 40, 0}},
		{"after one that did nothing, which is no wait", []act{{report: agent.Report{Ending: ralph.NoWork}}, busy, end}, []int{0, 20, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.Backoff = loop.Backoff{Initial: 40 * time.Second, Max: time.Hour, Tries: 3}
				b.Limits.MaxSeconds = 86400
				var began []time.Time
				p := b.perform(tt.acts...)
				b.Agent = deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
					began = append(began, time.Now())
					return p.Work(ctx, a)
				})
				b.add(t, "one", "two")
				if result := b.serve(t)(); result.Status != ralph.ExitOK || len(began) != len(tt.waits)+1 {
					t.Fatalf("%d sessions, %+v", len(began), result)
				}
				for i, least := range tt.waits {
					least := time.Duration(least) * time.Second
					if wait := began[i+1].Sub(began[i]) - p.takes; wait < least || wait > 2*least+time.Second {
						t.Errorf("after session %d it waits for %s, want about %s", i+1, wait, least)
					}
				}
			})
		})
	}
}
