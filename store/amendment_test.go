package store_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/store"
)

func TestAFourthOpenBlockerIsRefused(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "ralph.db"))
	write(t, db, func(tx *store.Tx) error { _, err := tx.AddTask(ralph.Task{Title: "A"}, "human"); return err })
	const writers = 8
	errs := make(chan error, writers)
	for range writers {
		other := open(t, db.Path())
		go func() {
			errs <- other.Tx(t.Context(), func(tx *store.Tx) error {
				_, err := tx.AddComment(ralph.Comment{TaskID: 1, Author: "backend", AuthorKind: ralph.ByAgent, Kind: ralph.Blocker, Body: "b", Rationale: "r"})
				return err
			})
		}()
	}
	refused := 0
	for range writers {
		if err := <-errs; errors.Is(err, ralph.ErrInvariant) {
			refused++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if refused != writers-ralph.MaxOpenBlockers {
		t.Errorf("%d of %d were refused, want all but %d", refused, writers, ralph.MaxOpenBlockers)
	}
	// It is the author's own on that task, and resolving one frees a place.
	blocker := func(task int64, author string) func(tx *store.Tx) error {
		return func(tx *store.Tx) error {
			_, err := tx.AddComment(ralph.Comment{TaskID: task, Author: author, AuthorKind: ralph.ByAgent, Kind: ralph.Blocker, Body: "b", Rationale: "r"})
			return err
		}
	}
	write(t, db, blocker(1, "frontend"))
	write(t, db, func(tx *store.Tx) error { _, err := tx.AddTask(ralph.Task{Title: "B"}, "human"); return err })
	write(t, db, blocker(2, "backend"))
	write(t, db, func(tx *store.Tx) error { return tx.Resolve(1, "done", "ann") })
	write(t, db, blocker(1, "backend"))
	if err := db.Tx(t.Context(), blocker(1, "backend")); !errors.Is(err, ralph.ErrInvariant) {
		t.Errorf("a fourth after one was resolved: %v", err)
	}
	if pgtest.Used() {
		return
	}
	var plan string
	write(t, db, func(tx *store.Tx) error {
		var a, b, c int
		return tx.QueryRowContext(t.Context(), `EXPLAIN QUERY PLAN SELECT count(*) FROM task_comments WHERE task_id = 1 AND author = 'x' AND kind = 'blocker' AND resolved_at = ''`).Scan(&a, &b, &c, &plan)
	})
	if !strings.Contains(plan, "task_comments_open_blockers_idx") {
		t.Errorf("counting does not use the index: %s", plan)
	}
}

func TestHistoryOfAmendmentsIsReadOnly(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "ralph.db"))
	title := "B"
	write(t, db, func(tx *store.Tx) error {
		if _, err := tx.AddTask(ralph.Task{Title: "A"}, "human"); err != nil {
			return err
		}
		for range 2 {
			if _, err := tx.Propose(ralph.Amendment{TaskID: 1, Author: "agent", AuthorKind: ralph.ByAgent, Patch: ralph.Patch{Title: &title}, Rationale: "r"}); err != nil {
				return err
			}
		}
		return tx.RejectAmendment(2, "no", "ann")
	})
	raw := rawly(t, db)
	for _, statement := range []string{
		`UPDATE task_amendments SET status = 'proposed' WHERE id = 1`, `UPDATE task_amendments SET decision_note = 'yes' WHERE id = 2`, `DELETE FROM task_amendments WHERE id = 1`,
		`INSERT INTO task_amendments (task_id, author, author_kind, patch, rationale, created) VALUES (1, 'a', 'agent', '[]', 'r', '')`,
		`INSERT INTO task_amendments (task_id, author, author_kind, patch, rationale, created) VALUES (1, 'a', 'agent', '{}', ' ', '')`,
		`INSERT INTO task_amendments (task_id, author, author_kind, patch, rationale, status, created) VALUES (1, 'a', 'agent', '{}', 'r', 'rejected', '')`,
	} {
		if _, err := raw.ExecContext(t.Context(), statement); err == nil {
			t.Errorf("%s was taken", statement)
		}
	}
	write(t, db, func(tx *store.Tx) error {
		list, err := tx.Amendments(store.AmendmentFilter{Task: 1})
		if len(list) != 2 || list[0].Status != ralph.AmendmentSuperseded || list[1].Status != ralph.AmendmentRejected || list[1].Note != "no" {
			t.Errorf("got %+v", list)
		}
		task, terr := tx.Task(1)
		if task.Title != "A" {
			t.Errorf("a rejected amendment changed the title to %s", task.Title)
		}
		return errors.Join(err, terr)
	})
}

