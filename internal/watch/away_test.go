package watch

import (
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/store"
)

// TestAScreenOutlastsTheDatabase: while the server is unreachable the screen says so, and then it shows the events.
func TestAScreenOutlastsTheDatabase(t *testing.T) {
	server := pgtest.Start(t, "", nil)
	db, err := store.Open(t.Context(), strings.Replace(server.URL, "/postgres?", "/ralph?", 1), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	lease := store.LeaseTime
	store.LeaseTime = time.Millisecond
	db.Outlast()
	store.LeaseTime = lease
	t.Parallel()
	s := &Queue{Store: db, State: t.TempDir()}
	v, err := s.Snapshot(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	<-v.Changed
	if _, err = s.Snapshot(t.Context(), 0); !store.Passes(err) || !strings.Contains(err.Error(), "the server does not answer") {
		t.Fatalf("without a server it shows %v", err)
	}
	if err := server.Restart(0); err != nil {
		t.Fatal(err)
	}
	for err != nil {
		v, err = s.Snapshot(t.Context(), 0)
	}
	add := func(tx *store.Tx) error { _, err := tx.AddTask(ralph.Task{Title: "New"}, "human"); return err }
	if err := db.Tx(t.Context(), add); err != nil {
		t.Fatal(err)
	}
	for v.Counts["queued"] != 1 {
		<-v.Changed
		if v, err = s.Snapshot(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
}
