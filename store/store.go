// Package store keeps ralph's data in a database, and is the only place
// with SQL.
//
// Every change is one transaction: it either happened, durably, with its events,
// or it did not. Several processes use one database at once; none of them sees
// "database is locked". The store applies decisions and never makes any: the
// rules are in package signals and in ralph.Moves, which it holds callers to.
package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"

	"ralph"
	"ralph/migrations"
)

// A DB is an open database. It may be used by several goroutines at once.
type DB struct {
	// Hindered is called when changes begin to fail because the disk is full, or when one has waited for
	// [stall], and with nil once they are stored again; nil tells nobody. It is set before work begins.
	Hindered func(error)

	path    string  // or its URL, masked
	url     string  // "" for a file
	clock   bool    // that of the server is used
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

// Options of Open; the zero value is right for everything but tests.
type Options struct {
	// Now is the clock; nil is that of the database's machine.
	Now func() time.Time
	// MustExist refuses to create or migrate the database: for processes that use a database that
	// another one looks after.
	MustExist bool
	// Statement is called with every statement before it runs, with BEGIN before the first of a transaction, and with
	// the COMMIT of one that has written; nil means nobody. Tests count and explain them.
	Statement func(query string)
	// Judge is asked whether what was found may be opened, before anything is changed; nil allows all.
	Judge func(Found) error
	// Patience is how long a transaction waits for those of other processes; 0 is 30 seconds.
	Patience time.Duration
}

// Open opens the database file, or that of a postgres:// URL, creating and migrating it if need be. Before a migration
// it leaves a copy in the folder "backups" beside a file. A database of a newer ralph is refused with
// [migrations.ErrTooNew].
func Open(ctx context.Context, path string, opts Options) (*DB, error) {
	if IsURL(path) {
		return openPostgres(ctx, path, opts)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	existing := "&mode=rw" // one that is removed after the look at it is not made anew
	if _, err := os.Stat(path); err != nil {
		existing = ""
		if opts.MustExist || !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("database %s: %w", path, err)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, fmt.Errorf("database %s: %w", path, err)
		}
	}
	db := &DB{path: path, dialect: sqlite, now: opts.Now, turns: newTurns(path + ".turn"), told: opts.Statement}
	db.watch.poke = make(chan struct{}, 1)
	db.watch.ctx, db.watch.close = context.WithCancel(context.Background())
	var err error
	patience, more := cmp.Or(opts.Patience, busyTimeout), ""
	if fixed(path) {
		more = db.dialect.fixed
	}
	if db.write, err = sql.Open(db.dialect.driver, db.dialect.writeDSN(path, patience)+existing+more); err != nil {
		return nil, fmt.Errorf("database %s: %w", path, err)
	}
	db.write.SetMaxOpenConns(1)
	if db.read, err = sql.Open(db.dialect.driver, db.dialect.readDSN(path, patience)+more); err != nil {
		return nil, errors.Join(fmt.Errorf("database %s: %w", path, err), db.write.Close())
	}
	if err = db.open(ctx, opts); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// open looks at the database, brings it to the current schema, and begins to mark how far it gets.
func (db *DB) open(ctx context.Context, opts Options) (err error) {
	wrap := func(err error) error {
		if err == nil {
			return nil
		}
		return fmt.Errorf("database %s: %w", db.path, err)
	}
	var alone bool
	if db.bearing, alone, err = enter(ctx, db.path, false); err != nil {
		return wrap(err)
	}
	if opts.Judge != nil {
		found, err := db.inspect(ctx, alone)
		if err == nil {
			err = opts.Judge(found)
		}
		if err != nil {
			return err
		}
	}
	if err := db.prepare(ctx, opts.MustExist); err != nil {
		return wrap(err)
	}
	if db.bearing.lock == nil && !opts.MustExist {
		if db.bearing, _, err = enter(ctx, db.path, true); err != nil {
			return wrap(err)
		}
	}
	if err := db.bear(ctx, opts.MustExist); err != nil {
		return wrap(db.dialect.explain(err))
	}
	db.bearing.share()
	return wrap(db.recognize())
}

// Now is the time by which all go who use the database: a server's, whatever the clock of this machine says.
func (db *DB) Now() time.Time {
	if !db.clock {
		return time.Now()
	}
	return time.Now().Round(0).Add(time.Duration(db.ahead.Load()))
}

// toldTime notes what a server says that the time is.
func (db *DB) toldTime(now time.Time) { db.ahead.Store(int64(now.Sub(time.Now().Round(0)))) }

// Path is the database's file, or its URL without secrets.
func (db *DB) Path() string { return db.path }

// Close closes the database. Committed data is durable already. The last process that has it open
// merges the write-ahead log, so that the file alone is the database while nothing runs.
func (db *DB) Close() error {
	err := db.watch.end()
	err = errors.Join(err, db.read.Close())
	last := db.bearing != nil && db.bearing.last()
	err = errors.Join(err, db.write.Close()) // SQLite merges the log with the last connection, if that may write
	if last {
		err = errors.Join(err, db.stamp())
	}
	if db.bearing != nil {
		err = errors.Join(err, db.bearing.leave())
	}
	if db.empty != "" {
		err = errors.Join(err, os.RemoveAll(db.empty))
	}
	return err
}

// Merge merges the write-ahead log into the database, as far as those who read at this moment allow. A server does so
// by itself.
func (db *DB) Merge(ctx context.Context) error {
	if db.url != "" {
		return nil
	}
	_, err := db.write.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
	return db.dialect.explain(err)
}

// OpenEmpty opens an empty temporary database, for callers that read where there is none. Close
// removes it. If refuse is not nil, every transaction that may write fails with it instead of
// committing.
func OpenEmpty(ctx context.Context, refuse error) (*DB, error) {
	dir, err := os.MkdirTemp("", "ralph-empty-*")
	if err != nil {
		return nil, err
	}
	db, err := Open(ctx, filepath.Join(dir, "ralph.db"), Options{})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	db.empty, db.refuse = dir, refuse
	return db, nil
}

// prepare brings the database to the current schema.
func (db *DB) prepare(ctx context.Context, mustExist bool) error {
	pending, err := migrations.Pending(ctx, db.write, db.dialect.name)
	if err != nil {
		return db.dialect.explain(err)
	}
	old, err := db.isLegacy(ctx)
	if err != nil || len(pending) == 0 && !old {
		return db.dialect.explain(err)
	}
	if mustExist {
		return fmt.Errorf("it lacks %d migrations: run any ralph command in the project once", len(pending))
	}
	// SQLite's own waiting does not cover the change to WAL, and two processes must not migrate at
	// once: so it takes a file lock, which dies with its holder.
	lock := flock.New(db.path + ".migrate")
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("lock for the migration: %w", err)
	}
	err = db.migrate(ctx)
	return errors.Join(db.dialect.explain(err), lock.Unlock())
}

// migrate runs under the lock; another process may have migrated meanwhile.
func (db *DB) migrate(ctx context.Context) error {
	pending, err := migrations.Pending(ctx, db.write, db.dialect.name)
	if err != nil {
		return err
	}
	old, err := db.isLegacy(ctx)
	if err != nil || len(pending) == 0 && !old {
		return err
	}
	if err := db.backupBeforeMigration(ctx); err != nil {
		return fmt.Errorf("backup before the migration: %w", err)
	}
	if err := db.dialect.setUp(ctx, db.write); err != nil {
		return err
	}
	if old {
		if err := db.makeRoom(ctx); err != nil {
			return fmt.Errorf("make room for an older database: %w", err)
		}
	}
	if _, err := migrations.Up(ctx, db.write, db.dialect.name, ralph.At(db.now()).String()); err != nil || !old {
		return err
	}
	return db.takeOver(ctx)
}

// backupBeforeMigration copies the database unless it is empty.
func (db *DB) backupBeforeMigration(ctx context.Context) error {
	info, err := os.Stat(db.path)
	if err != nil || info.Size() == 0 {
		return err
	}
	dir := filepath.Join(filepath.Dir(db.path), "backups")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	name := fmt.Sprintf("before-migration-%s.db", db.now().UTC().Format("20060102T150405.000000000"))
	return db.Backup(ctx, filepath.Join(dir, name))
}

// Backup writes a consistent copy of the live database to a file that must not exist yet. A copy that
// was not completed never has that name.
func (db *DB) Backup(ctx context.Context, path string) (err error) {
	if exists(path) {
		return fmt.Errorf("%s exists already", path)
	}
	part := path + ".part"
	if err := removeDatabase(part); err != nil {
		return err
	}
	if err := db.dialect.backup(ctx, db.write, part); err != nil {
		return errors.Join(db.dialect.explain(err), removeDatabase(part))
	}
	f, err := os.OpenFile(part, os.O_RDWR, 0)
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	if err == nil && !db.Shared() { // else PostgreSQL's own program has read all of it
		err = whole(ctx, part) // what is copied of a damaged database is no copy; its values are read when it is needed
	}
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		return errors.Join(err, removeDatabase(part))
	}
	return syncFolder(filepath.Dir(path))
}

