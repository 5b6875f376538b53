package store_test

import (
	"path/filepath"
	"testing"

	"ralph"
	"ralph/store"
)

// TestSearchFindsEverything by its words in any case, and takes wildcards literally.
func TestSearchFindsEverything(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "ralph.db"))
	write(t, db, func(tx *store.Tx) error {
		for _, title := range []string{"Parse URLs", "100% coverage", "Other"} {
			if _, err := tx.AddTask(ralph.Task{Title: title, Description: "about " + title, Priority: 2}, "human"); err != nil {
				return err
			}
		}
		if _, err := tx.AddLearning(ralph.Learning{Text: "urls have no slash", Kind: "convention", Scope: ralph.ScopeProject, Author: "ada"}); err != nil {
			return err
		}
		_, err := tx.AddComment(ralph.Comment{TaskID: 3, Author: "ada", AuthorKind: ralph.ByHuman, Kind: ralph.Note, Body: "mind the URLS"})
		return err
	})
	kinds := func(text string) (got string) {
		write(t, db, func(tx *store.Tx) error {
			found, err := tx.Search(text, 5)
			for _, f := range found {
				got += f.Kind + " "
			}
			return err
		})
		return got
	}
	for text, want := range map[string]string{"Urls": "task comment learning ", "100%": "task ", "0_": "", "nothing": ""} {
		if got := kinds(text); got != want {
			t.Errorf("%q finds %q, want %q", text, got, want)
		}
	}
}
