package loop_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/loop"
	"ralph/loop/agent"
	"ralph/signals"
	"ralph/store"
)

// speaker is an agent that gives every kind of signal and leaves a file.
type speaker struct{ db *store.DB }

func (s speaker) Work(ctx context.Context, a agent.Assignment) (agent.Report, error) {
	no := false
	for _, p := range []signals.Payload{
		signals.Learned{Text: "the cache lives in /var/cache", Kind: "discovery", Scope: "project"},
		signals.Suggest{What: "Clean the cache", Kind: "new_task", Why: "it grows"},
		signals.Ask{Question: "is that right?", Blocking: &no},
		signals.Done{Summary: "made it"},
	} {
		if _, err := s.db.Say(ctx, a.TaskID, a.SessionID, "agent", p); err != nil {
			// A signal without a confirmation was not given; the agent goes on without it.
			return agent.Report{Ending: ralph.Finished, CostKnown: true}, nil
		}
	}
	return agent.Report{Ending: ralph.Finished, CostUSD: 1, CostKnown: true}, os.WriteFile(filepath.Join(a.Dir, a.SessionID), nil, 0o600)
}

func (speaker) Salvage(string, agent.Death) (agent.Report, error) { return agent.Report{}, nil }

// TestAnyWriteMayFail has the database refuse every write from the Nth event on, for every N,
// as a full disk would. ralph reports this and ends; the next run finds a consistent state.
func TestAnyWriteMayFail(t *testing.T) {
	t.Parallel()
	failed := 0
	for after := 1; ; after++ { // start after the task
		if !failAfter(t, after) {
			break
		}
		failed++
	}
	if failed < 12 {
		t.Errorf("only %d writes were made to fail", failed)
	}
}

// failAfter reports whether a write was refused.
func failAfter(t *testing.T, events int) (refused bool) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, ".ralph", "ralph.db")
	db, err := store.Open(t.Context(), pgtest.Path(t, path), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.AddTask(ralph.Task{Title: "One", Priority: 2}, "human")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	run := func() (loop.Result, error) {
		l := newLoop(t, db, dir, speaker{db})
		l.Limits.MaxSessions = 20
		return l.Run(t.Context())
	}
	raw := pgtest.Raw(t, path)
	allow := pgtest.Refuse(t, raw, "INSERT", "events", fmt.Sprintf("(SELECT count(*) FROM events) >= %d", events), "the disk is full")
	result, err := run()
	switch {
	case err == nil && result.Status == ralph.ExitOK:
		return false
	case err != nil && !strings.Contains(err.Error(), "the disk is full"), err == nil && result.Status == ralph.ExitFailure:
		t.Errorf("after %d events: got %+v, %v", events, result, err)
	}
	allow()
	if result, err = run(); err != nil || result.Status != ralph.ExitOK {
		t.Errorf("after %d events, the next run: got %+v, %v", events, result, err)
	}
	for what, query := range map[string]string{
		"tasks that are not completed":      `SELECT count(*) FROM tasks WHERE origin = 'human' AND status <> 'completed'`,
		"sessions without an end":           `SELECT count(*) FROM sessions WHERE completed_at = ''`,
		"learned signals without effect":    `SELECT count(*) FROM task_comments c WHERE c.signal_verb = 'learned' AND (SELECT count(*) FROM learning_comments l WHERE l.comment_id = c.id) <> 1`,
		"learnings counted wrongly":         `SELECT count(*) FROM learnings l WHERE l.times_seen <> (SELECT count(*) FROM learning_comments c WHERE c.learning_id = l.id)`,
		"proposals too many":                `SELECT count(*) / 2 FROM tasks WHERE origin = 'agent'`,
		"tasks without one accepted done":   `SELECT count(*) FROM tasks t WHERE t.origin = 'human' AND (SELECT count(*) FROM sessions s WHERE s.task_id = t.id AND s.outcome = 'success') <> 1`,
		"runs without an end":               `SELECT count(*) FROM runs WHERE ended_at = ''`,
		"signals without their event":       `SELECT (SELECT count(*) FROM task_comments WHERE signal_verb IS NOT NULL) - (SELECT count(*) FROM events WHERE type = 'task.signal')`,
		"sessions without their last event": `SELECT (SELECT count(*) FROM sessions) - (SELECT count(*) FROM events WHERE type = 'session.ended')`,
	} {
		var n int
		if err := raw.QueryRowContext(t.Context(), query).Scan(&n); err != nil || n != 0 {
			t.Errorf("after %d events: %d %s (%v)", events, n, what, err)
		}
	}
	if problems, err := db.Examine(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("after %d events: %q, %v", events, problems, errors.Join(err))
	}
	return true
}