// New information resets the stuck count (pipeline rule 5, decision 8); comments among agents do
// not.
func TestPeoplesCommentsAreNewInformation(t *testing.T) {
	title := "B"
	propose := func(tx *store.Tx) (int64, error) {
		return tx.Propose(ralph.Amendment{TaskID: 1, Author: "agent", AuthorKind: ralph.ByAgent, Patch: ralph.Patch{Title: &title}, Rationale: "r"})
	}
	say := func(tx *store.Tx, by ralph.Origin, kind ralph.CommentKind) (int64, error) {
		return tx.AddComment(ralph.Comment{TaskID: 1, Author: string(by), AuthorKind: by, Kind: kind, Body: "b", Rationale: "r"})
	}
	for _, tt := range []struct {
		name    string
		prepare func(tx *store.Tx) (int64, error)
		happens func(tx *store.Tx, id int64) error
		renews  bool
	}{
		{"an approved amendment", propose, func(tx *store.Tx, id int64) error { _, err := tx.ApproveAmendment(id, "", "ann"); return err }, true},
		{"a rejected amendment", propose, func(tx *store.Tx, id int64) error { return tx.RejectAmendment(id, "no", "ann") }, false},
		{"a proposed amendment", func(*store.Tx) (int64, error) { return 0, nil }, func(tx *store.Tx, _ int64) error { _, err := propose(tx); return err }, false},
		{"a person's comment", func(*store.Tx) (int64, error) { return 0, nil }, func(tx *store.Tx, _ int64) error { _, err := say(tx, ralph.ByHuman, ralph.Note); return err }, true},
		{"an agent's comment", func(*store.Tx) (int64, error) { return 0, nil }, func(tx *store.Tx, _ int64) error { _, err := say(tx, ralph.ByAgent, ralph.Note); return err }, false},
		{"a resolved blocker", func(tx *store.Tx) (int64, error) { return say(tx, ralph.ByAgent, ralph.Blocker) }, func(tx *store.Tx, id int64) error { return tx.Resolve(id, "it is there", "ann") }, true},
		{"a resolved question", func(tx *store.Tx) (int64, error) { return say(tx, ralph.ByAgent, ralph.Question) }, func(tx *store.Tx, id int64) error { return tx.Resolve(id, "yes", "agent") }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db := open(t, filepath.Join(t.TempDir(), "ralph.db"))
			var id int64
			write(t, db, func(tx *store.Tx) (err error) {
				if _, err = tx.AddTask(ralph.Task{Title: "A"}, "human"); err != nil {
					return err
				}
				id, err = tt.prepare(tx)
				return err
			})
			write(t, db, func(tx *store.Tx) error {
				_, err := tx.ExecContext(t.Context(), `UPDATE tasks SET stuck_count = 2, verify_failures = 2`)
				return err
			})
			write(t, db, func(tx *store.Tx) error { return tt.happens(tx, id) })
			write(t, db, func(tx *store.Tx) error {
				task, err := tx.Task(1)
				if renewed := task.StuckCount == 0 && task.VerifyFailures == 0; renewed != tt.renews || !renewed && (task.StuckCount != 2 || task.VerifyFailures != 2) {
					t.Errorf("stuck %d times, %d failures of verification", task.StuckCount, task.VerifyFailures)
				}
				return err
			})
		})
	}
}

func TestEndedTasksAreNotAmended(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "ralph.db"))
	title := "B"
	propose := func(tx *store.Tx) (int64, error) {
		return tx.Propose(ralph.Amendment{TaskID: 1, Author: "agent", AuthorKind: ralph.ByAgent, Patch: ralph.Patch{Title: &title}, Rationale: "r"})
	}
	write(t, db, func(tx *store.Tx) error {
		if _, err := tx.AddTask(ralph.Task{Title: "A"}, "human"); err != nil {
			return err
		}
		if _, err := propose(tx); err != nil {
			return err
		}
		_, err := tx.Cancel(1, "ann")
		return err
	})
	for name, change := range map[string]func(tx *store.Tx) error{
		"proposed": func(tx *store.Tx) error { _, err := propose(tx); return err },
		"approved": func(tx *store.Tx) error { _, err := tx.ApproveAmendment(1, "", "ann"); return err },
	} {
		if err := db.Tx(t.Context(), change); !errors.Is(err, ralph.ErrConflict) || !strings.Contains(err.Error(), "TASK-1 is cancelled") {
			t.Errorf("an amendment of a cancelled task is %s: %v", name, err)
		}
	}
	write(t, db, func(tx *store.Tx) error { return tx.RejectAmendment(1, "it is off", "ann") }) // so that it waits for nobody
}

