package store_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/store"
)

// A moment is one of a history: somebody has something from then on, or has given it back, or is told of an event.
type moment struct {
	who  int
	what string // "lease", "TASK-3"; of an event its id
	kind kind
}

type kind int

const (
	takes kind = iota
	leaves
	reads
	writes
)

// A history has the operations of several processes on one database, in the order of their answers.
type history struct {
	mu   sync.Mutex
	list []moment
}

func (h *history) add(who int, k kind, what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, moment{who, what, k})
}

// wrong returns the faults of a history: two holders at once, a task that is claimed a second time, and an event that a
// reader missed although it went on after its last one.
func wrong(list []moment) (found []string) {
	has, claimed, read := map[string]int{}, map[string]bool{}, map[string]bool{}
	for _, m := range list {
		switch by, held := has[m.what]; {
		case m.kind == takes && held:
			found = append(found, fmt.Sprintf("%s is held by %d and by %d", m.what, by, m.who))
		case m.kind == takes && claimed[m.what]:
			found = append(found, m.what+" is claimed a second time")
		case m.kind == takes:
			has[m.what], claimed[m.what] = m.who, strings.HasPrefix(m.what, "TASK-")
		case m.kind == leaves:
			delete(has, m.what)
		case m.kind == reads:
			read[m.what] = true
		}
	}
	for _, m := range list {
		if m.kind == writes && !read[m.what] {
			found = append(found, "nobody was told of event "+m.what)
		}
	}
	return found
}

func TestFaultsOfAHistory(t *testing.T) {
	for _, tt := range []struct {
		name string
		list []moment
		n    int
	}{
		{"one after the other", []moment{{1, "lease", takes}, {1, "lease", leaves}, {2, "lease", takes}, {2, "lease", leaves}}, 0},
		{"two at once", []moment{{1, "lease", takes}, {2, "lease", takes}}, 1},
		{"a task twice", []moment{{1, "TASK-1", takes}, {1, "TASK-1", leaves}, {2, "TASK-1", takes}}, 1},
		{"an event that was read", []moment{{1, "7", writes}, {2, "7", reads}}, 0},
		{"an event that was not", []moment{{1, "7", writes}, {2, "8", reads}}, 1},
	} {
		if found := wrong(tt.list); len(found) != tt.n {
			t.Errorf("%s: %q", tt.name, found)
		}
	}
}

// eachDatabase runs a test on a file and on a PostgreSQL, if there is one.
func eachDatabase(t *testing.T, f func(t *testing.T, name string)) {
	t.Run("sqlite", func(t *testing.T) { pgtest.Files(t); f(t, filepath.Join(t.TempDir(), "ralph.db")) })
	t.Run("postgres", func(t *testing.T) { f(t, pgtest.New(t)) })
}

// handle opens a database as another process would.
func handle(t *testing.T, name string, opts store.Options) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), name, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// readAll adds all events that a reader sees from an id on, and returns the last one.
func (h *history) readAll(ctx context.Context, db *store.DB, after int64) (int64, error) {
	for e, err := range db.EventsAfter(ctx, after) {
		if err != nil {
			return after, err
		}
		after = e.ID
		h.add(0, reads, fmt.Sprint(e.ID))
	}
	return after, nil
}

