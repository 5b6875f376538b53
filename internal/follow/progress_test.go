package follow

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/store"
)

// TestProgressOutlastsTheDatabase: a server that is away for longer than anything is tried again ends no printing.
func TestProgressOutlastsTheDatabase(t *testing.T) {
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
	read, out := io.Pipe()
	over, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		err := (&Progress{Store: db, Out: out, JSON: true}).Follow(over)
		ended <- errors.Join(err, out.CloseWithError(err))
	}()
	add := func(title string) {
		t.Helper()
		for { // while the server starts
			err := db.Tx(t.Context(), func(tx *store.Tx) error {
				_, err := tx.AddTask(ralph.Task{Title: title, Status: ralph.Pending, Priority: ralph.DefaultPriority}, "test")
				return err
			})
			if err == nil {
				break
			}
			if !store.Passes(err) {
				t.Fatal(err)
			}
		}
		var line [1000]byte
		n, err := read.Read(line[:])
		if err != nil || !strings.Contains(string(line[:n]), title) {
			t.Fatalf("printed %q, %v", line[:n], err)
		}
	}
	add("before")
	if err := server.Restart(2 * time.Second); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		err = db.View(t.Context(), func(tx *store.Tx) error { _, err := tx.LastEvent(); return err })
	}
	add("after")
	close(over)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
