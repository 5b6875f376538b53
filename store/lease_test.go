package store_test

import (
	"path/filepath"
	"testing"
	"time"

	"ralph"
	"ralph/internal/machine"
	"ralph/internal/pgtest"
	"ralph/store"
)

// TestLeasesOfMachinesThatAreOutOfSight: their time alone decides; a process in sight decides at once, alive or gone.
func TestLeasesOfMachinesThatAreOutOfSight(t *testing.T) {
	lives, leave := machine.Join()
	defer leave()
	gone, left := machine.Join()
	left()
	now := time.Now()
	db, err := store.Open(t.Context(), pgtest.Path(t, filepath.Join(t.TempDir(), "ralph.db")), store.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tests := []struct {
		name, process string
		after         time.Duration
		alive         bool
	}{
		{"elsewhere", "other-boot/pid:[1] 7 7 token", store.LeaseTime - time.Second, true},
		{"elsewhere, and late", "other-boot/pid:[1] 7 7 token", store.LeaseTime, false},
		{"unknown", "", store.LeaseTime - time.Second, true},
		{"seen to live, though it may be frozen", lives, time.Hour, !pgtest.Used()},
		{"seen to be gone", gone, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := db.Tx(t.Context(), func(tx *store.Tx) error {
				run, err := tx.StartRun(tt.process, ralph.Limits{}, "")
				if err != nil {
					return err
				}
				began := now
				defer func() { now = began }()
				now = now.Add(tt.after)
				return db.View(t.Context(), func(tx *store.Tx) error {
					if got := tx.Alive(run); got != tt.alive {
						t.Errorf("alive: %t", got)
					}
					return nil
				})
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestARunThatWasTakenForLostCannotRenew: it learns that its tasks are others' now.
func TestARunThatWasTakenForLostCannotRenew(t *testing.T) {
	now := time.Now()
	db, err := store.Open(t.Context(), pgtest.Path(t, filepath.Join(t.TempDir(), "ralph.db")), store.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var run ralph.Run
	write := func(f func(tx *store.Tx) error) {
		t.Helper()
		if err := db.Tx(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	renews := func(want bool) {
		t.Helper()
		write(func(tx *store.Tx) error {
			got, err := tx.RenewRun(run.ID)
			if got != want {
				t.Errorf("renewed: %t", got)
			}
			return err
		})
	}
	write(func(tx *store.Tx) (err error) { run, err = tx.StartRun("elsewhere", ralph.Limits{}, ""); return err })
	now = now.Add(store.LeaseTime - time.Second)
	renews(true)
	now = now.Add(store.LeaseTime - time.Second)
	write((*store.Tx).EndLostRuns)
	renews(true)
	now = now.Add(store.LeaseTime)
	write((*store.Tx).EndLostRuns)
	renews(false)
}

// TestALeaseHasOneHolder, until it is released or its holder is gone.
func TestALeaseHasOneHolder(t *testing.T) {
	db, err := store.Open(t.Context(), pgtest.Path(t, filepath.Join(t.TempDir(), "ralph.db")), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	release, holder, err := db.Lease(t.Context(), "merge", 0)
	if err != nil || holder != "" {
		t.Fatal(holder, err)
	}
	if _, holder, err := db.Lease(t.Context(), "merge", 0); err != nil || holder == "" {
		t.Fatalf("taken twice: %q, %v", holder, err)
	}
	got := make(chan error)
	go func() {
		again, holder, err := db.Lease(t.Context(), "merge", time.Hour)
		if err == nil && holder == "" {
			err = again()
		}
		got <- err
	}()
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Fatal(err)
	}
}

// TestARunElsewhere: one of another machine is seen as long as its lease holds, and one of this machine never.
func TestARunElsewhere(t *testing.T) {
	eachDatabase(t, func(t *testing.T, name string) {
		db := handle(t, name, store.Options{})
		var run ralph.Run
		elsewhere := func(want bool) {
			t.Helper()
			write(t, db, func(tx *store.Tx) error {
				if r, ok, err := tx.RunElsewhere(); err != nil || ok != want || ok && r.ID != run.ID {
					t.Errorf("got run %d, %v, %v, want %v", r.ID, ok, err, want)
				}
				return nil
			})
		}
		change := func(query string) {
			t.Helper()
			write(t, db, func(tx *store.Tx) error {
				_, err := tx.ExecContext(t.Context(), query, run.ID)
				return err
			})
		}
		write(t, db, func(tx *store.Tx) (err error) {
			run, err = tx.StartRun("other-boot/pid:[1] 7 7 token", ralph.Limits{}, "")
			return err
		})
		elsewhere(false)
		change(`UPDATE runs SET machine = 'elsewhere' WHERE id = $1`)
		elsewhere(true)
		change(`UPDATE runs SET lease_until = '2000-01-01T00:00:00.000Z' WHERE id = $1`)
		elsewhere(false)
	})
}

// TestASessionOfAnotherMachine is known only where machines share a database: in a file all folders are this one's.
func TestASessionOfAnotherMachine(t *testing.T) {
	eachDatabase(t, func(t *testing.T, name string) {
		db := handle(t, name, store.Options{})
		if db.OtherMachine(ralph.Session{Machine: machine.Name()}) {
			t.Error("a session of this machine is taken for another one's")
		}
		if got := db.OtherMachine(ralph.Session{Machine: "another"}); got != db.Shared() {
			t.Errorf("a session of another machine: %t, where sharing the database is %t", got, db.Shared())
		}
	})
}