// TestTheHistoryOfACrowd: four processes claim tasks and take a lease, and one reads the events.
func TestTheHistoryOfACrowd(t *testing.T) {
	eachDatabase(t, func(t *testing.T, name string) {
		const crowd, tasks = 4, 6
		reader := handle(t, name, store.Options{})
		var h history
		write(t, reader, func(tx *store.Tx) (err error) {
			for i := range tasks {
				if _, err = tx.AddTask(ralph.Task{Title: fmt.Sprint("Task ", i), Priority: 2}, "human"); err != nil {
					return err
				}
			}
			return nil
		})
		var work sync.WaitGroup
		for who := range crowd {
			db := handle(t, name, store.Options{})
			work.Go(func() {
				for task := range int64(tasks) {
					err := db.Tx(t.Context(), func(tx *store.Tx) error {
						_, err := tx.StartSession(store.Start{ID: uuid.NewString(), Task: task + 1})
						return err
					})
					if err == nil {
						h.add(who, takes, fmt.Sprint("TASK-", task+1))
					} else if !errors.Is(err, ralph.ErrConflict) {
						t.Error(err)
					}
					release, holder, err := db.Lease(t.Context(), "merge", time.Minute)
					if err != nil || holder != "" {
						t.Errorf("%d waits for %q: %v", who, holder, err)
						return
					}
					h.add(who, takes, "lease")
					h.add(who, leaves, "lease")
					if err := release(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		over := make(chan struct{})
		go func() { work.Wait(); close(over) }()
		var last int64
		for ended := false; !ended; {
			changed := reader.Changed()
			select {
			case <-over:
				ended = true
			default:
			}
			var err error
			if last, err = h.readAll(t.Context(), reader, last); err != nil {
				t.Fatal(err)
			}
			select {
			case <-over:
			case <-changed:
			}
		}
		var all history
		if _, err := all.readAll(t.Context(), reader, 0); err != nil {
			t.Fatal(err)
		}
		for _, m := range all.list {
			h.add(m.who, writes, m.what)
		}
		if found := wrong(h.list); len(found) > 0 {
			t.Errorf("%q", found)
		}
		claims := 0
		for _, m := range h.list {
			if m.kind == takes && strings.HasPrefix(m.what, "TASK-") {
				claims++
			}
		}
		if claims != tasks {
			t.Errorf("%d of %d tasks were claimed", claims, tasks)
		}
	})
}

// TestWithoutTheLockTheHistoryIsWrong: without the writer's lock, the check of a history finds faults: two processes
// have a lease at once, and a reader misses an event.
func TestWithoutTheLockTheHistoryIsWrong(t *testing.T) {
	for _, locked := range []bool{true, false} {
		t.Run(fmt.Sprint("locked ", locked), func(t *testing.T) {
			name := pgtest.New(t)
			var h history
			reader, second := handle(t, name, store.Options{}), handle(t, name, store.Options{})
			patience := 10 * time.Second
			if locked {
				patience = 300 * time.Millisecond // the other one waits for us
			}
			var once sync.Once
			also := func() error { return nil } // releases it for the other one
			done := make(chan error, 1)
			first := handle(t, name, store.Options{Statement: func(query string) {
				if !strings.HasPrefix(query, "INSERT INTO leases") {
					return
				}
				once.Do(func() { // it has looked and found the lease free
					go func() {
						free, holder, err := second.Lease(t.Context(), "merge", time.Nanosecond)
						if err == nil && holder == "" {
							h.add(2, takes, "lease")
							also = free
						}
						done <- err
					}()
					select {
					case err := <-done:
						done <- err
					case <-time.After(patience):
					}
				})
			}})
			if !locked {
				first.WithoutLock()
				second.WithoutLock()
			}
			release, holder, err := first.Lease(t.Context(), "merge", time.Minute)
			if err != nil || holder != "" {
				t.Fatal(holder, err)
			}
			h.add(1, takes, "lease")
			if err := errors.Join(<-done, release(), also()); err != nil {
				t.Fatal(err)
			}

			add := func(db *store.DB, title string, then func()) {
				t.Helper()
				write(t, db, func(tx *store.Tx) error {
					_, err := tx.AddTask(ralph.Task{Title: title, Priority: 2}, "human")
					then()
					return err
				})
			}
			var last int64
			ended := make(chan struct{})
			add(first, "Begun first", func() {
				go func() { defer close(ended); add(second, "Begun later", func() {}) }()
				select {
				case <-ended:
				case <-time.After(patience):
				}
				if last, err = h.readAll(t.Context(), reader, last); err != nil {
					t.Error(err)
				}
			})
			<-ended
			var all history
			if _, err = h.readAll(t.Context(), reader, last); err == nil {
				_, err = all.readAll(t.Context(), reader, 0)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range all.list {
				h.add(m.who, writes, m.what)
			}
			found := strings.Join(wrong(h.list), "\n")
			if locked && found != "" || !locked && (!strings.Contains(found, "lease is held") || !strings.Contains(found, "nobody was told")) {
				t.Errorf("found %q", found)
			}
		})
	}
}

// TestOneOfAMachineWaitsForTheLock: a machine that is frozen holds the others up once, and not once for each of its
// sessions.
func TestOneOfAMachineWaitsForTheLock(t *testing.T) {
	name := pgtest.New(t)
	frozen, other := handle(t, name, store.Options{}), handle(t, name, store.Options{})
	thaw, has := make(chan struct{}), make(chan struct{}, 3)
	var work sync.WaitGroup
	writes := func(db *store.DB, then func()) {
		work.Go(func() {
			if err := db.Tx(t.Context(), func(tx *store.Tx) error { tx.Now(); then(); return tx.Touch() }); err != nil {
				t.Error(err)
			}
		})
	}
	for range cap(has) {
		writes(frozen, func() { has <- struct{}{}; <-thaw })
	}
	<-has // and the lock, as it knows the time
	writes(other, func() {})
	for waits := 0; waits == 0; {
		if err := other.View(t.Context(), func(tx *store.Tx) error {
			return tx.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
				AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&waits)
		}); err != nil {
			t.Fatal(err)
		}
		if waits > 1 {
			t.Fatalf("%d wait for the lock", waits)
		}
	}
	close(thaw)
	work.Wait()
}

// TestATransactionIsTriedAgain whose server was lost, however long ago it began, as its machine may have been asleep: once
// at least, and in a run for long.
func TestATransactionIsTriedAgain(t *testing.T) {
	for _, tt := range []struct {
		losses   int
		outlasts bool
		succeeds bool
	}{{1, false, true}, {2, false, false}, {3, true, true}} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			db := handle(t, pgtest.New(t), store.Options{})
			db.RetryFor(time.Nanosecond)
			if tt.outlasts {
				db.Outlast()
			}
			losses := 0
			err := db.Tx(t.Context(), func(tx *store.Tx) error {
				if losses < tt.losses {
					losses++
					if _, err := tx.ExecContext(t.Context(), `SELECT pg_terminate_backend(pg_backend_pid())`); err != nil {
						return err
					}
				}
				return tx.Touch()
			})
			if (err == nil) != tt.succeeds || losses != tt.losses {
				t.Errorf("%d losses, %v", losses, err)
			}
		})
	}
}

// TestAMachineWithoutTheRemote leaves it alone for a while; other machines do not.
func TestAMachineWithoutTheRemote(t *testing.T) {
	db := handle(t, pgtest.Path(t, filepath.Join(t.TempDir(), "ralph.db")), store.Options{})
	away := func(want bool) {
		t.Helper()
		if got, err := store.Read(t.Context(), db, (*store.Tx).RemoteAway); err != nil || got != want {
			t.Errorf("away: %t, %v", got, err)
		}
	}
	away(false)
	write(t, db, func(tx *store.Tx) error { return tx.WaitForRemote(time.Hour, 2*time.Hour) })
	away(true)
	write(t, db, (*store.Tx).ReachedRemote)
	away(false)
	write(t, db, func(tx *store.Tx) error {
		err := tx.WaitForRemote(time.Hour, 2*time.Hour)
		if err == nil {
			_, err = tx.ExecContext(t.Context(), `UPDATE merge_queue SET waits = 'another'`)
		}
		return err
	})
	away(false)
	write(t, db, (*store.Tx).ReachedRemote) // says nothing of the other one
	q, err := store.Read(t.Context(), db, (*store.Tx).MergeQueue)
	if err != nil || q.Waits != "another" || q.Failures != 1 {
		t.Errorf("%+v, %v", q, err)
	}
}
