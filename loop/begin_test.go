package loop

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"ralph"
	"ralph/store"
)

// openStore opens a database with so many tasks and a run; damage takes a table away from it.
func openStore(t *testing.T, tasks int) (db *store.DB, run int64, damage func(table string)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ralph.db")
	db, err := store.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := db.Tx(t.Context(), func(tx *store.Tx) error {
		r, err := tx.StartRun(1, ralph.Limits{}, "")
		run = r.ID
		for range tasks {
			_, terr := tx.AddTask(ralph.Task{Title: "A"}, "human")
			err = errors.Join(err, terr)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return db, run, func(table string) {
		t.Helper()
		raw, err := sql.Open("sqlite3", path)
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		if _, err := raw.ExecContext(t.Context(), "ALTER TABLE "+table+" RENAME TO gone"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWhenASessionMayBegin beside another one that may spend $7, and how much it may spend.
func TestWhenASessionMayBegin(t *testing.T) {
	db, run, damage := openStore(t, 3)
	if err := db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.StartSession(store.Start{ID: uuid.NewString(), Task: 3, Run: run, CostLimitUSD: 7})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	errUndone := errors.New("undone")
	try := func(task int64, again bool, set func(tx *store.Tx, l *lane) error) (usd float64, err error) {
		l := &lane{course: course{&Loop{Limits: ralph.Limits{
			MaxSessions: 9, MaxCostUSD: 100, MaxDayCostUSD: 100, SessionCostUSD: 10, SessionMinUSD: 1,
		}}, run}, task: task}
		if undone := db.Tx(t.Context(), func(tx *store.Tx) error {
			if err := set(tx, l); err != nil {
				return err
			}
			usd, err = l.mayBegin(tx, again)
			return errUndone
		}); !errors.Is(undone, errUndone) {
			t.Fatal(undone)
		}
		return usd, err
	}
	with := func(set func(l *lane)) func(*store.Tx, *lane) error {
		return func(_ *store.Tx, l *lane) error { set(l); return nil }
	}
	as := with(func(*lane) {})
	for _, tt := range []struct {
		name  string
		task  int64
		again bool // it was changed while its session got ready
		set   func(tx *store.Tx, l *lane) error
		usd   float64
		err   error
	}{
		{"it may", 2, false, as, 10, nil},
		{"a signal stops the run", 2, false, with(func(l *lane) {
			stop := make(chan struct{})
			close(stop)
			l.Stop = stop
		}), 0, errHeld},
		{"the run is paused", 2, false, func(tx *store.Tx, _ *lane) error { return tx.Control(ralph.ControlPause) }, 0, errHeld},
		{"the other one may spend all", 2, false, with(func(l *lane) { l.Limits.MaxCostUSD = 7 }), 0, errHeld},
		{"it shares what is left with a third one", 2, false, with(func(l *lane) { l.Limits.MaxCostUSD, l.Parallel = 13, 3 }), 3, nil},
		{"it is the last one that may begin", 2, false, with(func(l *lane) { l.Limits.MaxSessions = 2 }), 10, nil},
		{"no other one may begin", 2, false, with(func(l *lane) { l.Limits.MaxSessions = 1 }), 0, errHeld},
		{"its task is still the first", 1, true, as, 10, nil},
		{"another task is the first now", 2, true, as, 0, ralph.ErrConflict},
		{"the queue is empty now", 2, true, func(tx *store.Tx, _ *lane) error {
			return errors.Join(tx.Move(1, ralph.Cancelled, ralph.Person, ""), tx.Move(2, ralph.Cancelled, ralph.Person, ""))
		}, 0, ralph.ErrConflict},
		{"the run is for its task", 2, true, with(func(l *lane) { l.Loop.Task = 2 }), 10, nil},
		{"beside others its task need not be the first", 2, true, with(func(l *lane) { l.Parallel = 2 }), 10, nil},
	} {
		if usd, err := try(tt.task, tt.again, tt.set); !errors.Is(err, tt.err) || err == nil && usd != tt.usd {
			t.Errorf("%s: got $%g, %v; want $%g, %v", tt.name, usd, err, tt.usd, tt.err)
		}
	}
	if usd, err := try(2, false, with(func(l *lane) { l.id++ })); err == nil || errors.Is(err, errHeld) {
		t.Errorf("of an unknown run: got $%g, %v", usd, err)
	}
	damage("sessions")
	if usd, err := try(2, false, as); err == nil || errors.Is(err, errHeld) {
		t.Errorf("without a record of what is spent: got $%g, %v", usd, err)
	}
}
