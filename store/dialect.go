package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"time"

	sqlite3 "github.com/mattn/go-sqlite3"
)

// A dialect is everything that two databases do not share, migrations apart.
// Before you add a field, try to write the query so that both take it.
type dialect struct {
	name     string // also the folder of its migrations
	driver   string
	writeDSN func(path string) string
	readDSN  func(path string) string
	setUp    func(ctx context.Context, db *sql.DB) error // once, before the first migration
	backup   func(ctx context.Context, db *sql.DB, path string) error
	check    func(ctx context.Context, db *sql.DB) error
	free     func(ctx context.Context, conn *sql.Conn, patience time.Duration) error
	dangling string            // finds references that point nowhere; "" where there are none
	version  string            // changes with each commit of another connection
	explain  func(error) error // says in words what a driver's error means
}

// busyTimeout is how long a transaction waits for another process's, in
// milliseconds. Transactions last milliseconds; only a stopped disk gets there.
const busyTimeout = "30000"

// shared is what all connections are opened with.
const shared = "&_foreign_keys=1&_stmt_cache_size=64&_busy_timeout=" + busyTimeout

func uri(path string) string { return "file:" + (&url.URL{Path: path}).EscapedPath() }

var sqlite = dialect{
	name:   "sqlite",
	driver: "sqlite3",
	// IMMEDIATE: a transaction that reads and then writes never has to give up half
	// way. FULL: what was acknowledged survives a power cut; the driver's default does not.
	writeDSN: func(path string) string {
		return uri(path) + "?_txlock=immediate&_synchronous=FULL" + shared
	},
	readDSN: func(path string) string {
		return uri(path) + "?mode=ro&_query_only=1" + shared
	},
	setUp: func(ctx context.Context, db *sql.DB) error {
		var mode string
		if err := db.QueryRowContext(ctx, `PRAGMA journal_mode = WAL`).Scan(&mode); err != nil {
			return err
		}
		if mode != "wal" {
			return fmt.Errorf("the write-ahead log could not be switched on (mode %s): is it on a network file system?", mode)
		}
		return nil
	},
	backup: func(ctx context.Context, db *sql.DB, path string) error {
		_, err := db.ExecContext(ctx, `VACUUM INTO $1`, path)
		return err
	},
	check:    checkSQLite,
	free:     freeSQLite,
	dangling: `SELECT "table" || ' ' || coalesce(rowid, 0) || ' → ' || parent FROM pragma_foreign_key_check`,
	version:  `PRAGMA data_version`,
	explain:  explainSQLite,
}

// freeSQLite has a connection wait for the write lock for so long.
func freeSQLite(ctx context.Context, conn *sql.Conn, patience time.Duration) (err error) {
	if _, err := conn.ExecContext(ctx, fmt.Sprintf(`PRAGMA busy_timeout = %d`, patience.Milliseconds())); err != nil {
		return err
	}
	defer func() {
		_, reset := conn.ExecContext(context.WithoutCancel(ctx), `PRAGMA busy_timeout = `+busyTimeout)
		err = errors.Join(err, reset)
	}()
	if _, err := conn.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	_, err = conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
	return err
}

func checkSQLite(ctx context.Context, db *sql.DB) error {
	var result string
	if err := db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&result); err != nil {
		return explainSQLite(err)
	}
	if result != "ok" {
		return fmt.Errorf("integrity check: %s", result)
	}
	var synchronous, foreignKeys int
	if err := db.QueryRowContext(ctx, `PRAGMA synchronous`).Scan(&synchronous); err != nil {
		return err
	}
	if err := db.QueryRowContext(ctx, `PRAGMA foreign_keys`).Scan(&foreignKeys); err != nil {
		return err
	}
	if synchronous != 2 || foreignKeys != 1 {
		return fmt.Errorf("synchronous is %d and foreign_keys %d instead of 2 and 1", synchronous, foreignKeys)
	}
	return nil
}

// explainSQLite adds what to do to the errors that people meet.
func explainSQLite(err error) error {
	var e sqlite3.Error
	if !errors.As(err, &e) {
		return err
	}
	advice := map[sqlite3.ErrNo]string{
		sqlite3.ErrFull:     "the disk is full; free some space, nothing that was stored is lost",
		sqlite3.ErrReadonly: "the database cannot be written; check the permissions of the file and its folder",
		sqlite3.ErrCantOpen: "the database cannot be opened; check that its folder exists and can be written",
		sqlite3.ErrCorrupt:  "the database is damaged; restore a copy from the folder backups beside it",
		sqlite3.ErrNotADB:   "the file is not a database; move it away or restore a copy from the folder backups beside it",
		sqlite3.ErrIoErr:    "the disk reported an error; check that it is not full or failing",
		sqlite3.ErrBusy:     "another process kept the database for too long; see who uses it and try again",
	}[e.Code]
	if advice == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, advice)
}
