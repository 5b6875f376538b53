package loop_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/internal/proc"
	"ralph/loop"
	"ralph/loop/agent"
	"ralph/signals"
	"ralph/store"
)

// A reader is an agent that records its prompt and signals done.
type reader struct {
	db      *store.DB
	mu      sync.Mutex
	prompts []string
	tasks   []int64
}

func (r *reader) Work(ctx context.Context, a agent.Assignment) (agent.Report, error) {
	r.mu.Lock()
	r.prompts, r.tasks = append(r.prompts, a.Prompt), append(r.tasks, a.TaskID)
	r.mu.Unlock()
	if err := os.WriteFile(filepath.Join(a.Dir, a.SessionID), nil, 0o600); err != nil {
		return agent.Report{}, err
	}
	_, err := r.db.Say(ctx, a.TaskID, a.SessionID, "agent", signals.Done{Summary: "made it"})
	return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
}

func (*reader) Salvage(string, agent.Death) (agent.Report, error) { return agent.Report{}, nil }

// run works through the queue; once, between picking a task and claiming it, something happens.
func (b *workshop) run(l *loop.Loop, between func()) (loop.Result, *reader) {
	b.t.Helper()
	agent := &reader{db: b.db}
	l.Agent = agent
	l.Limits = ralph.Limits{
		MaxSessions: 20, MaxTasks: 20, MaxSeconds: 3600, MaxCostUSD: 100, MaxDayCostUSD: 100, MaxMonthCostUSD: 100, SessionSeconds: 3600, IdleSeconds: 3600,
		SessionTurns: 10, SessionCostUSD: 10, Attempts: 10, StagnantMaximum: 20,
	}
	var once sync.Once
	whileReadied(l, func() { once.Do(between) })
	ctx, cancel := context.WithCancel(b.t.Context())
	defer cancel()
	b.cancel = cancel
	result, err := l.Run(ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	return result, agent
}

// whileReadied calls f while a workspace is made ready: after a task was picked for it, and before it is claimed.
func whileReadied(l *loop.Loop, f func()) {
	l.Pool.Setup = []string{":"}
	l.Pool.Enter = func(*proc.Spec) (func(), error) { f(); return func() {}, nil }
}

func (b *workshop) tx(f func(tx *store.Tx) error) {
	b.t.Helper()
	if err := b.db.Tx(b.t.Context(), f); err != nil {
		b.t.Fatal(err)
	}
}

// A person's comment while a session is prepared counts for that session.
func TestAWordBeforeTheClaimCounts(t *testing.T) {
	t.Parallel()
	t.Run("a comment", func(t *testing.T) {
		b := newWorkshop(t)
		id := b.add(ralph.Task{Title: "A"})
		_, agent := b.run(b.tree(), func() {
			b.tx(func(tx *store.Tx) error {
				_, err := tx.AddComment(ralph.Comment{TaskID: id, Author: "eve", AuthorKind: ralph.ByHuman, Kind: ralph.Note, Body: "mind the gap"})
				return err
			})
		})
		if len(agent.prompts) != 1 || !strings.Contains(agent.prompts[0], "mind the gap") {
			t.Errorf("it was told %q", agent.prompts)
		}
	})
	t.Run("an edit of the verification", func(t *testing.T) {
		b := newWorkshop(t)
		id := b.add(ralph.Task{Title: "A", Verify: []string{"true"}})
		l := b.tree()
		l.Rules.VerifyFailures = 1
		b.run(l, func() {
			b.tx(func(tx *store.Tx) error {
				return tx.UpdateTask(ralph.Task{ID: id, Title: "B", Verify: []string{"false"}})
			})
		})
		if task := b.task(id); task.Status != ralph.Failed || !strings.Contains(task.StatusReason, "`false` exits 1") {
			t.Errorf("got %s: %s", task.Status, task.StatusReason)
		}
	})
	t.Run("an edit of the feature", func(t *testing.T) {
		b := newWorkshop(t)
		b.tx(func(tx *store.Tx) error { return tx.PutFeature(ralph.Feature{Name: "f"}) })
		id := b.add(ralph.Task{Title: "A", Feature: "f"})
		l := b.tree()
		l.Rules.VerifyFailures = 1
		b.run(l, func() {
			b.tx(func(tx *store.Tx) error {
				f, err := tx.Feature("f")
				if err != nil {
					return err
				}
				f.Verify = []string{"false"}
				return tx.PutFeature(f)
			})
		})
		if task := b.task(id); task.Status != ralph.Failed {
			t.Errorf("got %s: %s", task.Status, task.StatusReason)
		}
	})
}

// If somebody else claims the task that the loop has just picked, the loop works on the others.
func TestALostRaceIsNoError(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		happen func(b *workshop, id int64) // nil: a signal
		status ralph.Status                // of the first task, at the end
		exit   int
		worked []int64
	}{
		{"a worker claims it", func(b *workshop, id int64) { b.claim(b.tree(), id, "ann") }, ralph.InProgress, ralph.ExitOK, []int64{2}},
		{"a person claims it", func(b *workshop, id int64) {
			if _, _, err := b.tree().ClaimFor(b.t.Context(), id, "eve"); err != nil {
				b.t.Error(err)
			}
		}, ralph.InProgress, ralph.ExitOK, []int64{2}},
		{"a person cancels it", func(b *workshop, id int64) {
			b.tx(func(tx *store.Tx) error { return tx.Move(id, ralph.Cancelled, ralph.Person, "not wanted") })
		}, ralph.Cancelled, ralph.ExitOK, []int64{2}},
		{"a person puts it behind the other", func(b *workshop, id int64) {
			b.tx(func(tx *store.Tx) error { return tx.MoveRank(id, id+1, true) })
		}, ralph.Completed, ralph.ExitOK, []int64{1, 2}},
		{"a person stops the run", func(b *workshop, id int64) {
			b.tx(func(tx *store.Tx) error { return tx.Control(ralph.ControlStop) })
		}, ralph.Pending, ralph.ExitStopped, nil},
		{"a signal stops the run", nil, ralph.Pending, ralph.ExitStopped, nil},
		{"a second signal stops it at once", func(b *workshop, _ int64) { b.cancel() }, ralph.Pending, ralph.ExitStopped, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newWorkshop(t)
			id := b.add(ralph.Task{Title: "A"})
			b.add(ralph.Task{Title: "B"})
			l := b.tree()
			stop := make(chan struct{})
			l.Stop = stop
			result, agent := b.run(l, func() {
				if tt.happen == nil {
					close(stop)
				} else {
					tt.happen(b, id)
				}
			})
			if task := b.task(id); task.Status != tt.status || result.Status != tt.exit {
				t.Errorf("got %s, exit status %d (%q)", task.Status, result.Status, result.Reasons)
			}
			if !slices.Equal(agent.tasks, tt.worked) {
				t.Errorf("it worked on %v, want %v", agent.tasks, tt.worked)
			}
		})
	}
}