// Commits returns how many transactions have changed anything in a file.
func (tx *Tx) Commits() (int64, error) { return value[int64](tx, `SELECT commits FROM progress`) }

// Touch writes a row, to find out whether that is possible.
func (tx *Tx) Touch() error {
	err := tx.do(`UPDATE progress SET commits = commits`)
	return err
}

// Check verifies the database's integrity and its durability settings. It returns the first
// problem.
func (db *DB) Check(ctx context.Context) error {
	if err := db.dialect.check(ctx, db.write); err != nil {
		return err
	}
	if err := db.View(ctx, readable); err != nil {
		return err
	}
	return db.dialect.durable(ctx, db.write)
}

// A Tx is one transaction; all that it writes has the same time. It holds its context because it
// lives for one call of [DB.Tx] or [DB.View].
type Tx struct {
	*sql.Tx
	ctx   context.Context
	told  func(query string)
	db    *DB
	now   ralph.Time
	id    string // by which a server knows it after its end; "" in a file
	asked bool   // a statement was told
	wrote bool
}

// Now is the time of the transaction.
func (tx *Tx) Now() ralph.Time { return tx.now }

// Tx runs f in a transaction that may write, and commits it durably if f returns nil. f must not
// wait for anything but the database.
func (db *DB) Tx(ctx context.Context, f func(tx *Tx) error) error {
	waits := time.AfterFunc(stall, func() {
		db.tell(fmt.Errorf("a change has waited for %s to be stored: the disk, or another process, holds it up", stall))
	})
	defer waits.Stop()
	if db.turns != nil {
		leave, err := db.turns.take(ctx)
		defer leave()
		if err != nil {
			return err
		}
	}
	err := db.run(ctx, db.write, nil, f)
	if NoRoom(err) {
		if db.full.Swap(&err) == nil {
			db.tell(err)
		}
	} else if err == nil && db.full.Load() != nil && db.full.Swap(nil) != nil {
		db.tell(nil)
	}
	return err
}

