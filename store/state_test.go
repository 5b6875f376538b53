package store_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"ralph"
	"ralph/signals"
	"ralph/store"
)

func phases(s ralph.Session) (list []string) {
	for _, h := range s.History {
		mark := ""
		if h.Unexpected {
			mark = "!"
		}
		list = append(list, string(h.State)+mark+" "+h.Source)
	}
	return list
}

func TestASessionsStatesAreRecordedWithTheirSource(t *testing.T) {
	db, s := working(t)
	report := func(p ralph.Phase) func(tx *store.Tx) error {
		return func(tx *store.Tx) error {
			_, err := tx.ReportState(s.ID, p, map[string]any{"files": []string{"a.go"}})
			return err
		}
	}
	observe := func(p ralph.Phase, moves bool) func(tx *store.Tx) error {
		return func(tx *store.Tx) error {
			moved, err := tx.ObserveState(s.ID, p, tx.Now())
			if moved != moves {
				t.Errorf("%s was observed: moved %t, want %t", p, moved, moves)
			}
			return err
		}
	}
	write(t, db, observe(ralph.PhaseAnalyzing, true))
	write(t, db, report(ralph.PhaseImplementing))
	write(t, db, observe(ralph.PhaseTesting, false)) // at the same moment
	write(t, db, observe(ralph.PhaseAnalyzing, false))
	write(t, db, report(ralph.PhaseReviewing))
	write(t, db, report(ralph.PhaseReviewing)) // once more changes nothing
	write(t, db, func(tx *store.Tx) error {
		got, err := tx.Session(s.ID)
		want := []string{"idle observed", "analyzing observed", "implementing reported", "reviewing! reported", "reviewing reported"}
		if !slices.Equal(phases(got), want) || got.State != ralph.PhaseReviewing {
			t.Errorf("got %s at %q, want %q", got.State, phases(got), want)
		}
		return err
	})

	var unknown *store.SessionUnknownError
	err := db.Tx(t.Context(), func(tx *store.Tx) error { _, err := tx.ReportState("nobody", ralph.PhaseTesting, nil); return err })
	if !errors.As(err, &unknown) || err.Error() != "Session nobody not found" {
		t.Errorf("got %v", err)
	}
	write(t, db, func(tx *store.Tx) error {
		f, err := tx.Facts(s.ID)
		if err != nil {
			return err
		}
		f.Ending, f.Rules = ralph.Finished, signals.Rules{StuckLimit: 3, VerifyFailures: 3, Attempts: 10}
		return tx.Apply(s, f, signals.Decide(f))
	})
	err = db.Tx(t.Context(), report(ralph.PhaseTesting))
	if err == nil || err.Error() != "Session "+s.ID+" is already completed" {
		t.Errorf("got %v", err)
	}
	write(t, db, func(tx *store.Tx) error {
		got, err := tx.Session(s.ID)
		if list := phases(got); list[len(list)-1] != "failed observed" || len(list) != 6 || got.State != ralph.PhaseFailed {
			t.Errorf("after the end: %q", list)
		}
		return err
	})
}

func TestStatesOfOneSessionFromSeveralProcesses(t *testing.T) {
	db, s := working(t)
	const writers, each = 4, 20
	errs := make(chan error, writers)
	for range writers {
		other := open(t, db.Path())
		go func() {
			var all error
			for i := range each {
				p := ralph.ReportedPhases[i%len(ralph.ReportedPhases)]
				all = errors.Join(all, other.Tx(t.Context(), func(tx *store.Tx) error { _, err := tx.ReportState(s.ID, p, nil); return err }))
			}
			errs <- all
		}()
	}
	for range writers {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	write(t, db, func(tx *store.Tx) error {
		got, err := tx.Session(s.ID)
		if len(got.History) != 1+writers*each {
			t.Errorf("%d entries, want %d: reports were lost", len(got.History), 1+writers*each)
		}
		return err
	})
}

func TestAnObservationIsNeverBeforeTheLastEntry(t *testing.T) {
	db, s := working(t)
	write(t, db, func(tx *store.Tx) error {
		_, err := tx.ObserveState(s.ID, ralph.PhaseAnalyzing, ralph.At(tx.Now().Add(-time.Hour))) // the clock was set back
		return err
	})
	write(t, db, func(tx *store.Tx) error {
		got, err := tx.Session(s.ID)
		if h := got.History; len(h) != 2 || h[1].Timestamp.Before(h[0].Timestamp.Time) {
			t.Errorf("got %+v", h)
		}
		return err
	})
}
