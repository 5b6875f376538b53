package store_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/migrations"
	"ralph/signals"
	"ralph/store"
)

func open(t *testing.T, path string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), pgtest.Path(t, path), store.Options{})
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

// write runs f in a transaction that must succeed.
func write(t *testing.T, db *store.DB, f func(tx *store.Tx) error) {
	t.Helper()
	if err := db.Tx(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

// working returns a database with one task in progress.
func working(t *testing.T) (*store.DB, ralph.Session) {
	t.Helper()
	db := open(t, filepath.Join(t.TempDir(), "ralph.db"))
	return db, begun(t, db)
}

// begun adds a task to a database and begins a session of it.
func begun(t *testing.T, db *store.DB) (s ralph.Session) {
	t.Helper()
	write(t, db, func(tx *store.Tx) error {
		id, err := tx.AddTask(ralph.Task{Title: "A", Priority: 2}, "human")
		if err != nil {
			return err
		}
		run, err := tx.StartRun("", ralph.Limits{}, "")
		if err != nil {
			return err
		}
		s, err = tx.StartSession(store.Start{ID: "11111111-1111-4111-8111-111111111111", Task: id, Run: run.ID})
		return err
	})
	return s
}

// Of several requests to a running session, the cancellation of its task wins.
func TestTheCancellationWins(t *testing.T) {
	for _, tt := range []struct {
		asked   []string
		why, by string
	}{
		{[]string{"contract"}, "contract", "ann"},
		{[]string{"contract", "cancel"}, "cancel", "bob"},
		{[]string{"cancel", "contract"}, "cancel", "ann"},
		{[]string{"contract", "contract"}, "contract", "bob"},
	} {
		db, s := working(t)
		write(t, db, func(tx *store.Tx) error {
			for i, why := range tt.asked {
				if err := tx.RequestStop(s.ID, why, []string{"ann", "bob"}[i]); err != nil {
					return err
				}
			}
			s, err := tx.Session(s.ID)
			if s.StopRequest != tt.why || s.StopBy != tt.by {
				t.Errorf("%q: it is stopped for %q by %q, want %q by %q", tt.asked, s.StopRequest, s.StopBy, tt.why, tt.by)
			}
			return err
		})
	}
}

func TestASessionIsDecidedOnce(t *testing.T) {
	db, s := working(t)
	if _, err := db.Say(t.Context(), s.TaskID, s.ID, "agent", signals.Learned{Text: "x is y", Kind: "discovery"}); err != nil {
		t.Fatal(err)
	}
	decide := func(tx *store.Tx) error {
		f, err := tx.Facts(s.ID)
		if err != nil {
			return err
		}
		f.Ending, f.Rules = ralph.Finished, signals.Rules{StuckLimit: 3, VerifyFailures: 3, Attempts: 10}
		return tx.Apply(s, f, signals.Decide(f))
	}
	write(t, db, decide)
	if err := db.Tx(t.Context(), decide); !errors.Is(err, ralph.ErrConflict) {
		t.Errorf("the second time: %v, want ErrConflict", err)
	}
	if _, err := db.Say(t.Context(), s.TaskID, s.ID, "agent", signals.Done{Summary: "late"}); !errors.Is(err, ralph.ErrConflict) {
		t.Errorf("a signal after the end: %v, want ErrConflict", err)
	}
	write(t, db, func(tx *store.Tx) error {
		task, err := tx.Task(s.TaskID)
		if task.StuckCount != 1 || task.Attempts != 1 || task.Status != ralph.Pending {
			t.Errorf("got %+v", task)
		}
		learned, lerr := tx.LearningsFor(task, ralph.ScopeFeature)
		if len(learned) != 1 || learned[0].TimesSeen != 1 {
			t.Errorf("got learnings %+v", learned)
		}
		return errors.Join(err, lerr)
	})
}

// TestNoteFlaky: a test that is flaky in the queue is noted once with its command; other commands are not added.
func TestNoteFlaky(t *testing.T) {
	db, s := working(t)
	for _, checks := range [][]ralph.Check{
		{{Command: "a", Flaky: []string{"x"}}},
		{{Command: "a", Flaky: []string{"x", "y"}}, {Command: "b"}},
	} {
		write(t, db, func(tx *store.Tx) error { return tx.NoteFlaky(s.ID, checks) })
	}
	write(t, db, func(tx *store.Tx) (err error) {
		s, err = tx.Session(s.ID)
		return err
	})
	if want := []ralph.Check{{Command: "a", Flaky: []string{"x", "y"}}}; !reflect.DeepEqual(s.Verify, want) {
		t.Errorf("the session has %v, want %v", s.Verify, want)
	}
}

func TestABlockerThatWasResolvedMeanwhileHoldsNothing(t *testing.T) {
	db, s := working(t)
	comment, err := db.Say(t.Context(), s.TaskID, s.ID, "agent", signals.Blocked{On: "the key", Kind: "external"})
	if err != nil {
		t.Fatal(err)
	}
	write(t, db, func(tx *store.Tx) error { return tx.Resolve(comment, "it is there", "ann") })
	write(t, db, func(tx *store.Tx) error {
		f, err := tx.Facts(s.ID)
		if err != nil {
			return err
		}
		f.Ending, f.Rules = ralph.Finished, signals.Rules{StuckLimit: 3, VerifyFailures: 3, Attempts: 10}
		return tx.Apply(s, f, signals.Decide(f))
	})
	write(t, db, func(tx *store.Tx) error {
		task, err := tx.Task(s.TaskID)
		if task.Status != ralph.Pending {
			t.Errorf("got %s: %s", task.Status, task.StatusReason)
		}
		return err
	})
}

func TestASignalOfAnUnknownSessionIsRefused(t *testing.T) {
	db, s := working(t)
	for _, tt := range []struct {
		task    int64
		session string
	}{{s.TaskID, "nobody"}, {s.TaskID + 1, s.ID}} {
		if _, err := db.Say(t.Context(), tt.task, tt.session, "agent", signals.Done{Summary: "x"}); !errors.Is(err, ralph.ErrNotFound) {
			t.Errorf("task %d, session %s: %v, want ErrNotFound", tt.task, tt.session, err)
		}
	}
}

// TestASessionAddsOnlySoMuch: people read all that a session says, so it is bounded, and the session can be closed.
func TestASessionAddsOnlySoMuch(t *testing.T) {
	db, s := working(t)
	flag, done := signals.Flag{What: "x", Severity: "info", Category: "bug"}, signals.Done{Summary: "x"}
	amend := func(tx *store.Tx) error {
		err := tx.CheckAdding(s.TaskID, s.ID, false)
		if err == nil {
			_, err = tx.Propose(ralph.Amendment{
				TaskID: s.TaskID, SessionID: s.ID, Author: "agent", AuthorKind: ralph.ByAgent,
				Patch: ralph.Patch{Title: new("y")}, Rationale: "x",
			})
		}
		return err
	}
	write(t, db, amend)
	for p, most := range map[signals.Payload]int{flag: 199, done: 200} {
		var err error
		said := 0
		for ; err == nil && said < 1000; said++ {
			_, err = db.Say(t.Context(), s.TaskID, s.ID, "agent", p)
		}
		if said-1 != most || !errors.Is(err, ralph.ErrConflict) {
			t.Errorf("%s was said %d times, want %d: %v", p.Verb(), said-1, most, err)
		}
	}
	if err := db.Tx(t.Context(), amend); !errors.Is(err, ralph.ErrConflict) {
		t.Errorf("another amendment: %v", err)
	}
}

func TestSeveralProcessesSignalAtOnce(t *testing.T) {
	db, s := working(t)
	const writers, each = 8, 25
	var group sync.WaitGroup
	errs := make(chan error, writers*each)
	for range writers {
		other := open(t, db.Path()) // pools of its own, as another process has
		group.Go(func() {
			for range each {
				_, err := other.Say(context.Background(), s.TaskID, s.ID, "agent", signals.Flag{What: "x", Severity: "info", Category: "bug"})
				errs <- err
			}
		})
	}
	group.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	write(t, db, func(tx *store.Tx) error {
		said, err := tx.SessionSignals(s.ID)
		if len(said) != writers*each {
			t.Errorf("got %d signals, want %d", len(said), writers*each)
		}
		return err
	})
}

func TestANewerDatabaseIsRefusedAndAMigrationIsBackedUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ralph.db")
	db := open(t, path)
	if err := db.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := pgtest.Raw(t, path).ExecContext(t.Context(), `INSERT INTO schema_migrations VALUES ('9999_future.sql', '')`); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(t.Context(), pgtest.Path(t, path), store.Options{}); !errors.Is(err, migrations.ErrTooNew) {
		t.Errorf("got %v, want ErrTooNew", err)
	}
	if pgtest.Used() {
		return // administrators copy a server
	}

	older := filepath.Join(t.TempDir(), "ralph.db")
	other, err := sql.Open("sqlite3", "file:"+older)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.ExecContext(t.Context(), `CREATE TABLE keepsake (x TEXT)`); err != nil {
		t.Fatal(err)
	}
	open(t, older)
	if copies, err := filepath.Glob(filepath.Join(filepath.Dir(older), "backups", "*.db")); err != nil || len(copies) != 1 {
		t.Errorf("got backups %v, %v", copies, err)
	}
}

func TestAFileThatIsNoDatabaseIsNamed(t *testing.T) {
	pgtest.Files(t)
	path := filepath.Join(t.TempDir(), "ralph.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("this is no database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(t.Context(), pgtest.Path(t, path), store.Options{}); err == nil || !strings.Contains(err.Error(), "not a database") {
		t.Errorf("got %v", err)
	}
}

// TestADatabaseRemovedWhileItIsOpenedIsNotMadeAnew: a new one in its place would be an empty queue, and its mark that of a new project.
func TestADatabaseRemovedWhileItIsOpenedIsNotMadeAnew(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ralph.db")
	db := open(t, path)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := store.Open(t.Context(), path, store.Options{Judge: func(store.Found) error { return os.Remove(path) }})
	if err == nil {
		_ = again.Close()
		t.Error("it is opened")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("there is a new one")
	}
}

// TestAValueThatNobodyWroteIsDamage: readers get an error, and so do checks of the database or a copy of it.
func TestAValueThatNobodyWroteIsDamage(t *testing.T) {
	t.Parallel()
	for _, change := range []string{
		`UPDATE tasks SET created = replace(created, '-', '%')`, `UPDATE tasks SET acceptance = 'x'`,
		`UPDATE sessions SET started_at = '2026-11-25T38:00:00Z'`, `UPDATE events SET created = 'x'`,
	} {
		db, _ := working(t)
		if err := db.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err := pgtest.Raw(t, db.Path()).ExecContext(t.Context(), change)
		if err != nil {
			t.Fatal(err)
		}
		err = db.View(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Tasks(store.TaskFilter{})
			_, serr := tx.Sessions(store.SessionFilter{})
			_, eerr := tx.Events(0, 100)
			return errors.Join(err, serr, eerr)
		})
		cerr := db.Check(t.Context())
		if !store.Corrupt(err) || !store.Corrupt(cerr) || !strings.Contains(err.Error(), "a value in the database is not as ralph wrote it: ") {
			t.Errorf("after %s: %v, and the check says %v", change, err, cerr)
		}
		if pgtest.Used() {
			continue // a copy is looked at by PostgreSQL's own programs
		}
		// A run may copy it before anybody reads it. Nobody is told to restore that copy.
		copied := filepath.Join(t.TempDir(), "copy.db")
		if err := db.Backup(t.Context(), copied); err != nil {
			t.Fatal(err)
		}
		if err := store.Sound(t.Context(), copied); !store.Corrupt(err) {
			t.Errorf("after %s a copy is taken for sound: %v", change, err)
		}
	}
}

func TestBlockersAndDependenciesDeriveTheStatus(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "ralph.db"))
	want := func(id int64, status ralph.Status) {
		t.Helper()
		write(t, db, func(tx *store.Tx) error {
			task, err := tx.Task(id)
			if task.Status != status {
				t.Errorf("TASK-%d is %s, want %s", id, task.Status, status)
			}
			return err
		})
	}
	write(t, db, func(tx *store.Tx) error {
		_, err := tx.AddTask(ralph.Task{Title: "A"}, "human")
		if err != nil {
			return err
		}
		_, err = tx.AddTask(ralph.Task{Title: "B", DependsOn: []int64{1}}, "human")
		return err
	})
	want(2, ralph.Blocked)
	write(t, db, func(tx *store.Tx) error {
		if err := tx.Move(1, ralph.InProgress, ralph.Loop, ""); err != nil {
			return err
		}
		return tx.Move(1, ralph.Completed, ralph.Verdict, "")
	})
	want(2, ralph.Pending)
	write(t, db, func(tx *store.Tx) error {
		_, err := tx.AddComment(ralph.Comment{TaskID: 2, Author: "ann", AuthorKind: ralph.ByHuman, Kind: ralph.Blocker, Body: "wait", Rationale: "why"})
		return err
	})
	want(2, ralph.Blocked)
	write(t, db, func(tx *store.Tx) error { return tx.Resolve(1, "go on", "ann") })
	want(2, ralph.Pending)
	if err := db.Tx(t.Context(), func(tx *store.Tx) error { return tx.Move(2, ralph.Completed, ralph.Person, "") }); !errors.Is(err, ralph.ErrConflict) {
		t.Errorf("a move that the table does not have: %v", err)
	}
}