// stall is the time after which a change that waits is said to.
const stall = 10 * time.Second

func (db *DB) tell(err error) {
	if db.Hindered != nil {
		db.Hindered(err)
	}
}

// Full returns why the last change could not be stored for want of room; nil if it was stored.
func (db *DB) Full() error {
	if why := db.full.Load(); why != nil {
		return *why
	}
	return nil
}

// View runs f in a read-only transaction, which sees one state of the database.
func (db *DB) View(ctx context.Context, f func(tx *Tx) error) error {
	return db.run(ctx, db.read, db.dialect.view, f)
}

// run runs f in a transaction, and again for some time if its server was lost before anything was committed.
func (db *DB) run(ctx context.Context, pool *sql.DB, opts *sql.TxOptions, f func(tx *Tx) error) error {
	for failed := (time.Time{}); ; {
		commits := false
		err := db.once(ctx, pool, opts, f, &commits)
		if err == nil || commits || !db.dialect.shared || !again(err) ||
			!failed.IsZero() && time.Since(failed) > db.dialect.retry {
			return err
		}
		if failed.IsZero() { // not when it began: that may have been before this machine was asleep
			failed = time.Now()
		}
		if pgCode(err) == pgReadOnly { // which a connection may be to its end
			pool.SetMaxIdleConns(0)
			pool.SetMaxIdleConns(pgConns)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (db *DB) once(
	ctx context.Context, pool *sql.DB, opts *sql.TxOptions, f func(tx *Tx) error, reached *bool,
) (err error) {
	if err := db.Intact(); err != nil {
		return err
	}
	defer func() {
		// A commit to a file that nobody will find again does not count.
		if err != nil || opts == nil {
			if gone := db.Intact(); gone != nil {
				err = gone
			}
		}
	}()
	inner, err := pool.BeginTx(ctx, opts)
	if err != nil {
		return db.dialect.explain(err)
	}
	tx := &Tx{Tx: inner, ctx: ctx, told: db.told, db: db, now: ralph.At(db.now())}
	defer func() {
		if rollback := inner.Rollback(); rollback != nil && !errors.Is(rollback, sql.ErrTxDone) {
			err = errors.Join(err, rollback)
		}
	}()
	if opts == nil && db.dialect.begin != nil {
		err = db.dialect.begin(tx)
	}
	if err == nil {
		err = f(tx)
	}
	if err != nil {
		return db.dialect.explain(err)
	}
	if opts == nil && db.refuse != nil {
		return db.refuse
	}
	var commits int64
	if opts == nil {
		if commits, err = db.count(ctx, inner); err != nil {
			return db.dialect.explain(err)
		}
	}
	if tx.wrote && tx.told != nil {
		tx.told("COMMIT")
	}
	*reached = opts == nil
	if err = inner.Commit(); err != nil && tx.id != "" && (cutOff(err) || ctx.Err() != nil) {
		*reached, err = db.readBack(ctx, tx.id, err)
	}
	if opts == nil {
		db.watch.committed()
	}
	if err == nil && commits > 0 {
		// It is committed, whatever becomes of the mark: one that lags only notices less.
		_ = db.bearing.put(Mark{Database: db.bearing.name, Commits: commits})
	}
	return db.dialect.explain(err)
}

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

// row runs a query that returns at most one row. Where there is none, scanning it gives an error
// that wraps [sql.ErrNoRows], in words for people: not every caller expects it.
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
var fromTable = regexp.MustCompile(`(?i)\b(?:FROM|INTO|UPDATE)\s+(\w+)`)

func (q noRow) Error() string {
	table := "the database"
	if m := fromTable.FindStringSubmatch(string(q)); m != nil {
		table += "'s table " + m[1]
	}
	return table + " lacks an entry that belongs there, or has lost it meanwhile"
}

func (noRow) Unwrap() error { return sql.ErrNoRows }

// A scanner is a row that can be read: *sql.Row or *sql.Rows.
type scanner interface{ Scan(dest ...any) error }