// TestAClaimWhoseServerIsLost in the midst, and whose task has changed when it is tried again, is of that task.
func TestAClaimWhoseServerIsLost(t *testing.T) {
	t.Parallel()
	name := pgtest.New(t)
	raw := pgtest.Raw(t, name)
	other, err := store.Open(t.Context(), name, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	id, lost := int64(0), false
	b := &workshop{t: t, state: filepath.Join(t.TempDir(), "state")}
	if b.db, err = store.Open(t.Context(), name, store.Options{Statement: func(query string) {
		if lost || !strings.HasPrefix(query, "INSERT INTO sessions") {
			return
		}
		lost = true
		_, err := raw.ExecContext(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND state = 'idle in transaction'`)
		if err == nil {
			err = other.Tx(t.Context(), func(tx *store.Tx) error {
				_, err := tx.AddComment(ralph.Comment{TaskID: id, Author: "eve", AuthorKind: ralph.ByHuman, Kind: ralph.Note, Body: "wait"})
				return err
			})
		}
		if err != nil {
			t.Error(err)
		}
	}}); err != nil {
		t.Fatal(err)
	}
	defer b.db.Close()
	id = b.add(ralph.Task{Title: "A"})
	c, err := b.tree().Claim(t.Context(), id, "ann")
	if err != nil || !lost {
		t.Fatalf("lost: %t; %v", lost, err)
	}
	if task := b.task(id); task.Status != ralph.InProgress || task.ClaimedBy != c.SessionID() {
		t.Errorf("got %s, claimed by %q", task.Status, task.ClaimedBy)
	}
}
