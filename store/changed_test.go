package store_test

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/store"
)

// patient is the time limit for a change to be noticed.
const patient = 20 * time.Second

func addNote(t *testing.T, db *store.DB) {
	t.Helper()
	write(t, db, func(tx *store.Tx) error {
		_, err := tx.AddTask(ralph.Task{Title: "A", Priority: 2}, "human")
		return err
	})
}

func noticed(t *testing.T, what string, changed <-chan struct{}) {
	t.Helper()
	select {
	case <-changed:
	case <-time.After(patient):
		t.Fatalf("%s was not noticed", what)
	}
}

func TestChangesAreNoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ralph.db")
	db, other := open(t, path), open(t, path)
	changed := db.Changed()
	if again := db.Changed(); again != changed {
		t.Error("two who wait are told by two channels")
	}
	addNote(t, other)
	noticed(t, "a commit of another connection", changed)
	changed = db.Changed()
	addNote(t, db)
	noticed(t, "a commit of its own", changed)

	// Events between a look and the next wait are not missed.
	addNote(t, other)
	noticed(t, "a commit while nobody waited", db.Changed())

	if !pgtest.Used() {
		changed = db.Changed()
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		noticed(t, "the loss of the file", changed)
	}

	other.Changed()
	changed = db.Changed()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	noticed(t, "the end", changed)
	noticed(t, "that it is closed", db.Changed())
}

// TestWaitingReadsNoTable: waiting only asks whether there was a commit, and is not woken without
// one.
func TestWaitingReadsNoTable(t *testing.T) {
	pgtest.Files(t)
	var mu sync.Mutex
	var told []string
	looked := make(chan struct{}, 1)
	db, err := store.Open(t.Context(), pgtest.Path(t, filepath.Join(t.TempDir(), "ralph.db")), store.Options{Statement: func(query string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, query)
		if len(told) > 5 {
			select {
			case looked <- struct{}{}:
			default:
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	mu.Lock()
	told = nil
	mu.Unlock()
	changed := db.Changed()
	if err := db.Tx(t.Context(), func(*store.Tx) error { return nil }); err != nil { // changes nothing
		t.Fatal(err)
	}
	select {
	case <-looked:
	case <-changed:
		t.Error("it was woken by nothing")
	case <-time.After(patient):
		t.Fatal("nobody looked")
	}
	mu.Lock()
	defer mu.Unlock()
	if slices.ContainsFunc(told, func(q string) bool { return q != "PRAGMA data_version" }) {
		t.Errorf("waiting asked %q", told)
	}
}
