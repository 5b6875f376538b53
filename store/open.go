package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"

	"ralph"
	"ralph/internal/machine"
	"ralph/migrations"

	"github.com/gofrs/flock"
)

// openPostgres is [Open] for a URL.
func openPostgres(ctx context.Context, name string, opts Options) (*DB, error) {
	config, err := readURL(name)
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", Masked(name), err)
	}
	patience := cmp.Or(opts.Patience, busyTimeout)
	maps.Copy(config.RuntimeParams, map[string]string{
		"lock_timeout": ms(patience), "statement_timeout": ms(busyTimeout), "idle_in_transaction_session_timeout": ms(pgIdle),
		"application_name": "ralph on " + machine.Name(),
	})
	// One connection writes. If several waited for the lock on a machine that is frozen, each would get it in turn, and
	// hold up all other machines for as long.
	write, read := openPool(config, 1), openPool(config, pgConns)
	db := &DB{
		path: Masked(name), url: name, dialect: postgres, now: opts.Now, clock: opts.Now == nil, told: opts.Statement,
		write: write, read: read,
	}
	if db.clock {
		db.now = db.Now
	}
	db.dialect.backup = func(ctx context.Context, _ *sql.DB, path string) error { return dumpPostgres(ctx, name, path) }
	db.watch.poke = make(chan struct{}, 1)
	db.watch.ctx, db.watch.close = context.WithCancel(context.Background())
	db.watch.server = config
	if err := db.preparePostgres(ctx, opts.MustExist); err != nil {
		return nil, errors.Join(fmt.Errorf("database %s: %w", db.path, explainPostgres(err)), db.Close())
	}
	return db, nil
}

// preparePostgres migrates the database, one process at a time.
func (db *DB) preparePostgres(ctx context.Context, mustExist bool) error {
	pending, err := migrations.Pending(ctx, db.write, db.dialect.name)
	if err == nil && len(pending) > 0 && mustExist {
		err = fmt.Errorf("it lacks %d migrations: run any ralph command in the project once", len(pending))
	}
	if err == nil {
		var ms int64
		err = db.write.QueryRowContext(ctx, `SELECT current_schema(), `+pgClock).Scan(&db.watch.schema, &ms)
		db.toldTime(time.UnixMilli(ms)) // readers use it, too
	}
	if err != nil || len(pending) == 0 {
		return err
	}
	conn, err := db.read.Conn(ctx)
	if err != nil {
		return err
	}
	const lock = `hashtextextended('ralph migrates ' || current_schema(), 0)`
	if _, err = conn.ExecContext(ctx, `SELECT pg_advisory_lock(`+lock+`)`); err == nil {
		_, err = migrations.Up(ctx, db.write, db.dialect.name, ralph.At(db.now()).String())
		_, uerr := conn.ExecContext(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock(`+lock+`)`)
		err = errors.Join(err, uerr)
	}
	return errors.Join(err, conn.Close())
}

// Options are the options of [Open]; the zero value is right for everything but tests.
type Options struct {
	// Now is the clock; nil is that of the database's machine.
	Now func() time.Time
	// MustExist refuses to create or migrate the database: for processes that use a database that
	// another one looks after.
	MustExist bool
	// Statement is called with every statement before it runs, with BEGIN before the first of a transaction, and with
	// the COMMIT of one that has written; nil means nobody. Tests count and explain them.
	Statement func(query string)
	// Judge decides whether the database may be opened, before anything is changed; nil allows all.
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
	existing := "&mode=rw" // a file that is removed after the check is not created again
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
	if immutable(path) {
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

// open examines the database, migrates it, and begins to count its transactions in the mark.
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

// Close closes the database. Committed data is durable already. The last process that has it open
// merges the write-ahead log, so that the file alone is the database while nothing runs.
func (db *DB) Close() error {
	err := db.watch.end()
	err = errors.Join(err, db.read.Close())
	last := db.bearing != nil && db.bearing.isLast()
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

// Merge merges the write-ahead log into the database, as far as concurrent readers allow. A server does so
// by itself.
func (db *DB) Merge(ctx context.Context) error {
	if db.url != "" {
		return nil
	}
	_, err := db.write.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
	return db.dialect.explain(err)
}

// OpenEmpty opens an empty temporary database, for reading where there is no other. Close removes it. If refuse is not
// nil, every transaction that may write fails with it instead of committing.
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
		err = whole(ctx, part) // a copy of a damaged database is not a backup; its values are read when it is needed
	}
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		return errors.Join(err, removeDatabase(part))
	}
	return syncFolder(filepath.Dir(path))
}

// whole returns an error unless a copy has all of its pages, as they were written.
func whole(ctx context.Context, path string) error {
	pool, err := openCopy(path)
	if err != nil {
		return err
	}
	return errors.Join(sqlite.check(ctx, pool), pool.Close())
}

func openCopy(path string) (*sql.DB, error) {
	return sql.Open(sqlite.driver, sqlite.readDSN(path, busyTimeout)+sqlite.fixed)
}

// databaseFiles are the ends of the names of a database's files.
var databaseFiles = []string{"", "-wal", "-shm", ".mark"}

func removeDatabase(path string) error {
	var errs []error
	for _, end := range append([]string{".migrate", ".turn"}, databaseFiles...) {
		if err := os.Remove(path + end); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
