package loop_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"ralph"
	"ralph/loop"
	"ralph/loop/agent"
	"ralph/loop/order"
	"ralph/signals"
	"ralph/store"
)

// A crew is the agents of a simulated project: each session takes a while and
// has a random result. Invariants are checked when a session begins and ends.
type crew struct {
	t *testing.T
	*bench
	seed uint64

	mu       sync.Mutex
	sessions map[int64]uint64 // of a task, so far
	most     int              // most that worked at once
}

// begin returns the random source of a task's next session, independent of other sessions.
func (c *crew) begin(task int64) *rand.Rand {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions[task]++
	return rand.New(rand.NewPCG(c.seed, uint64(task)<<32|c.sessions[task]))
}

// Work implements agent.Agent.
func (c *crew) Work(ctx context.Context, a agent.Assignment) (r agent.Report, err error) {
	c.invariants(a)
	random := c.begin(a.TaskID)
	takes := time.Duration(math.Exp(random.NormFloat64()) * float64(10*time.Second))
	r = agent.Report{Began: true, CostKnown: random.IntN(10) > 0, CostUSD: a.MaxCost * float64(random.IntN(100)) / 100}
	select {
	case <-ctx.Done():
		r.Ending = ralph.Interrupted
		return r, nil
	case <-time.After(takes):
	}
	defer c.invariants(a)
	var say signals.Payload
	switch r.Ending = ralph.Finished; random.IntN(12) {
	case 0:
		r.Ending, r.Reason = ralph.RateLimited, "for a minute"
		r.ResetAt = time.Now().Add(time.Minute)
		return r, nil
	case 1:
		r.Ending, r.Reason = ralph.Overloaded, "for now"
		return r, nil
	case 2:
		r.Ending, r.Reason = ralph.Lost, "lost: its supervisor died"
		return r, nil
	case 3:
		say = signals.Stuck{Reason: "no idea"}
	case 4, 5:
		say = signals.Partial{Summary: "a part", Remaining: "the rest"}
	default:
		say = signals.Done{Summary: "made it"}
	}
	if err := os.WriteFile(filepath.Join(a.Dir, "made-"+a.SessionID), nil, 0o600); err != nil {
		return r, err
	}
	_, err = c.Store.Say(context.WithoutCancel(ctx), a.TaskID, a.SessionID, "agent", say)
	return r, err
}

func (*crew) Salvage(string, agent.Death) (agent.Report, error) { return agent.Report{}, nil }

// invariants checks the rules that hold at any moment.
func (c *crew) invariants(a agent.Assignment) {
	err := c.Store.View(context.Background(), func(tx *store.Tx) error {
		open, err := tx.OpenSessions()
		if err != nil {
			return err
		}
		if c.mu.Lock(); len(open) > c.most {
			c.most = len(open)
		}
		c.mu.Unlock()
		if len(open) > c.Parallel {
			c.t.Errorf("%d sessions at once, %d may be", len(open), c.Parallel)
		}
		bounds, err := tx.DisciplineBounds()
		if err != nil {
			return err
		}
		tasks, jobs, kinds := map[int64]bool{}, map[int]bool{}, map[string]int{}
		for _, s := range open {
			t, err := tx.Task(s.TaskID)
			if err != nil {
				return err
			}
			if kinds[t.Discipline]++; tasks[s.TaskID] || jobs[s.Number] || t.Status != ralph.InProgress ||
				bounds[t.Discipline] > 0 && kinds[t.Discipline] > bounds[t.Discipline] {
				c.t.Errorf("session %s, number %d, on TASK-%d, which is %s, beside %d of %q", s.ID, s.Number, t.ID, t.Status, kinds[t.Discipline], t.Discipline)
			}
			tasks[s.TaskID], jobs[s.Number] = true, true
			for _, on := range t.DependsOn {
				if d, err := tx.Task(on); err != nil || d.Status != ralph.Completed {
					c.t.Errorf("TASK-%d is worked on before TASK-%d, which is %s (%v)", t.ID, on, d.Status, err)
				}
			}
		}
		s, err := tx.Spending(open[0].RunID, store.Since{Day: order.Midnight(time.Now())}, [4]float64{})
		if s.DayUSD+s.DayReserved > c.Limits.MaxDayCostUSD+1e-6 || s.USD+s.Reserved > c.Limits.MaxCostUSD+1e-6 {
			c.t.Errorf("more may be spent than the limits allow: %+v of %+v", s, c.Limits)
		}
		if a.MaxCost <= 0 {
			c.t.Errorf("a session may spend $%g", a.MaxCost)
		}
		return err
	})
	if err != nil {
		c.t.Error(err)
	}
}

