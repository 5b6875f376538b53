package loop_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/loop"
	"ralph/loop/agent"
	"ralph/loop/session"
	"ralph/signals"
	"ralph/store"
)

// raw writes to the database without the store.
func (b *workshop) raw(statement string, args ...any) {
	b.t.Helper()
	if _, err := pgtest.Raw(b.t, b.db.Path()).ExecContext(b.t.Context(), statement, args...); err != nil {
		b.t.Fatal(err)
	}
}

// refuse makes the database refuse changes of a table, see [pgtest.Refuse].
func (b *workshop) refuse(event, table, condition, why string) (allow func()) {
	b.t.Helper()
	return pgtest.Refuse(b.t, pgtest.Raw(b.t, b.db.Path()), event, table, condition, why)
}

// garble makes a session's signals unreadable, as a bad disk would.
func (b *workshop) garble(session string) {
	b.t.Helper()
	b.raw(`UPDATE task_comments SET signal_payload = '{}' WHERE session_id = $1`, session)
}

// A session that cannot be decided keeps its task and is named, but hinders
// nothing else: not the other lost sessions, not this run, not the next one.
func TestASessionThatCannotBeDecidedStopsNobody(t *testing.T) {
	t.Parallel()
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
				_, err := tx.StartSession(store.Start{ID: session, Task: id, Dir: l.Here.Dir})
				return err
			})
			if _, err := b.db.Say(t.Context(), id, session, "agent", signals.Stuck{Reason: "no idea"}); err != nil {
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
			if result.Status != ralph.ExitWaiting || !strings.Contains(strings.Join(result.Reasons, "\n"), " of TASK-1 is over and could not be decided: ") {
				t.Errorf("worker %t: exit status %d, %q", worker, result.Status, result.Reasons)
			}
		}
		for id, want := range map[int64]ralph.Status{1: ralph.InProgress, 2: ralph.Completed, 3: ralph.Completed} {
			if got := b.task(id); got.Status != want {
				t.Errorf("worker %t: TASK-%d is %s: %s", worker, id, got.Status, got.StatusReason)
			}
		}
		if n := strings.Count(log.String(), "cannot decide"); n != 1 || !strings.Contains(log.String(), bad) {
			t.Errorf("worker %t: it is logged %d times:\n%s", worker, n, log.String())
		}
		b.tx(func(tx *store.Tx) error {
			list, err := tx.Undecided()
			if len(list) != 1 || list[0].ID != bad || list[0].Task != 1 || !strings.Contains(list[0].Why, "comment ") {
				t.Errorf("worker %t: doctor is told %+v", worker, list)
			}
			return err
		})
	}
}

// TestForeignWritesDuringASession cost at most that session: the run goes on, and says so.
func TestForeignWritesDuringASession(t *testing.T) {
	t.Parallel()
	for statement, want := range map[string]struct {
		first  ralph.Status
		status int
		says   string
	}{
		`UPDATE tasks SET status = 'completed' WHERE id = 1`: {ralph.Failed, ralph.ExitFailed, "its task was made completed outside of ralph, which does not count"},
		`UPDATE tasks SET status = 'merging' WHERE id = 1`:   {ralph.Failed, ralph.ExitFailed, "its task was made merging outside of ralph, which does not count"},
		`UPDATE sessions SET completed_at = '2026-01-01T00:00:00.000Z', outcome = 'success' WHERE task_id = 1`: {
			ralph.InProgress, ralph.ExitFailed, "its record is gone or ended",
		},
		`UPDATE task_comments SET signal_payload = '{}' WHERE task_id = 1`: {
			ralph.InProgress, ralph.ExitFailed, " of TASK-1 is over and could not be decided: ",
		},
		`DELETE FROM sessions`: {ralph.InProgress, ralph.ExitFailed, "its record is gone or ended"},
	} {
		b := newWorkshop(t)
		l := b.tree()
		b.add(ralph.Task{Title: "A"})
		b.add(ralph.Task{Title: "B"})
		l.Rules.StuckLimit, l.OnRed, l.Log = 1, loop.RedGo, slog.New(slog.NewTextHandler(t.Output(), nil))
		l.Limits = ralph.Limits{
			MaxSessions: 4, MaxTasks: 20, MaxSeconds: 3600, MaxCostUSD: 100, MaxDayCostUSD: 100, MaxMonthCostUSD: 100, SessionSeconds: 3600, IdleSeconds: 3600,
			SessionTurns: 10, SessionCostUSD: 10, Attempts: 10, StagnantMaximum: 20,
		}
		l.Agent = deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
			_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", signals.Stuck{Reason: "no idea"})
			if a.TaskID == 1 {
				b.raw(statement)
			}
			return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
		})
		result, err := l.Run(t.Context())
		one := b.task(1)
		if err != nil || one.Status != want.first || b.task(2).Status != ralph.Failed || result.Status != want.status {
			t.Errorf("%s: the run ends with %d, %q, %v; TASK-1 is %s: %s", statement, result.Status, result.Reasons, err, one.Status, one.StatusReason)
		}
		b.tx(func(tx *store.Tx) error {
			list, err := tx.Sessions(store.SessionFilter{})
			said := strings.Join(result.Reasons, "\n")
			for _, s := range list {
				said += strings.Join(s.Notes, "\n")
			}
			if !strings.Contains(said, want.says) {
				t.Errorf("%s: it says %q", statement, said)
			}
			return err
		})
		if strings.Contains(want.says, "its record") { // the next run works on the task again
			if _, err := l.Run(t.Context()); err != nil {
				t.Errorf("%s: %v", statement, err)
			}
			b.tx(func(tx *store.Tx) error {
				events, err := tx.Events(0, 1000)
				if released := slices.ContainsFunc(events, func(e ralph.Event) bool { return strings.Contains(string(e.Payload), "is gone or ended") }); !released {
					t.Errorf("%s: it is not released", statement)
				}
				return err
			})
		}
	}
}

