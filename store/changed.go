package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// How often to check for commits of other processes. A check reads no table and takes some microseconds, but it wakes
// several threads, all day, in an idle daemon.
const (
	lookEvery    = 200 * time.Millisecond
	looksClosely = 50 // how many in a row without a change
	lookIdly     = time.Second
	// pgLook is how often to check without a notice from the server.
	pgLook = 5 * time.Second
)

// nextLook returns how long to wait before the next check, after some that have found no change.
func nextLook(unchanged int) time.Duration {
	if unchanged < looksClosely {
		return lookEvery
	}
	return lookIdly
}

// Changed returns a channel that is closed at the next commit, of this process or another one, or
// when the database is no longer [DB.Intact]. A caller that waits for something takes the channel
// first, then looks, then waits on the channel: so it misses nothing. The channel may be closed
// although nothing has changed.
func (db *DB) Changed() <-chan struct{} {
	w := &db.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next != nil {
		return w.next
	}
	next := make(chan struct{})
	if w.ctx.Err() != nil {
		close(next) // so that the caller looks, and finds the database closed
		return next
	}
	if w.server != nil && !w.begun {
		w.begun = true
		w.looks.Go(db.listen)
	}
	if w.conn == nil {
		w.seen = db.version()
	}
	w.next = next
	w.looks.Go(db.await)
	return next
}

// await polls until something has changed, then closes the channel.
func (db *DB) await() {
	w := &db.watch
	pause := time.NewTimer(lookEvery)
	defer pause.Stop()
	for unchanged, changed := 0, false; !changed; unchanged++ {
		pause.Reset(nextLook(unchanged))
		select {
		case <-pause.C:
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

// version returns a number that changes with each commit of another connection, or -1 if it cannot
// be read.
func (db *DB) version() (version int64) {
	w := &db.watch
	if w.server != nil {
		return w.heard.Load()
	}
	if db.told != nil {
		db.told(db.dialect.version)
	}
	var err error
	ctx := context.WithoutCancel(w.ctx) // a context that can end would start a goroutine for each query
	if w.conn == nil {
		w.conn, err = db.read.Conn(ctx)
	}
	if err == nil {
		err = w.conn.QueryRowContext(ctx, db.dialect.version).Scan(&version)
	}
	if err != nil {
		return -1
	}
	return version
}

// committed makes the watcher look at once.
func (w *watcher) committed() {
	select {
	case w.poke <- struct{}{}:
	default:
	}
}

// end stops the watcher.
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

// listen counts the server's notices of commits, until the database is closed. It also counts after [pgLook] without a
// notice, so that waiting readers look.
func (db *DB) listen() {
	w := &db.watch
	hear := func() { w.heard.Add(1); w.committed() }
	for w.ctx.Err() == nil {
		conn, err := pgx.ConnectConfig(w.ctx, w.server)
		if err == nil {
			_, err = conn.Exec(w.ctx, "LISTEN "+pgx.Identifier{"ralph_" + w.schema}.Sanitize())
		}
		for err == nil {
			hear()
			limited, cancel := context.WithTimeout(w.ctx, pgLook)
			_, err = conn.WaitForNotification(limited)
			if cancel(); pgconn.Timeout(err) && w.ctx.Err() == nil {
				err = nil
			}
		}
		if conn != nil {
			_ = conn.Close(context.WithoutCancel(w.ctx)) // after an error it is useless
		}
		hear()
		select {
		case <-w.ctx.Done():
		case <-time.After(time.Second):
		}
	}
}
