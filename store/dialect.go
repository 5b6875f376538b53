package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	sqlite3 "github.com/mattn/go-sqlite3"
)

// A dialect has everything in which two databases differ, apart from migrations. Before you add a
// field, try to write the query so that both accept it.
type dialect struct {
	name   string // also the folder of its migrations
	driver string
	shared bool           // by several machines
	view   *sql.TxOptions // of a transaction that reads
	retry  time.Duration  // with a server that cannot be reached
	// begin begins a transaction that writes; nil if nothing is needed.
	begin    func(*Tx) error
	writeDSN func(path string, patience time.Duration) string
	readDSN  func(path string, patience time.Duration) string
	fixed    string                                      // what follows the DSN of a database that nobody can change
	setUp    func(ctx context.Context, db *sql.DB) error // once, before the first migration
	backup   func(ctx context.Context, db *sql.DB, path string) error
	check    func(ctx context.Context, db *sql.DB) error // that all of it is readable and consistent
	durable  func(ctx context.Context, db *sql.DB) error // that commits survive a power cut
	dangling string                                      // finds references that point nowhere; "" where there are none
	changes  string                                      // counts the rows that this connection has changed
	version  string                                      // changes with each commit of another connection
	explain  func(error) error                           // adds advice to a driver's error
	patient  string                                      // has a server wait long for a transaction

	// What a copy of the database asks: its tables in the order of their creation, the columns of one that are stored,
	// those of its primary key, and the ids that were given last. setID has the next id be the one after last, 0 for none.
	tables, columns, keys, ids string
	setID                      func(tx *Tx, table string, last int64) error
}

// busyTimeout is how long a transaction waits for those of other processes. Transactions last
// milliseconds; only a stalled disk reaches this.
const busyTimeout = 30 * time.Second

// shared returns the parameters common to all connections.
func shared(patience time.Duration) string {
	return fmt.Sprintf("&_foreign_keys=1&_stmt_cache_size=64&_busy_timeout=%d", patience.Milliseconds())
}

func uri(path string) string { return "file:" + (&url.URL{Path: path}).EscapedPath() }

var sqlite = dialect{
	name:   "sqlite",
	driver: "sqlite3",
	view:   &sql.TxOptions{ReadOnly: true},
	// IMMEDIATE: a transaction that reads and then writes never has to give up half way. FULL:
	// committed data survives a power cut; the driver's default does not ensure that.
	writeDSN: func(path string, patience time.Duration) string {
		return uri(path) + "?_txlock=immediate&_synchronous=FULL" + shared(patience)
	},
	readDSN: func(path string, patience time.Duration) string {
		return uri(path) + "?mode=ro&_query_only=1" + shared(patience)
	},
	fixed: "&immutable=1", // SQLite cannot make the log and its index, without which it reads nothing else
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
	durable:  durableSQLite,
	dangling: `SELECT "table" || ' ' || coalesce(rowid, 0) || ' → ' || parent FROM pragma_foreign_key_check`,
	changes:  `SELECT total_changes()`,
	version:  `PRAGMA data_version`,
	explain:  explainSQLite,
	tables: `SELECT name FROM sqlite_master
		WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY rowid`,
	columns: `SELECT name FROM pragma_table_info($1) ORDER BY cid`,
	keys:    `SELECT name FROM pragma_table_info($1) WHERE pk > 0 ORDER BY pk`,
	ids:     `SELECT name, seq FROM sqlite_sequence`,
	setID: func(tx *Tx, table string, last int64) error {
		if err := tx.do(`DELETE FROM sqlite_sequence WHERE name = $1`, table); err != nil {
			return err
		}
		return tx.do(`INSERT INTO sqlite_sequence (name, seq) VALUES ($1, $2)`, table, last)
	},
}

func checkSQLite(ctx context.Context, db *sql.DB) error {
	var result string
	if err := db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&result); err != nil {
		return explainSQLite(err)
	}
	if result != "ok" {
		return fmt.Errorf("integrity check: %s", result)
	}
	return nil
}

func durableSQLite(ctx context.Context, db *sql.DB) error {
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

// Passes reports whether a database error may go away by itself: another process holds the
// database, or the disk is full. Nothing of the transaction was stored.
func Passes(err error) bool {
	var e sqlite3.Error
	return NoRoom(err) || again(err) || pgCode(err) == "55P03" || errors.As(err, &e) && slices.Contains([]sqlite3.ErrNo{
		sqlite3.ErrBusy, sqlite3.ErrLocked, sqlite3.ErrFull, sqlite3.ErrCantOpen,
	}, e.Code)
}

// Failed reports whether an error is the database's, or that there is no room for it.
func Failed(err error) bool {
	return NoRoom(err) || cutOff(err) || pgCode(err) != "" || errors.As(err, new(sqlite3.Error))
}

// Corrupt reports whether an error means that the database is damaged.
func Corrupt(err error) bool {
	var e sqlite3.Error
	return misread(err) || errors.As(err, &e) && (e.Code == sqlite3.ErrCorrupt || e.Code == sqlite3.ErrNotADB)
}

// misread reports whether an error is of a value that ralph cannot have written. Package database/sql has no type
// for it.
func misread(err error) bool {
	return err != nil && strings.Contains(err.Error(), "sql: Scan error on column ")
}

// NoRoom reports whether an error means that the disk is full.
func NoRoom(err error) bool {
	var e sqlite3.Error
	return pgCode(err) == "53100" ||
		errors.As(err, &e) && (e.Code == sqlite3.ErrFull || e.SystemErrno == syscall.ENOSPC) ||
		errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// explainSQLite adds advice to the errors that people meet.
func explainSQLite(err error) error {
	var e sqlite3.Error
	if misread(err) {
		return fmt.Errorf("a value in the database is not as ralph wrote it: %w", err)
	}
	if !errors.As(err, &e) {
		return err
	}
	const restore = "; `ralph db restore FILE` brings back a copy, where there is one in the folder backups beside it"
	if NoRoom(err) {
		e.Code = sqlite3.ErrFull
	}
	advice := map[sqlite3.ErrNo]string{
		sqlite3.ErrFull:     "the disk is full; free some space, nothing that was stored is lost",
		sqlite3.ErrReadonly: "the database cannot be written; check the permissions of the file and its folder",
		sqlite3.ErrCantOpen: "the database cannot be opened; check that its folder exists and can be written",
		sqlite3.ErrCorrupt:  "the database is damaged" + restore,
		sqlite3.ErrNotADB:   "the file is not a database" + restore,
		sqlite3.ErrIoErr:    "the disk reported an error; check that it is not full or failing",
		sqlite3.ErrBusy:     "another process kept the database for too long; see who uses it and try again",
	}[e.Code]
	if advice == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, advice)
}
