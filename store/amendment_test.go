package store_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"ralph"
	"ralph/store"
)

func TestThreeOpenBlockersAreEnoughWhoeverComesFirst(t *testing.T) {
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
	raw, err := sql.Open("sqlite3", "file:"+db.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
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
