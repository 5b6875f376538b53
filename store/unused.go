package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	sqlite3 "github.com/mattn/go-sqlite3"
)

// ErrInUse says that another process has a database open.
var ErrInUse = errors.New("another process has the database open")

// Unused checks that nobody has a database open, so that its folder may be moved; the error wraps [ErrInUse]
// if another process has. It is neither created nor migrated.
func Unused(ctx context.Context, path string) error {
	// EXCLUSIVE before the write-ahead log is touched: every connection in WAL mode holds a shared
	// lock while it is open, and this one waits for those.
	db, err := sql.Open(sqlite.driver, uri(path)+"?mode=rw&_locking_mode=EXCLUSIVE&_synchronous=FULL&_busy_timeout=1000")
	if err != nil {
		return fmt.Errorf("database %s: %w", path, err)
	}
	db.SetMaxOpenConns(1)
	for _, statement := range []string{`BEGIN EXCLUSIVE`, `COMMIT`} {
		if _, err = db.ExecContext(ctx, statement); err != nil {
			break
		}
	}
	var e sqlite3.Error
	if errors.As(err, &e) && (e.Code == sqlite3.ErrBusy || e.Code == sqlite3.ErrLocked) {
		err = ErrInUse
	}
	if err != nil {
		err = fmt.Errorf("database %s: %w", path, sqlite.explain(err))
	}
	return errors.Join(err, db.Close())
}
