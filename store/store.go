// Package store keeps ralph's data in a database, and is the only place
// with SQL.
//
// Every change is one transaction: it either happened, durably, with its events,
// or it did not. Several processes use one database at once; none of them sees
// "database is locked". The store applies decisions and never makes any: the
// rules are in package signals and in ralph.Moves, which it holds callers to.
package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"
	"github.com/jackc/pgx/v5"

	"ralph"
	"ralph/internal/lazy"
)

// A DB is an open database. It may be used by several goroutines at once.
type DB struct {
	// Hindered, if not nil, is called with the error when changes begin to fail because the disk is full, or when one
	// has waited for [stall], and with nil once they are stored again. It is set before work begins.
	Hindered func(error)
	// NoRoom, if not nil, returns a line if the queue's disk is full, else "". The inbox asks it, since a full disk
	// stores no trouble. It is set before work begins.
	NoRoom func() string

	path    string  // or its URL, masked
	url     string  // "" for a file
	clock   bool    // the server's clock is used
	write   *sql.DB // one connection; its transactions take the write lock when they begin
	read    *sql.DB // read-only connections
	dialect dialect
	now     func() time.Time
	turns   *turns // of the processes' writers
	told    func(query string)
	empty   string      // the temporary folder of [OpenEmpty], removed by Close
	refuse  error       // the error of transactions that would commit writes
	file    os.FileInfo // the database file's identity when it was opened
	beside  []beside    // the identities of the files beside it
	bearing *bearing    // its mark
	changes int64       // rows that the writing connection had changed when it committed last
	watch   watcher
	full    atomic.Pointer[error] // why changes cannot be stored now; nil if they can
	ahead   atomic.Int64          // how far the clock of the server was ahead of ours, in nanoseconds
}

// Now returns the time for all users of the database: the server's, if there is one, instead of the machine's.
func (db *DB) Now() time.Time {
	if !db.clock {
		return time.Now()
	}
	return time.Now().Round(0).Add(time.Duration(db.ahead.Load()))
}

// toldTime records the server's time.
func (db *DB) toldTime(now time.Time) { db.ahead.Store(int64(now.Sub(time.Now().Round(0)))) }

// Path returns the database's file, or its URL without secrets.
func (db *DB) Path() string { return db.path }

// A Tx is one transaction; all that it writes has the same time. It holds its context because it
// lives for one call of [DB.Tx] or [DB.View].
type Tx struct {
	*sql.Tx
	ctx   context.Context
	told  func(query string)
	db    *DB
	now   ralph.Time
	id    string // the server's id of the transaction; "" in a file
	asked bool   // a statement was reported to [Options.Statement]
	wrote bool
}

// Now returns the time of the transaction.
func (tx *Tx) Now() ralph.Time { return tx.now }

// tell reports a statement to [Options.Statement].
func (tx *Tx) tell(query string) {
	if !strings.HasPrefix(strings.TrimSpace(query), "SELECT") {
		tx.wrote = true
	}
	if tx.told == nil {
		return
	}
	if !tx.asked {
		tx.asked = true
		tx.told("BEGIN")
	}
	tx.told(query)
}

// ExecContext is [sql.Tx.ExecContext].
func (tx *Tx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	tx.tell(query)
	return tx.Tx.ExecContext(ctx, query, tx.bound(args)...)
}

// QueryContext is [sql.Tx.QueryContext].
func (tx *Tx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	tx.tell(query)
	return tx.Tx.QueryContext(ctx, query, tx.bound(args)...)
}

// QueryRowContext is [sql.Tx.QueryRowContext].
func (tx *Tx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	tx.tell(query)
	return tx.Tx.QueryRowContext(ctx, query, tx.bound(args)...)
}

// do runs a statement.
func (tx *Tx) do(query string, args ...any) error {
	_, err := tx.ExecContext(tx.ctx, query, args...)
	return err
}