// TestARunLeavesTheSessionsOfOthers alone when it begins: a worker's
// session has its lease, and a person's ends only by itself.
func TestARunLeavesTheSessionsOfOthers(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree()
	c := b.claim(l, b.add(ralph.Task{Title: "A worker's"}), "ann")
	s := b.claimFor(l, b.add(ralph.Task{Title: "A person's"}), "eve")
	if result, _ := b.run(l, func() {}); strings.Contains(strings.Join(result.Reasons, "\n"), "decided") {
		t.Errorf("it says %q", result.Reasons)
	}
	for id, session := range map[int64]string{1: c.SessionID(), 2: s.ID} {
		if task := b.task(id); task.Status != ralph.InProgress || task.ClaimedBy != session {
			t.Errorf("TASK-%d is %s: %s", id, task.Status, task.StatusReason)
		}
	}
	b.tx(func(tx *store.Tx) error {
		list, err := tx.Undecided()
		if len(list) > 0 {
			t.Errorf("doctor is told %+v", list)
		}
		return err
	})
}

// TestUnknownFactsAreReported with the outcome, and in the log.
func TestUnknownFactsAreReported(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree()
	var log bytes.Buffer
	l.Log = slog.New(slog.NewTextHandler(&log, nil))
	id := b.add(ralph.Task{Title: "A"})
	b.once(l, deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
		write(t, filepath.Join(a.Dir, "made"), "x")
		b.raw(`UPDATE sessions SET snapshot_before = '[' WHERE id = $1`, a.SessionID)
		_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", halt)
		return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
	}))
	const gone = "what it made in its workspace, which is kept there"
	if task := b.task(id); !strings.Contains(task.StatusReason, gone) {
		t.Errorf("it is %s: %s", task.Status, task.StatusReason)
	}
	if !strings.Contains(log.String(), gone) {
		t.Errorf("it is not logged:\n%s", log.String())
	}
}

// TestATaskWhoseSessionHasNoRecordIsWorkedOnAgain: otherwise nobody would ever end its claim.
func TestATaskWhoseSessionHasNoRecordIsWorkedOnAgain(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	id := b.add(ralph.Task{Title: "A"})
	b.raw(`UPDATE tasks SET status = 'in_progress', claimed_by = 'gone' WHERE id = $1`, id)
	if result, _ := b.run(b.tree(), func() {}); b.task(id).Status != ralph.Completed {
		t.Errorf("it is %s, and the run ended with %q", b.task(id).Status, result.Reasons)
	}
}

// TestASessionWhoseWorkspaceCannotBeOpenedIsNotDecided as if it had worked in people's tree.
func TestASessionWhoseWorkspaceCannotBeOpenedIsNotDecided(t *testing.T) {
	t.Parallel()
	for _, worker := range []string{"", "ann"} {
		b := newWorkshop(t)
		l := b.tree()
		id := b.add(ralph.Task{Title: "A"})
		start := store.Start{ID: uuid.NewString(), Task: id, Worker: worker, Dir: filepath.Join(l.Pool.Dir, "1", "tree")}
		if worker != "" {
			start.Lease = session.Lease
		}
		b.tx(func(tx *store.Tx) error { _, err := tx.StartSession(start); return err })
		b.passed.Store(int64(2 * session.Lease))
		if err := os.MkdirAll(l.Pool.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(l.Pool.Dir, "1"), "no folder")
		result, _ := b.run(l, func() {})
		if task := b.task(id); task.Status != ralph.InProgress || !strings.Contains(strings.Join(result.Reasons, "\n"), "could not be decided: workspace 1: ") {
			t.Errorf("of the worker %q it is %s, and the run ended with %q", worker, task.Status, result.Reasons)
		}
	}
}

// A witness is a log that reports each warning.
type witness struct {
	slog.Handler
	warned func(message string)
}

func (w witness) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		w.warned(r.Message)
	}
	return nil
}
