package loop_test

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/loop"
	"ralph/loop/session"
	"ralph/signals"
	"ralph/store"
)

// TestAClaimLapses: a worker that does not call during its lease loses its
// task. Its signals count, and it cannot go on.
func TestAClaimLapses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var passed atomic.Int64
	begin := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	db, err := store.Open(t.Context(), pgtest.Path(t, filepath.Join(dir, ".ralph", "ralph.db")), store.Options{Now: func() time.Time { return begin.Add(time.Duration(passed.Load())) }})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	l := newLoop(t, db, dir, nil)
	if err := db.Tx(t.Context(), func(tx *store.Tx) error { _, err := tx.AddTask(ralph.Task{Title: "A"}, "human"); return err }); err != nil {
		t.Fatal(err)
	}
	status := func() (task ralph.Task) {
		t.Helper()
		if err := db.View(t.Context(), func(tx *store.Tx) (err error) { task, err = tx.Task(1); return err }); err != nil {
			t.Fatal(err)
		}
		return task
	}
	first, err := l.Claim(t.Context(), 1, "ann")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Claim(t.Context(), 1, "bob"); !errors.Is(err, ralph.ErrConflict) {
		t.Errorf("a second claim: %v, want ErrConflict", err)
	}
	passed.Store(int64(session.Lease - time.Second))
	if err := first.Renew(t.Context()); err != nil { // this renews it
		t.Error(err)
	}
	if _, err := db.Say(t.Context(), 1, first.SessionID(), "ann", signals.Learned{Text: "x is y", Kind: "discovery", Scope: "project"}); err != nil {
		t.Fatal(err)
	}
	passed.Store(int64(2*session.Lease - 2*time.Second))
	if err := l.Lapse(t.Context()); err != nil || status().Status != ralph.InProgress {
		t.Errorf("before its time: %v, %s", err, status().Status)
	}
	passed.Store(int64(2 * session.Lease))
	second, err := l.Claim(t.Context(), 1, "bob")
	if err != nil {
		t.Fatalf("a lapsed claim is still held: %v", err)
	}
	var dropped *loop.DroppedError
	if err := first.Renew(t.Context()); !errors.As(err, &dropped) || !strings.HasPrefix(dropped.Why, "it has lapsed") {
		t.Errorf("the first worker is not told: %v", err)
	}
	if task := status(); task.Attempts != 0 || task.StuckCount != 0 || task.ClaimedBy != second.SessionID() {
		t.Errorf("got %+v", task)
	}
	if err := db.View(t.Context(), func(tx *store.Tx) error {
		known, err := tx.Learnings(store.LearningFilter{})
		if len(known) != 1 {
			t.Errorf("what was learned is lost: %v", known)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Release(t.Context()); err != nil || status().Status != ralph.Pending {
		t.Errorf("released: %v, %s", err, status().Status)
	}
}

// TestWorkersClaimOneAfterTheOther: nobody scans a work tree for a task
// that somebody else is about to claim.
func TestWorkersClaimOneAfterTheOther(t *testing.T) {
	t.Parallel()
	const workers = 8
	dir := t.TempDir()
	db, err := store.Open(t.Context(), pgtest.Path(t, filepath.Join(dir, ".ralph", "ralph.db")), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.AddTask(ralph.Task{Title: "A"}, "human")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	var looks, taken atomic.Int64
	var all sync.WaitGroup
	begin := make(chan struct{})
	for range workers {
		l := newLoop(t, db, dir, nil)
		whileReadied(l, func() {
			looks.Add(1)
			time.Sleep(100 * time.Millisecond) // as in a large work tree
		})
		all.Go(func() {
			<-begin
			_, err := l.Claim(t.Context(), 1, "ann")
			if err == nil {
				taken.Add(1)
			} else if !errors.Is(err, ralph.ErrConflict) {
				t.Error(err)
			}
		})
	}
	close(begin)
	all.Wait()
	if looks.Load() != 1 || taken.Load() != 1 {
		t.Errorf("%d of %d workers looked at their work tree for one task, and %d took it", looks.Load(), workers, taken.Load())
	}
}
