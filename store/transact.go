package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"ralph"
)

// Read runs f in a read-only transaction ([DB.View]) and returns its result.
func Read[T any](ctx context.Context, db *DB, f func(tx *Tx) (T, error)) (value T, err error) {
	err = db.View(ctx, func(tx *Tx) (err error) {
		value, err = f(tx)
		return err
	})
	return value, err
}

// Commits returns how many transactions have changed anything in a file.
func (tx *Tx) Commits() (int64, error) { return value[int64](tx, `SELECT commits FROM progress`) }

// Touch writes a row, to find out whether the database is writable.
func (tx *Tx) Touch() error {
	err := tx.do(`UPDATE progress SET commits = commits`)
	return err
}

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
	if NoRoom(err) && db.full.Swap(&err) == nil {
		db.tell(err)
		for until := time.Now().Add(roomTime); NoRoom(err) && time.Now().Before(until) && ctx.Err() == nil; {
			time.Sleep(roomLook)
			err = db.run(ctx, db.write, nil, f)
		}
	}
	if err == nil && db.full.Load() != nil && db.full.Swap(nil) != nil {
		db.tell(nil)
	}
	return err
}

// If the disk is full, a change waits up to roomTime, once, and tries every roomLook: ralph meanwhile ends whatever
// filled it.
const (
	roomTime = 3 * time.Second
	roomLook = 100 * time.Millisecond
)

// stall is how long a change waits before [DB.Hindered] is called.
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

// run runs f in a transaction. If the server was lost before a commit, it retries for the dialect's time.
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
		if pgCode(err) == pgReadOnly { // the connection may stay read-only
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
		// A commit to a file that was removed or replaced does not count.
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
		// The transaction is committed, even if the mark fails: a mark that lags only notices less.
		_ = db.bearing.put(Mark{Database: db.bearing.name, Commits: commits})
	}
	return db.dialect.explain(err)
}
