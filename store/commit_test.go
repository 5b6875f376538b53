package store_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"testing"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/store"
)

// A cutter passes on the messages of a client and a PostgreSQL, and cuts the connection of the next COMMIT.
type cutter struct {
	server string // its socket
	cut    atomic.Value
}

// pass serves one client.
func (c *cutter) pass(t *testing.T, client net.Conn) {
	defer client.Close()
	server, err := net.Dial("unix", c.server)
	if err != nil {
		t.Error(err)
		return
	}
	defer server.Close()
	var deaf atomic.Bool // what the server answers is lost
	go func() {
		defer client.Close()
		b := make([]byte, 1<<16)
		for {
			n, err := server.Read(b)
			if err != nil || deaf.Load() {
				return
			}
			if _, err := client.Write(b[:n]); err != nil {
				return
			}
		}
	}()
	b := make([]byte, 1<<16)
	for {
		n, err := client.Read(b)
		if err != nil {
			return
		}
		if bytes.Contains(b[:n], []byte("commit\x00")) {
			switch c.cut.Swap("") {
			case "before":
				return
			case "after":
				deaf.Store(true)
			}
		}
		if _, err := server.Write(b[:n]); err != nil && !errors.Is(err, io.EOF) {
			return
		}
	}
}

// TestACommitThatIsNotAnswered is read back: a stored transaction is not repeated, an unstored one is.
func TestACommitThatIsNotAnswered(t *testing.T) {
	u, err := url.Parse(pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	c := &cutter{server: filepath.Join(q.Get("host"), ".s.PGSQL.5432")}
	c.cut.Store("")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go c.pass(t, client)
		}
	}()
	q.Del("host")
	q.Set("sslmode", "disable")
	u.Host, u.RawQuery = listener.Addr().String(), q.Encode()
	db, err := store.Open(t.Context(), u.String(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for i, tt := range []struct {
		cut   string
		calls int
	}{{"before", 2}, {"after", 1}, {"", 1}} {
		calls := 0
		c.cut.Store(tt.cut)
		if err := db.Tx(t.Context(), func(tx *store.Tx) error {
			calls++
			_, err := tx.StartRun("other-boot/pid:[1] 7 7 token", ralph.Limits{}, "")
			return err
		}); err != nil {
			t.Fatalf("cut %s: %v", tt.cut, err)
		}
		runs, err := store.Read(t.Context(), db, func(tx *store.Tx) ([]ralph.Run, error) { return tx.Runs(ralph.Time{}, 10, 0) })
		if err != nil || len(runs) != i+1 || calls != tt.calls || c.cut.Load() != "" {
			t.Errorf("cut %q: %d runs after %d calls, want %d after %d (%v)", tt.cut, len(runs), calls, i+1, tt.calls, err)
		}
		// The same holds for a transaction that reads nothing before its COMMIT.
		c.cut.Store(tt.cut)
		if err := db.Tx(t.Context(), func(tx *store.Tx) error {
			_, err := tx.ExecContext(t.Context(), `UPDATE merge_queue SET failures = failures + $1`, 1)
			return err
		}); err != nil {
			t.Fatalf("cut %s: %v", tt.cut, err)
		}
		if q, err := store.Read(t.Context(), db, (*store.Tx).MergeQueue); err != nil || q.Failures != i+1 {
			t.Errorf("cut %q: changed %d times, want %d (%v)", tt.cut, q.Failures, i+1, err)
		}
	}
}

// TestAServerThatOnlyReads for a while, as when another one takes its place, is tried again by new connections.
func TestAServerThatOnlyReads(t *testing.T) {
	name := pgtest.New(t)
	raw := pgtest.Raw(t, name)
	set := func(what string) {
		t.Helper()
		if _, err := raw.ExecContext(t.Context(), `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I `+what+`', current_database()); END $$`); err != nil {
			t.Fatal(err)
		}
	}
	set("SET default_transaction_read_only = on")
	db, err := store.Open(t.Context(), name, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tried := 0
	if err := db.Tx(t.Context(), func(tx *store.Tx) error {
		if tried++; tried == 2 {
			set("RESET default_transaction_read_only")
		}
		return tx.Touch()
	}); err != nil || tried < 3 {
		t.Errorf("tried %d times: %v", tried, err)
	}
}
