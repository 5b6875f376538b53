package store

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"strings"
	"time"

	sqlite3 "github.com/mattn/go-sqlite3"

	"ralph"
	"ralph/migrations"
)

// A database moves to another folder in steps, each of which may be the last one before a crash: it
// is opened exclusively, copied, and retired, after which no ralph opens it again. When all files
// that belong to it have followed, a small marker file takes its place.

// ErrInUse says that another process has a database open.
var ErrInUse = errors.New("another process has the database open")

// movedID marks the file that replaces a moved database. It is in SQLite's header, where it can be
// read without opening the database.
const movedID = 0x52616c70 // "Ralp"

// Moved reports whether a file is the marker of a moved database. It must not be called for a
// database that this process has open: closing the file would release its locks.
func Moved(path string) (moved bool, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	header := make([]byte, 72)
	if _, err := io.ReadFull(f, header); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return false, nil
		}
		return false, err
	}
	return string(header[:15]) == "SQLite format 3" && binary.BigEndian.Uint32(header[68:]) == movedID, nil
}

// A Sole is a database that nobody else has open until it is closed. It is neither created nor
// migrated.
type Sole struct {
	db   *sql.DB
	path string
}

// OpenAlone opens a database exclusively; the error wraps [ErrInUse] if another process has it
// open.
func OpenAlone(ctx context.Context, path string) (*Sole, error) {
	// EXCLUSIVE before the write-ahead log is touched: every connection in WAL mode holds a shared
	// lock while it is open, and this one waits for those.
	db, err := sql.Open(sqlite.driver, uri(path)+"?mode=rw&_locking_mode=EXCLUSIVE&_synchronous=FULL&_busy_timeout=1000")
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", path, err)
	}
	db.SetMaxOpenConns(1)
	for _, statement := range []string{`BEGIN EXCLUSIVE`, `COMMIT`} {
		if _, err = db.ExecContext(ctx, statement); err != nil {
			break
		}
	}
	if err == nil {
		return &Sole{db, path}, nil
	}
	var e sqlite3.Error
	if errors.As(err, &e) && (e.Code == sqlite3.ErrBusy || e.Code == sqlite3.ErrLocked) {
		err = ErrInUse
	}
	return nil, errors.Join(fmt.Errorf("database %s: %w", path, sqlite.explain(err)), db.Close())
}

// Close releases the database.
func (s *Sole) Close() error { return s.db.Close() }

// CopyTo copies the database to a file that must not exist yet, and verifies the copy.
func (s *Sole) CopyTo(ctx context.Context, path string) (err error) {
	if err := sqlite.backup(ctx, s.db, path); err != nil {
		return sqlite.explain(err)
	}
	made, err := sql.Open(sqlite.driver, sqlite.writeDSN(path, busyTimeout))
	if err != nil {
		return err
	}
	made.SetMaxOpenConns(1)
	err = sqlite.check(ctx, made)
	if err == nil {
		err = equal(ctx, s.db, made)
	}
	if err == nil {
		err = sqlite.setUp(ctx, made) // a copy is not in WAL mode
	}
	if err = errors.Join(err, made.Close()); err != nil {
		return fmt.Errorf("the copy %s of %s: %w", path, s.path, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// equal checks that two databases have the same tables with the same numbers of rows.
func equal(ctx context.Context, a, b *sql.DB) error {
	count := func(db *sql.DB) (n map[string]int64, err error) {
		rows, err := db.QueryContext(ctx, `SELECT name FROM sqlite_schema WHERE type = 'table'`)
		if err != nil {
			return nil, err
		}
		n = map[string]int64{}
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				return nil, errors.Join(err, rows.Close()) //nolint:sqlclosecheck // before the next query
			}
			n[name] = 0
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return nil, err
		}
		for name := range n {
			var rows int64
			if err := db.QueryRowContext(ctx, `SELECT count(*) FROM `+quoted(name)).Scan(&rows); err != nil {
				return nil, err
			}
			n[name] = rows
		}
		return n, nil
	}
	was, err := count(a)
	if err != nil {
		return err
	}
	is, err := count(b)
	if err == nil && !maps.Equal(was, is) {
		err = fmt.Errorf("it has %v rows, and not %v", is, was)
	}
	return err
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// Retired reports whether the database was retired.
func (s *Sole) Retired(ctx context.Context) (bool, error) {
	_, err := migrations.Pending(ctx, s.db, sqlite.name)
	if errors.Is(err, migrations.ErrMoved) {
		return true, nil
	}
	return false, sqlite.explain(err)
}

// Retire makes every ralph refuse the database from now on.
func (s *Sole) Retire(ctx context.Context) error {
	return sqlite.explain(migrations.Retire(ctx, s.db, ralph.At(time.Now()).String()))
}

// PutMoved replaces a retired database, which nobody has open, by a marker file. Every ralph
// refuses it.
func PutMoved(ctx context.Context, path string) error {
	part := path + ".moved"
	if err := removeDatabase(part); err != nil {
		return err
	}
	db, err := sql.Open(sqlite.driver, uri(part)+"?_synchronous=FULL")
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	if err = migrations.Retire(ctx, db, ralph.At(time.Now()).String()); err == nil {
		_, err = db.ExecContext(ctx, fmt.Sprintf(`PRAGMA application_id = %d`, movedID))
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return errors.Join(err, removeDatabase(part))
	}
	if err := os.Rename(part, path); err != nil {
		return err
	}
	var errs []error
	for _, end := range []string{"-wal", "-shm", ".turn", ".migrate", ".mark"} {
		if err := os.Remove(path + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
