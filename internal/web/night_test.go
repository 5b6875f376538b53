package web_test

import (
	"path/filepath"
	"testing"

	"ralph/internal/web/night"
	"ralph/store"
)

// newNight is a dashboard over a rich night.
func newNight(t testing.TB) (*site, *night.Night) {
	t.Helper()
	s, n := newSite(t), &night.Night{}
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "ralph.db"), store.Options{Now: n.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := n.Fill(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	s.db, s.server.Store, s.files = db, db, n.Files
	return s, n
}

func TestNight(t *testing.T) {
	s, n := newNight(t)
	if len(n.Merged) != 29 || len(n.Failed) != 15 || len(n.Running) != 2 {
		t.Errorf("%d merged, %d failed, %d running", len(n.Merged), len(n.Failed), len(n.Running))
	}
	t.Log(s.browser().get("/"))
}
