package store_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/store"
)

// counted returns the URL of a new database, and how often its server has been waited for since the last call. The end
// of a transaction that has only read is not waited for.
func counted(t *testing.T) (name string, trips func() int64) {
	t.Helper()
	to := pgtest.New(t)
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	const socket = ".s.PGSQL.5432"
	server, dir := u.Query().Get("host"), t.TempDir()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(dir, socket))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	var n atomic.Int64
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // it was closed
			}
			behind, err := (&net.Dialer{}).DialContext(t.Context(), "unix", filepath.Join(server, socket))
			if err != nil {
				_ = client.Close()
				continue
			}
			go func() { _, _ = io.Copy(client, behind); _ = client.Close() }()
			go func() { count(client, behind, &n); _ = behind.Close() }()
		}
	}()
	q := u.Query()
	q.Set("host", dir)
	u.RawQuery = q.Encode()
	return u.String(), func() int64 { return n.Swap(0) }
}

// count passes on what a client says, and counts how often it asks for an answer.
func count(from io.Reader, to io.Writer, n *atomic.Int64) {
	ends := false
	for first := true; ; first = false {
		head := make([]byte, 5)
		if first { // has no type
			head = head[:4]
		}
		if _, err := io.ReadFull(from, head); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[len(head)-4:])-4)
		if _, err := io.ReadFull(from, body); err != nil {
			return
		}
		switch {
		case first:
		case head[0] == 'P': // parse: a name and a text
			ends = bytes.Contains(body, []byte("\x00ROLLBACK\x00"))
		case head[0] == 'S' && !ends, head[0] == 'Q': // sync, query
			n.Add(1)
		}
		if _, err := to.Write(append(head, body...)); err != nil {
			return
		}
	}
}

// TestAServerIsWaitedForWhereAnAnswerIsNeeded, and not once for each statement.
func TestAServerIsWaitedForWhereAnAnswerIsNeeded(t *testing.T) {
	name, trips := counted(t)
	db := handle(t, name, store.Options{})
	write(t, db, func(tx *store.Tx) error {
		return errors.Join(tx.PutDiscipline(ralph.Discipline{Name: "ui"}), tx.PutFeature(ralph.Feature{Name: "shop"}))
	})
	queue := func(tx *store.Tx) error { _, err := tx.MergeQueue(); return err }
	one := func(tx *store.Tx) error { _, err := tx.Discipline("ui"); return err }
	other := func(tx *store.Tx) error { _, err := tx.Feature("shop"); return err }
	twice := func(tx *store.Tx) error { return errors.Join(one(tx), other(tx)) }
	both := func(tx *store.Tx) error { return tx.Together(one, other) }
	changes := func(tx *store.Tx) error {
		_, err := tx.ExecContext(t.Context(), `UPDATE merge_queue SET target = $1`, "main")
		return err
	}
	in := func(fs ...func(*store.Tx) error) []func(*store.Tx) error { return fs }
	for _, tt := range []struct {
		name   string
		writes bool
		f      []func(*store.Tx) error
		want   int64
	}{
		{"one after the other", false, in(one, other, queue), 3},
		{"together", false, in(func(tx *store.Tx) error { return tx.Together(one, other, queue) }), 1},
		{"together with those who read together", false, in(func(tx *store.Tx) error { return tx.Together(both, queue, twice) }), 1},
		{"the same twice", false, in(func(tx *store.Tx) error { return tx.Together(one, one) }), 1},
		{"a change after what is read", true, in(both, changes), 2},
		{"a change after the time is known", true, in(func(tx *store.Tx) error { tx.Now(); return nil }, changes, changes), 2},
		{"a transaction that changes nothing", true, in(both), 1},
		{"one without statements", true, nil, 0},
	} {
		for try := range 2 { // the first prepares statements
			begin := db.View
			if tt.writes {
				begin = db.Tx
			}
			if trips(); begin(t.Context(), func(tx *store.Tx) error {
				for _, f := range tt.f {
					if err := f(tx); err != nil {
						return err
					}
				}
				return nil
			}) != nil {
				t.Errorf("%s failed", tt.name)
			}
			if got := trips(); try > 0 && got != tt.want {
				t.Errorf("%s: %d instead of %d", tt.name, got, tt.want)
			}
		}
	}
}

// TestWhatIsReadTogether is what is read one after the other; the first that fails is said.
func TestWhatIsReadTogether(t *testing.T) {
	eachDatabase(t, func(t *testing.T, name string) {
		db := handle(t, name, store.Options{})
		write(t, db, func(tx *store.Tx) error { return tx.PutDiscipline(ralph.Discipline{Name: "ui", Model: "opus"}) })
		var d ralph.Discipline
		var all []ralph.Discipline
		var after string
		read := func(tx *store.Tx) error {
			return tx.Together(
				store.Into(&all, (*store.Tx).Disciplines),
				func(tx *store.Tx) (err error) {
					if d, err = tx.Discipline("ui"); err == nil {
						after = d.Model
						_, err = tx.MergeQueue()
					}
					return err
				},
			)
		}
		if err := db.View(t.Context(), read); err != nil || len(all) != 1 || after != "opus" {
			t.Errorf("%+v, %q, %v", all, after, err)
		}
		write(t, db, func(tx *store.Tx) error {
			ui := func(tx *store.Tx) (err error) { d, err = tx.Discipline("ui"); return err }
			err := tx.Together(ui, store.Into(&all, (*store.Tx).Disciplines))
			if err == nil {
				_, err = tx.ExecContext(t.Context(), `UPDATE disciplines SET model = $1`, "haiku")
			}
			return errors.Join(err, ui(tx))
		})
		if d.Model != "haiku" {
			t.Errorf("after its change it is %q", d.Model)
		}
		err := db.View(t.Context(), func(tx *store.Tx) error {
			return tx.Together(
				func(tx *store.Tx) error { _, err := tx.MergeQueue(); return err },
				func(tx *store.Tx) error { _, err := tx.Discipline("api"); return err },
				func(tx *store.Tx) error { _, err := tx.Task(7); return err },
				read,
			)
		})
		if !errors.Is(err, ralph.ErrNotFound) || !strings.Contains(err.Error(), "api") {
			t.Errorf("got %v", err)
		}
		err = db.View(t.Context(), func(tx *store.Tx) error {
			return tx.Together(func(tx *store.Tx) error {
				return tx.QueryRowContext(t.Context(), `SELECT 1 FROM nowhere`).Scan(new(int))
			}, read, read)
		})
		if err == nil || !strings.Contains(err.Error(), "nowhere") {
			t.Errorf("got %v", err)
		}
	})
}

// TestALongCommandHasAResult: an index of PostgreSQL does not take it as it is.
func TestALongCommandHasAResult(t *testing.T) {
	eachDatabase(t, func(t *testing.T, name string) {
		db := handle(t, name, store.Options{})
		noise := make([]byte, 6000)
		if _, err := rand.Read(noise); err != nil {
			t.Fatal(err)
		}
		long := base64.StdEncoding.EncodeToString(noise)
		write(t, db, func(tx *store.Tx) error { return tx.PutVerification("tree", long, "passed") })
		for command, want := range map[string]string{long: "passed", long + "!": ""} {
			got := ""
			if err := db.View(t.Context(), func(tx *store.Tx) error {
				_, err := tx.Verification("tree", command, &got)
				return err
			}); err != nil || got != want {
				t.Errorf("%q instead of %q, %v", got, want, err)
			}
		}
	})
}
