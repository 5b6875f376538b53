package store

import (
	"context"
	"database/sql"
	"sync"
	"time"
)

// lookEvery is how often it is looked whether another process has committed something.
// A look reads no table and takes some microseconds.
const lookEvery = 200 * time.Millisecond

// A watcher notices for all of a process that something was committed.
type watcher struct {
	ctx   context.Context // ends with [DB.Close]
	close context.CancelFunc
	poke  chan struct{} // this process has committed something

	mu    sync.Mutex
	conn  *sql.Conn // of no transaction: SQLite tells it of the commits of all others
	seen  int64     // the version that was seen last
	next  chan struct{}
	looks sync.WaitGroup
}

// Changed is closed at the next commit, of this process or another one, or when the
// database is not [DB.Intact] any more. Who waits for something in the database takes
// it, looks, and waits for it where there was nothing: nothing is missed then. It may be
// closed although there is nothing new. On PostgreSQL LISTEN will do what is polled for
// here, at one place for all that waits in a process.
func (db *DB) Changed() <-chan struct{} {
	w := &db.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next != nil {
		return w.next
	}
	next := make(chan struct{})
	if w.ctx.Err() != nil {
		close(next) // who looks is told that the database is closed
		return next
	}
	if w.conn == nil {
		w.seen = db.version()
	}
	w.next = next
	w.looks.Go(db.await)
	return next
}

// await looks until something has changed, and tells.
func (db *DB) await() {
	w := &db.watch
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for changed := false; !changed; {
		select {
		case <-tick.C:
		case <-w.poke:
		case <-w.ctx.Done():
		}
		w.mu.Lock()
		now := db.version()
		changed = now != w.seen || now < 0 || db.Intact() != nil || w.ctx.Err() != nil
		if w.seen = now; changed {
			close(w.next)
			w.next = nil
		}
		w.mu.Unlock()
	}
}

// version is a number that each commit of another connection changes, or less than 0 if
// it cannot be known.
func (db *DB) version() (version int64) {
	w := &db.watch
	if db.told != nil {
		db.told(db.dialect.version)
	}
	var err error
	if w.conn == nil {
		w.conn, err = db.read.Conn(w.ctx)
	}
	if err == nil {
		err = w.conn.QueryRowContext(w.ctx, db.dialect.version).Scan(&version)
	}
	if err != nil {
		return -1
	}
	return version
}

// committed has the watcher look at once.
func (w *watcher) committed() {
	select {
	case w.poke <- struct{}{}:
	default:
	}
}

// end ends the watching.
func (w *watcher) end() (err error) {
	w.close()
	w.looks.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn != nil {
		err, w.conn = w.conn.Close(), nil
	}
	return err
}