// exec runs a statement and returns the number of rows that it changed.
func (tx *Tx) exec(query string, args ...any) (int64, error) {
	res, err := tx.ExecContext(tx.ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// row runs a query that returns at most one row. If there is none, Scan returns an error that wraps [sql.ErrNoRows] in
// words for people, since not every caller expects it.
func (tx *Tx) row(query string, args ...any) scanner {
	return oneRow{tx.QueryRowContext(tx.ctx, query, args...), query}
}

// A oneRow is the row of a query that returns at most one.
type oneRow struct {
	row   *sql.Row
	query string
}

// Scan implements scanner.
func (r oneRow) Scan(dest ...any) error {
	err := r.row.Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return noRow(r.query)
	}
	return err
}

// A noRow is a query that found no row.
type noRow string

// fromTable matches the table that a query reads.
var fromTable = lazy.Regexp(`(?i)\b(?:FROM|INTO|UPDATE)\s+(\w+)`)

func (q noRow) Error() string {
	table := "the database"
	if m := fromTable().FindStringSubmatch(string(q)); m != nil {
		table += "'s table " + m[1]
	}
	return table + " lacks an entry that belongs there, or has lost it meanwhile"
}

func (noRow) Unwrap() error { return sql.ErrNoRows }

// A scanner is a row that can be read: *sql.Row or *sql.Rows.
type scanner interface{ Scan(dest ...any) error }

// A watcher notices commits, once for the whole process.
type watcher struct {
	ctx   context.Context // ends with [DB.Close]
	close context.CancelFunc
	poke  chan struct{} // signals a commit of this process

	mu    sync.Mutex
	conn  *sql.Conn // outside of any transaction: it sees the commits of all other connections
	seen  int64     // the data version seen last
	next  chan struct{}
	looks sync.WaitGroup
	listener
}

// A dialect has the differences between the two databases, apart from migrations. Before you add a field, try to write
// the query so that both accept it.
type dialect struct {
	name   string // also the folder of its migrations
	driver string
	shared bool           // several machines may use it
	view   *sql.TxOptions // for transactions that only read
	retry  time.Duration  // how long to retry an unreachable server
	// begin begins a transaction that writes; nil if nothing is needed.
	begin    func(*Tx) error
	writeDSN func(path string, patience time.Duration) string
	readDSN  func(path string, patience time.Duration) string
	fixed    string                                      // suffix of the DSN for a read-only database
	setUp    func(ctx context.Context, db *sql.DB) error // once, before the first migration
	backup   func(ctx context.Context, db *sql.DB, path string) error
	check    func(ctx context.Context, db *sql.DB) error // that all of it is readable and consistent
	durable  func(ctx context.Context, db *sql.DB) error // that commits survive a power cut
	dangling string                                      // finds references that point nowhere; "" where there are none
	changes  string                                      // counts the rows that this connection has changed
	version  string                                      // changes with each commit of another connection
	explain  func(error) error                           // adds advice to a driver's error
	patient  string                                      // lets a server's transaction idle for long

	// Queries for a copy of the database: its tables in the order of their creation, the stored columns of one, those
	// of its primary key, and the last ids. setID makes last + 1 the next id; 0 means no row.
	tables, columns, keys, ids string
	setID                      func(tx *Tx, table string, last int64) error
}

// beside is a file that belongs to the open database: the write-ahead log or its index. Without them, other processes
// do not see the writes of this one.
type beside struct {
	path string
	info os.FileInfo
}

// Shared reports whether other machines may use the database. If not, the operating system knows which processes live.
func (db *DB) Shared() bool { return db.dialect.shared }

// A bearing keeps the mark of an open database, and knows whether other processes have it open.
type bearing struct {
	path string
	lock *flock.Flock // shared by all that have the database open
	file *os.File     // nil where it cannot be written
	name string
}

// A listener is the part of PostgreSQL that a watcher needs.
type listener struct {
	server *pgx.ConnConfig // nil for a file
	schema string
	heard  atomic.Int64
	begun  bool
}

// clean removes characters that a database may refuse: NUL, also in JSON, and invalid UTF-8.
func clean(s string) string {
	if strings.Contains(s, `\u0000`) && json.Valid([]byte(s)) {
		var b strings.Builder
		for i := 0; i < len(s); i++ {
			switch {
			case s[i] == '\\' && strings.HasPrefix(s[i:], `\u0000`):
				i += len(`\u0000`) - 1
			case s[i] == '\\' && i+1 < len(s): // an escaped backslash begins no escape
				b.WriteString(s[i : i+2])
				i++
			default:
				b.WriteByte(s[i])
			}
		}
		s = b.String()
	}
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD")
}

// bound converts arguments to values that both databases accept: times become text, booleans 0 or 1. A server gets
// integers as text, which it reads as the type that it expects there.
func (tx *Tx) bound(args []any) []any {
	args = slices.Clone(args)
	for i, a := range args {
		switch a := a.(type) {
		case ralph.Time:
			args[i] = a.String()
		case string:
			args[i] = clean(a)
		case bool:
			args[i] = 0
			if a {
				args[i] = 1
			}
		}
		if !tx.db.dialect.shared {
			continue
		}
		if v, err := driver.DefaultParameterConverter.ConvertValue(args[i]); err == nil {
			args[i] = v
			if n, ok := v.(int64); ok {
				args[i] = strconv.FormatInt(n, 10)
			}
		}
	}
	return args
}