func TestARollbackNamesLaterChanges(t *testing.T) {
	title, description, priority, acceptance, verify := "B", "b", 1, []string{"b"}, []string{"true"}
	before := ralph.Task{Title: "A", Description: "a", Priority: 3, Acceptance: []string{"a"}, Verify: []string{"false"}}
	for _, tt := range []struct {
		name   string
		change func(task *ralph.Task)
		want   []string
	}{
		{"nothing", func(*ralph.Task) {}, nil},
		{"what the amendment left alone", func(task *ralph.Task) { task.Model = "opus" }, nil},
		{"the title", func(task *ralph.Task) { task.Title = "C" }, []string{"title"}},
		{"the description", func(task *ralph.Task) { task.Description = "c" }, []string{"description"}},
		{"the criteria", func(task *ralph.Task) { task.Acceptance = []string{"c"} }, []string{"contracts"}},
		{"the verification", func(task *ralph.Task) { task.Verify = nil }, []string{"contracts"}},
		{"the priority", func(task *ralph.Task) { task.Priority = 0 }, []string{"priority"}},
		{"several", func(task *ralph.Task) { task.Title, task.Priority = "C", 0 }, []string{"title", "priority"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db := open(t, filepath.Join(t.TempDir(), "ralph.db"))
			var changed ralph.Task
			write(t, db, func(tx *store.Tx) error {
				if _, err := tx.AddTask(before, "human"); err != nil {
					return err
				}
				id, err := tx.Propose(ralph.Amendment{TaskID: 1, Author: "agent", AuthorKind: ralph.ByAgent, Rationale: "r", Patch: ralph.Patch{
					Title: &title, Description: &description, Priority: &priority, Contracts: &ralph.Contract{Acceptance: &acceptance, Verify: &verify},
				}})
				if err != nil {
					return err
				}
				if _, err := tx.ApproveAmendment(id, "", "ann"); err != nil {
					return err
				}
				if changed, err = tx.Task(1); err != nil {
					return err
				}
				tt.change(&changed)
				return tx.UpdateTask(changed)
			})
			write(t, db, func(tx *store.Tx) error {
				conflicts, err := tx.RollBack(1, "ann")
				if err != nil {
					return err
				}
				now, err := tx.Task(1)
				want := changed
				if tt.want == nil {
					want = before
				}
				if !slices.Equal(conflicts, tt.want) || now.Title != want.Title || now.Description != want.Description || now.Priority != want.Priority ||
					!slices.Equal(now.Acceptance, want.Acceptance) || !slices.Equal(now.Verify, want.Verify) {
					t.Errorf("conflicts %q, want %q; now %+v", conflicts, tt.want, now)
				}
				return err
			})
		})
	}
}

func TestOnlyAmendmentsThatStandAreTold(t *testing.T) {
	var passed atomic.Int64
	begin := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	db, err := store.Open(t.Context(), pgtest.Path(t, filepath.Join(t.TempDir(), "ralph.db")), store.Options{Now: func() time.Time { return begin.Add(time.Duration(passed.Load())) }})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	write(t, db, func(tx *store.Tx) error { _, err := tx.AddTask(ralph.Task{Title: "A"}, "human"); return err })
	approve := func(title string) (id int64) {
		passed.Add(int64(time.Minute))
		write(t, db, func(tx *store.Tx) (err error) {
			if id, err = tx.Propose(ralph.Amendment{TaskID: 1, Author: "agent", AuthorKind: ralph.ByAgent, Patch: ralph.Patch{Title: &title}, Rationale: "r"}); err != nil {
				return err
			}
			_, err = tx.ApproveAmendment(id, "", "ann")
			return err
		})
		return id
	}
	approve("before the last session")
	passed.Add(int64(time.Minute))
	since := ralph.At(begin.Add(time.Duration(passed.Load())))
	stands, undone := approve("B"), approve("C")
	write(t, db, func(tx *store.Tx) error { _, err := tx.RollBack(undone, "ann"); return err })
	write(t, db, func(tx *store.Tx) error {
		list, err := tx.AmendedSince(1, since)
		if len(list) != 1 || list[0].ID != stands {
			t.Errorf("got %+v, want amendment %d", list, stands)
		}
		return err
	})
}
