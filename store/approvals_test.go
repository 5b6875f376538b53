package store_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/signals"
	"ralph/store"
)

// A limited number of suggested tasks per day enters the queue at once, over all sessions; the
// others wait for a person. Tasks added by people do not count.
func TestSuggestedTasksThatEnterTheQueueOfADay(t *testing.T) {
	now := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	db, err := store.Open(t.Context(), pgtest.Path(t, filepath.Join(t.TempDir(), "ralph.db")), store.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const pending, proposed = ralph.Pending, ralph.Proposed
	for i, tt := range []struct {
		after    time.Duration // since the one before
		suggests int
		want     []ralph.Status
	}{
		{0, 1, []ralph.Status{pending}},
		{23 * time.Hour, 2, []ralph.Status{pending, proposed}},
		{59 * time.Minute, 1, []ralph.Status{proposed}},
		{2 * time.Minute, 2, []ralph.Status{pending, proposed}}, // the first one is a day old
	} {
		now = now.Add(tt.after)
		var got []ralph.Status
		write(t, db, func(tx *store.Tx) error {
			id, err := tx.AddTask(ralph.Task{Title: fmt.Sprint("task ", i)}, "human")
			if err != nil {
				return err
			}
			_, err = tx.StartSession(store.Start{ID: fmt.Sprintf("11111111-1111-4111-8111-%012d", i), Task: id})
			return err
		})
		var s ralph.Session
		write(t, db, func(tx *store.Tx) (err error) {
			s, err = tx.Session(fmt.Sprintf("11111111-1111-4111-8111-%012d", i))
			return err
		})
		for n := range tt.suggests {
			if _, err := db.Say(t.Context(), s.TaskID, s.ID, "agent", signals.Suggest{What: fmt.Sprintf("more %d-%d", i, n), Kind: "new_task", Why: "why"}); err != nil {
				t.Fatal(err)
			}
		}
		write(t, db, func(tx *store.Tx) error {
			f, err := tx.Facts(s.ID)
			if err != nil {
				return err
			}
			f.Ending, f.Rules = ralph.Finished, signals.Rules{StuckLimit: 3, VerifyFailures: 3, Attempts: 10, AutoApprove: 2}
			d := signals.Decide(f)
			for _, p := range d.Propose {
				got = append(got, p.Status)
			}
			return tx.Apply(s, f, d)
		})
		if !slices.Equal(got, tt.want) {
			t.Errorf("session %d: its suggestions are %q, want %q", i+1, got, tt.want)
		}
	}
}