// TestSimulated has crews of up to eight work through tasks that depend on each
// other, with agents that fail in every way, limits that are reached and runs that
// are stopped at any moment. RALPH_TEST_SEED is the first of RALPH_TEST_STORM seeds.
func TestSimulated(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: make check has it")
	}
	t.Parallel()
	number := func(name string, otherwise int) uint64 {
		n, err := strconv.ParseUint(os.Getenv(name), 10, 64)
		if err != nil {
			return uint64(otherwise)
		}
		return n
	}
	first := number("RALPH_TEST_SEED", 1)
	for seed := first; seed < first+number("RALPH_TEST_STORM", 2); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { inBubble(t, func(t *testing.T, b *bench) { simulate(t, b, seed) }) })
	}
}

// answerAll plays people who decide every open item.
func answerAll(tx *store.Tx) error {
	held, err := tx.Tasks(store.TaskFilter{Statuses: []ralph.Status{ralph.Failed, ralph.Blocked}})
	for i := 0; err == nil && i < len(held); i++ {
		if held[i].Waits.Blockers > 0 || held[i].Status == ralph.Failed {
			err = tx.Retry(held[i].ID, "ann")
		}
	}
	return err
}

func simulate(t *testing.T, b *bench, seed uint64) {
	t.Helper()
	const tasks = 12
	draw := rand.New(rand.NewPCG(seed, 0)).IntN
	c := &crew{t: t, bench: b, seed: seed, sessions: map[int64]uint64{}}
	b.Agent, b.Parallel, b.Heart = c, 2+draw(7), nil
	b.Limits.MaxCostUSD, b.Limits.MaxDayCostUSD, b.Limits.SessionMinUSD = float64(20+draw(60)), float64(30+draw(60)), 0.5
	b.Limits.MaxSeconds, b.Limits.SessionCostUSD, b.Limits.Attempts = 24*3600, float64(1+draw(10)), 1000
	b.Rules.StuckLimit, b.Rules.Attempts, b.Rules.Scope = 1000, 1000, signals.PolicyNote
	b.Backoff = loop.Backoff{Initial: time.Second, Max: time.Minute, Tries: 100}
	b.Limits.MaxSessions = 10 + draw(40)
	err := b.Store.Tx(t.Context(), func(tx *store.Tx) error {
		if err := tx.PutDiscipline(ralph.Discipline{Name: "ui", Parallel: 1 + draw(2)}); err != nil {
			return err
		}
		for i := range tasks {
			task := ralph.Task{Title: fmt.Sprint("task ", i), Priority: draw(4), Discipline: []string{"", "", "ui"}[draw(3)]}
			if i > 0 && draw(3) == 0 {
				task.DependsOn = []int64{int64(1 + draw(i))}
			}
			if draw(2) == 0 {
				task.Files = []string{fmt.Sprintf("%d/**", draw(4))}
			}
			if _, err := tx.AddTask(task, "human"); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for runs := 0; ; runs++ {
		ctx, cancel := context.WithCancel(t.Context())
		if draw(2) == 0 {
			time.AfterFunc(time.Duration(draw(300))*time.Second, cancel)
		}
		result, err := b.Run(ctx)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		var open []ralph.Session
		var counts map[ralph.Status]int
		if err := b.Store.View(t.Context(), func(tx *store.Tx) (err error) {
			if open, err = tx.OpenSessions(); err != nil {
				return err
			}
			counts, err = tx.Counts()
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if len(open) > 0 {
			t.Fatalf("run %d ended with %v and has left %d sessions", result.RunID, result.Reasons, len(open))
		}
		if counts[ralph.Completed] == tasks {
			t.Logf("%d tasks by %v sessions, %d at once of %d, in %d runs", tasks, c.sessions, c.most, b.Parallel, runs+1)
			break
		}
		if runs > 300 {
			t.Fatalf("after %d runs tasks are %v: %v", runs, counts, result.Reasons)
		}
		if err := b.Store.Tx(t.Context(), answerAll); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(draw(12)) * time.Hour)
	}
	if c.most < 2 {
		t.Errorf("%d sessions have worked at once, %d may", c.most, b.Parallel)
	}
}
