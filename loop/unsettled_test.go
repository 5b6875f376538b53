package loop_test

import (
	"bytes"
	"database/sql"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"ralph"
	"ralph/loop/session"
	"ralph/signals"
	"ralph/store"
)

// garble makes what a session has signalled unreadable, as a disk does.
func (b *workshop) garble(session string) {
	b.t.Helper()
	b.spoil(`UPDATE task_comments SET signal_payload = '{}' WHERE session_id = $1`, session)
}

// spoil changes rows behind the back of those who use the database.
func (b *workshop) spoil(statement string, args ...any) {
	b.t.Helper()
	raw, err := sql.Open("sqlite3", filepath.Join(b.state, "ralph.db"))
	if err != nil {
		b.t.Fatal(err)
	}
	defer raw.Close()
	if _, err := raw.ExecContext(b.t.Context(), `PRAGMA ignore_check_constraints = 1; `+statement, args...); err != nil {
		b.t.Fatal(err)
	}
}

// One session that cannot be settled keeps its task, is named, and keeps nobody else
// from anything: not the other lost ones, not the run, not the next one.
func TestASessionThatCannotBeSettledStopsNobody(t *testing.T) {
	for _, worker := range []bool{false, true} {
		b := newWorkshop(t)
		l := b.tree()
		var log bytes.Buffer
		l.Log = slog.New(slog.NewTextHandler(&log, nil))
		begin := func(title string) string {
			id := b.add(ralph.Task{Title: title})
			if worker {
				c := b.claim(l, id, "ann")
				b.say(c, signals.Stuck{Reason: "no idea"})
				return c.SessionID()
			}
			session := uuid.NewString()
			b.tx(func(tx *store.Tx) error {
				_, err := tx.StartSession(store.Start{ID: session, Task: id, Dir: l.Place.Dir})
				return err
			})
			if _, err := b.db.Say(t.Context(), id, session, "agent", "", signals.Stuck{Reason: "no idea"}); err != nil {
				t.Fatal(err)
			}
			return session
		}
		bad := begin("Garbled")
		begin("Lost")
		b.add(ralph.Task{Title: "Fresh"})
		b.garble(bad)
		b.passed.Store(int64(2 * session.Lease))
		for range 2 {
			result, _ := b.run(l, func() {})
			if result.Status != ralph.ExitWaiting || !strings.Contains(strings.Join(result.Reasons, "\n"), " of TASK-1 is over and could not be settled: ") {
				t.Errorf("worker %t: exit status %d, %q", worker, result.Status, result.Reasons)
			}
		}
		for id, want := range map[int64]ralph.Status{1: ralph.InProgress, 2: ralph.Completed, 3: ralph.Completed} {
			if got := b.task(id); got.Status != want {
				t.Errorf("worker %t: TASK-%d is %s: %s", worker, id, got.Status, got.StatusReason)
			}
		}
		if n := strings.Count(log.String(), "cannot be settled"); n != 1 || !strings.Contains(log.String(), bad) {
			t.Errorf("worker %t: it is logged %d times:\n%s", worker, n, log.String())
		}
		b.tx(func(tx *store.Tx) error {
			list, err := tx.Unsettled()
			if len(list) != 1 || list[0].ID != bad || list[0].Task != 1 || !strings.Contains(list[0].Why, "comment ") {
				t.Errorf("worker %t: doctor is told %+v", worker, list)
			}
			return err
		})
	}
}

// TestARunLeavesTheSessionsOfOthers alone that work while it begins: a worker's has its
// lease, a person's has no end but its own.
func TestARunLeavesTheSessionsOfOthers(t *testing.T) {
	b := newWorkshop(t)
	l := b.tree()
	c := b.claim(l, b.add(ralph.Task{Title: "A worker's"}), "ann")
	s := b.claimFor(l, b.add(ralph.Task{Title: "A person's"}), "eve")
	if result, _ := b.run(l, func() {}); strings.Contains(strings.Join(result.Reasons, "\n"), "settled") {
		t.Errorf("it says %q", result.Reasons)
	}
	for id, session := range map[int64]string{1: c.SessionID(), 2: s.ID} {
		if task := b.task(id); task.Status != ralph.InProgress || task.ClaimedBy != session {
			t.Errorf("TASK-%d is %s: %s", id, task.Status, task.StatusReason)
		}
	}
	b.tx(func(tx *store.Tx) error {
		list, err := tx.Unsettled()
		if len(list) > 0 {
			t.Errorf("doctor is told %+v", list)
		}
		return err
	})
}
