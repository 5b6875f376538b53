package follow

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/store"
)

// TestFollowersOutlastTheDatabase: a server that is away for longer than anything is tried again ends no printing.
func TestFollowersOutlastTheDatabase(t *testing.T) {
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
	var printed []io.Reader
	over, ended := make(chan struct{}), make(chan error)
	for _, follow := range []func(out io.Writer) error{
		func(out io.Writer) error { return (&Progress{Store: db, Out: out, JSON: true}).Follow(over) },
		func(out io.Writer) error {
			return (&Events{Store: db, Out: out, JSON: true, Over: func(context.Context) (bool, error) {
				select {
				case <-over:
					return true, nil
				default:
					return false, nil
				}
			}}).Follow(t.Context())
		},
	} {
		read, out := io.Pipe()
		printed = append(printed, read)
		go func() {
			err := follow(out)
			ended <- errors.Join(err, out.CloseWithError(err))
		}()
	}
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
		for i, read := range printed {
			var line [1000]byte
			n, err := read.Read(line[:])
			if err != nil || !strings.Contains(string(line[:n]), title) {
				t.Fatalf("follower %d printed %q, %v", i, line[:n], err)
			}
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
	for range printed {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
