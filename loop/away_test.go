package loop_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"ralph/internal/pgtest"
	"ralph/loop"
	"ralph/loop/workspace"
	"ralph/store"
)

// TestARunWaitsForItsDatabase: a server that goes away for longer than anything is tried again, before a run has begun,
// does not end it.
func TestARunWaitsForItsDatabase(t *testing.T) {
	server := pgtest.Start(t, "", nil)
	db, err := store.Open(t.Context(), strings.Replace(server.URL, "/postgres?", "/ralph?", 1), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	lease := store.LeaseTime
	store.LeaseTime = 10 * time.Millisecond
	db.Outlast()
	store.LeaseTime = lease
	t.Parallel()
	l := &loop.Loop{
		Store: db, Here: &workspace.Workspace{Dir: t.TempDir(), State: t.TempDir()}, Log: slog.New(slog.DiscardHandler),
	}
	withWorkspaces(t, l)
	if err := server.Restart(2 * time.Second); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		err = db.View(t.Context(), func(tx *store.Tx) error { _, err := tx.LastEvent(); return err })
	}
	result, err := l.Run(t.Context())
	if err != nil || result.RunID == 0 {
		t.Errorf("got %+v, %v", result, err)
	}
}