// TestTheLastSignalIsTheLastAlsoWhenTheClockIsSetBack: the closing verb that counts must not depend
// on the clock.
func TestTheLastSignalIsTheLastAlsoWhenTheClockIsSetBack(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	db, err := store.Open(t.Context(), pgtest.Path(t, filepath.Join(t.TempDir(), "ralph.db")), store.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const session = "00000000-0000-4000-8000-000000000001"
	if err := db.Tx(t.Context(), func(tx *store.Tx) error {
		id, err := tx.AddTask(ralph.Task{Title: "One", Priority: 2}, "human")
		if err != nil {
			return err
		}
		_, err = tx.StartSession(store.Start{ID: session, Task: id})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, p := range []signals.Payload{signals.Stuck{Reason: "no idea"}, signals.Done{Summary: "made it"}} {
		if _, err := db.Say(t.Context(), 1, session, "agent", p); err != nil {
			t.Fatal(err)
		}
		now = now.Add(-time.Hour)
	}
	if err := db.View(t.Context(), func(tx *store.Tx) error {
		said, err := tx.SessionSignals(session)
		if closing := signals.Closing(said); closing.Payload == nil || closing.Payload.Verb() != ralph.VerbDone {
			t.Errorf("got %+v", closing)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func TestAgentsResolveOnlyAgentsComments(t *testing.T) {
	db, s := working(t)
	yes := true
	say := func(p signals.Payload) int64 {
		t.Helper()
		id, err := db.Say(t.Context(), s.TaskID, s.ID, "agent", p)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	comment := func(by ralph.Origin, kind ralph.CommentKind) (id int64) {
		t.Helper()
		write(t, db, func(tx *store.Tx) (err error) {
			id, err = tx.AddComment(ralph.Comment{TaskID: s.TaskID, Author: "x", AuthorKind: by, Kind: kind, Body: "b", Rationale: "r"})
			return err
		})
		return id
	}
	ids := map[string]int64{
		"an agent's blocker":  comment(ralph.ByAgent, ralph.Blocker),
		"an agent's question": comment(ralph.ByAgent, ralph.Question),
		"an agent's nack":     comment(ralph.ByAgent, ralph.Nack),
		"a person's blocker":  comment(ralph.ByHuman, ralph.Blocker),
		"an ask":              say(signals.Ask{Question: "which?", Blocking: &yes}),
		"blocked(external)":   say(signals.Blocked{On: "the key", Kind: "external"}),
	}
	say(signals.Done{Summary: "made it"})
	write(t, db, func(tx *store.Tx) error {
		f, err := tx.Facts(s.ID)
		if err != nil {
			return err
		}
		f.Ending, f.Changed, f.Verify, f.Protected = ralph.Finished, true, []ralph.Check{{Command: "make test", Passed: true}}, []string{"ci.sh"}
		f.Rules = signals.Rules{StuckLimit: 3, VerifyFailures: 3, Attempts: 10, ReviewProtect: true}
		return tx.Apply(s, f, signals.Decide(f))
	})
	write(t, db, func(tx *store.Tx) error {
		all, err := tx.Timeline(s.TaskID, store.CommentFilter{})
		ids["a review of protected files"] = all[len(all)-1].ID
		return err
	})
	for name, id := range ids {
		want := name == "an agent's blocker" || name == "an agent's question"
		err := db.Tx(t.Context(), func(tx *store.Tx) error { return tx.ResolveAsAgent(id, "d", "codex") })
		if got := err == nil; got != want || err != nil && !errors.Is(err, ralph.ErrConflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
	write(t, db, func(tx *store.Tx) error {
		task, err := tx.Task(s.TaskID)
		if task.Status != ralph.NeedsInput {
			t.Errorf("the review does not hold the task any more: %s", task.Status)
		}
		return err
	})
}

// TestWritersOfSeveralProcessesTakeTurns: each gets a turn, even if others wait or have given up.
func TestWritersOfSeveralProcessesTakeTurns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ralph.db")
	dbs := make([]*store.DB, 4) // as four processes: none shares a lock or a connection
	for i := range dbs {
		dbs[i] = open(t, path)
	}
	var writers sync.WaitGroup
	for _, db := range dbs {
		for range 2 {
			writers.Go(func() {
				for range 25 {
					err := db.Tx(t.Context(), func(tx *store.Tx) error {
						_, err := tx.AddTask(ralph.Task{Title: "T"}, "human")
						return err
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	writers.Wait()
	var tasks []ralph.Task
	if err := dbs[0].View(t.Context(), func(tx *store.Tx) (err error) {
		tasks, err = tx.Tasks(store.TaskFilter{})
		return err
	}); err != nil || len(tasks) != 200 {
		t.Errorf("got %d tasks, %v", len(tasks), err)
	}
	// A writer that has given up leaves no turn behind, and takes none from others.
	gone, cancel := context.WithCancel(t.Context())
	err := dbs[0].Tx(t.Context(), func(*store.Tx) error {
		done := make(chan error)
		go func() { done <- dbs[1].Tx(gone, func(*store.Tx) error { return nil }) }()
		cancel()
		return <-done
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := dbs[1].Tx(t.Context(), func(*store.Tx) error { return nil }); err != nil {
		t.Error(err)
	}
}

// TestALongLogIsTakenIn: the log of a large transaction is merged, so that the next one to open the
// database need not read it.
func TestALongLogIsTakenIn(t *testing.T) {
	pgtest.Files(t)
	path := filepath.Join(t.TempDir(), "ralph.db")
	db, err := store.Open(t.Context(), pgtest.Path(t, path), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := store.Open(t.Context(), pgtest.Path(t, path), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", ralph.MaxText-1)
	if err := db.Tx(t.Context(), func(tx *store.Tx) error {
		for range 10<<20/len(long) + 1 {
			if _, err := tx.AddTask(ralph.Task{Title: "long", Description: long}, "test"); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	log := func() int64 {
		info, err := os.Stat(path + "-wal")
		if err != nil {
			return 0
		}
		return info.Size()
	}
	if log() < 8<<20 {
		t.Fatalf("the log has %d bytes", log())
	}
	// Readers are not waited for.
	if err := other.View(t.Context(), func(tx *store.Tx) error {
		if _, err := tx.Counts(); err != nil {
			return err
		}
		return db.Close()
	}); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil || log() != 0 {
		t.Errorf("the log has %d bytes, %v", log(), err)
	}
}
