package store_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ralph"
	"ralph/store"
)

// A protected file is known and approved per place.
func TestProtectedFilesAreKnownByPlace(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "ralph.db"))
	here := store.ProtectedFile{Place: "/here", Path: "a", Approved: "1", Seen: "2"}
	there := store.ProtectedFile{Place: "/there", Path: "a", Approved: "1", Seen: "3"}
	same := store.ProtectedFile{Place: "/there", Path: "b", Approved: "1", Seen: "1"}
	write(t, db, func(tx *store.Tx) error { return tx.PutProtectedFiles([]store.ProtectedFile{here, there, same}) })
	look := func(place string, files map[string]store.ProtectedFile, elsewhere ...store.ProtectedFile) {
		t.Helper()
		write(t, db, func(tx *store.Tx) error {
			f, e, err := tx.ProtectedFiles(place)
			if diff := cmp.Diff(files, f) + cmp.Diff(elsewhere, e); diff != "" {
				t.Error(diff)
			}
			return err
		})
	}
	look("/here", map[string]store.ProtectedFile{"a": here}, there)
	look("/there", map[string]store.ProtectedFile{"a": there, "b": same}, here)

	const session = "11111111-1111-4111-8111-111111111111"
	write(t, db, func(tx *store.Tx) error {
		id, err := tx.AddTask(ralph.Task{Title: "A"}, "human")
		if err != nil {
			return err
		}
		if _, err = tx.StartSession(store.Start{ID: session, Task: id, Dir: "/here"}); err != nil {
			return err
		}
		_, err = tx.ExecContext(t.Context(), `
			INSERT INTO task_comments (task_id, session_id, author, author_kind, kind, body, holding, review)
			VALUES ($1, $2, 'ralph', 'agent', 'question', 'b', 1, '["a"]')`, id, session)
		return err
	})
	write(t, db, func(tx *store.Tx) error {
		for place, want := range map[string]bool{"/here": true, "/there": false} {
			waiting, err := tx.UnderReview(place)
			if err != nil || waiting["a"] != want {
				t.Errorf("%s: under review: %v, %v", place, waiting, err)
			}
		}
		if _, err := tx.ExecContext(t.Context(), `UPDATE tasks SET status = 'needs_input'`); err != nil {
			return err
		}
		return tx.ApproveReview(1, "", "ann")
	})
	here.Approved = here.Seen
	look("/here", map[string]store.ProtectedFile{"a": here}, there)
	look("/there", map[string]store.ProtectedFile{"a": there, "b": same})
}
