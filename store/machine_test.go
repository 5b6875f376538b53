package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/internal/machine"
	"ralph/store"
)

// TestMachines are listed as they stand, drained and removed.
func TestMachines(t *testing.T) {
	eachDatabase(t, func(t *testing.T, name string) {
		now := time.Now()
		db := handle(t, name, store.Options{Now: func() time.Time { return now }})
		here := machine.Name()
		var run ralph.Run
		start := func() error {
			return db.Tx(t.Context(), func(tx *store.Tx) error {
				r, err := tx.StartRun("other-boot/pid:[1] 7 7 token", ralph.Limits{}, "")
				if err == nil {
					run = r
				}
				return err
			})
		}
		ok := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		refused := func(err error, why string) {
			t.Helper()
			if !errors.Is(err, ralph.ErrConflict) || !strings.Contains(err.Error(), why) {
				t.Errorf("got %v, want a conflict with %q", err, why)
			}
		}
		drain := func(undo bool) {
			t.Helper()
			write(t, db, func(tx *store.Tx) error { return tx.Drain(here, "ann", undo) })
		}
		control := func(want string) {
			t.Helper()
			got, err := store.Read(t.Context(), db, func(tx *store.Tx) (string, error) { return tx.RunControl(run.ID) })
			if ok(err); got != want {
				t.Errorf("the run is asked for %q, want %q", got, want)
			}
		}
		is := func(alive bool, seen time.Time, drained string) {
			t.Helper()
			if alive && !db.Shared() { // a lease in a file is not renewed
				seen = now
			}
			list, err := store.Read(t.Context(), db, (*store.Tx).Machines)
			ok(err)
			if len(list) != 1 || list[0].Name != here || list[0].RunID != run.ID || list[0].Alive != alive ||
				!list[0].SeenAt.Equal(ralph.At(seen).Time) || list[0].DrainedBy != drained {
				t.Errorf("got %+v", list)
			}
		}

		ok(start())
		began := now
		is(true, began, "")
		now = now.Add(store.LeaseTime - time.Second)
		is(true, began, "")
		refused(db.Tx(t.Context(), func(tx *store.Tx) error { return tx.RemoveMachine(here) }), "works on "+here)
		control(ralph.ControlNone)
		drain(false)
		control(ralph.ControlDrain)
		refused(start(), "which ann drained at")
		is(true, began, "ann")
		write(t, db, func(tx *store.Tx) error { return tx.Control(ralph.ControlStopNow) })
		control(ralph.ControlStopNow)
		drain(true)
		ok(start())
		now = now.Add(store.LeaseTime)
		is(false, began.Add(store.LeaseTime-time.Second), "")
		write(t, db, func(tx *store.Tx) error { return tx.RemoveMachine(here) })
		if list, err := store.Read(t.Context(), db, (*store.Tx).Machines); err != nil || len(list) > 0 {
			t.Errorf("got %v, %v", list, err)
		}
		if r, err := store.Read(t.Context(), db, func(tx *store.Tx) (ralph.Run, error) { return tx.Run(run.ID) }); err != nil ||
			r.EndedAt.IsZero() {
			t.Errorf("its run is open: %+v, %v", r, err)
		}
		if err := db.Tx(t.Context(), func(tx *store.Tx) error { return tx.Drain(here, "ann", false) }); !errors.Is(err, ralph.ErrNotFound) {
			t.Errorf("drained though unknown: %v", err)
		}
	})
}
