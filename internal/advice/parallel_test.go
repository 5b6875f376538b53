package advice_test

import (
	"path/filepath"
	"strings"
	"testing"

	"ralph"
	"ralph/internal/advice"
	"ralph/internal/web/webtest"
	"ralph/store"
)

// TestASessionThatStandsStillSaysSo instead of its phase, until the permission is answered.
func TestASessionThatStandsStillSaysSo(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "ralph.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := new(webtest.Night).Fill(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	lines := func(tx *store.Tx, run ralph.Run) string {
		list, err := advice.Sessions(tx, run)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, l := range list {
			b.WriteString(l.Line(tx.Now(), 200) + "\n")
		}
		return b.String()
	}
	err = db.Tx(t.Context(), func(tx *store.Tx) error {
		run, _, err := tx.LastRun()
		if err != nil {
			return err
		}
		if got := lines(tx, run); strings.Count(got, "stands still") != 1 || strings.Count(got, "implementing") != 1 {
			t.Errorf("the sessions are:\n%s", got)
		}
		asked, err := tx.InboxOf("permission")
		if err == nil {
			err = tx.AnswerPermission(asked[0].Ref.ID, true, "", "ada")
		}
		if got := lines(tx, run); strings.Count(got, "implementing") != 2 {
			t.Errorf("once it is answered, the sessions are:\n%s", got)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
