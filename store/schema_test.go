package store_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"ralph/store"
)

// TestTheTableOfCommentsIsAsDesigned: people query it by themselves, so its
// columns, types and indexes are an interface.
func TestTheTableOfCommentsIsAsDesigned(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "ralph.db"))
	type column struct {
		kind     string
		required bool
		key      bool
	}
	want := map[string]column{
		"id":              {"INTEGER", false, true},
		"task_id":         {"INTEGER", true, false},
		"session_id":      {"TEXT", false, false},
		"author":          {"TEXT", true, false},
		"signal_verb":     {"TEXT", false, false},
		"signal_payload":  {"TEXT", false, false},
		"signal_answered": {"TEXT", false, false},
		"body":            {"TEXT", true, false},
		"created":         {"TEXT", true, false},
	}
	err := db.View(t.Context(), func(tx *store.Tx) error {
		rows, err := tx.QueryContext(t.Context(), `SELECT name, type, "notnull", pk FROM pragma_table_info('task_comments')`)
		if err != nil {
			return err
		}
		for rows.Next() {
			var name string
			var c column
			if err := rows.Scan(&name, &c.kind, &c.required, &c.key); err != nil {
				return errors.Join(err, rows.Close())
			}
			if w, ok := want[name]; ok && w != c {
				t.Errorf("%s is %+v, want %+v", name, c, w)
			}
			delete(want, name)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return err
		}
		for name := range want {
			t.Errorf("there is no column %s", name)
		}
		for name, columns := range map[string]string{
			"idx_task_comments_task": "(task_id)", "idx_task_comments_session": "(session_id)", "idx_task_comments_verb": "(signal_verb)",
		} {
			var ddl string
			if err := tx.QueryRowContext(t.Context(), `SELECT sql FROM sqlite_master WHERE type = 'index' AND name = $1`, name).Scan(&ddl); err != nil || !strings.HasSuffix(ddl, columns) {
				t.Errorf("index %s is %q (%v)", name, ddl, err)
			}
		}
		var ddl string
		if err := tx.QueryRowContext(t.Context(), `SELECT sql FROM sqlite_master WHERE name = 'task_comments'`).Scan(&ddl); err != nil {
			return err
		}
		for _, part := range []string{"AUTOINCREMENT", "REFERENCES tasks(id) ON DELETE CASCADE", ") STRICT"} {
			if !strings.Contains(ddl, part) {
				t.Errorf("the table is not declared with %s", part)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
