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

// busyTimeout is how long a transaction waits for those of other processes. Transactions last
// milliseconds; only a stalled disk reaches this.
const busyTimeout = 30 * time.Second

// parameters returns the parameters common to all connections.
func parameters(patience time.Duration) string {
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
		return uri(path) + "?_txlock=immediate&_synchronous=FULL" + parameters(patience)
	},
	readDSN: func(path string, patience time.Duration) string {
		return uri(path) + "?mode=ro&_query_only=1" + parameters(patience)
	},
	fixed: "&immutable=1", // SQLite cannot create the log and its index there, and needs them otherwise
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
		sqlite3.ErrBusy:     "another process kept the database for too long; find it and try again",
	}[e.Code]
	if advice == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, advice)
}
