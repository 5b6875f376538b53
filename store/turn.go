package store

import (
	"context"
	"time"

	"github.com/gofrs/flock"
)

// patience is how long a writer waits for its turn before it takes its chance. Who
// has the turn for so long was stopped in the middle of a transaction, and SQLite
// says so.
const patience = 10 * time.Second

// turns lets the writers of all processes in one after the other. SQLite makes those
// who come second sleep and look again, ever longer: of many writers some would wait
// a hundred times as long as most. The kernel instead wakes who waits for a lock on a
// file, in the order in which they came.
//
// It is a courtesy and no protection: transactions exclude each other without it.
type turns struct {
	here chan struct{} // holds one while a goroutine of this process has, or waits for, the lock
	lock *flock.Flock
}

func newTurns(path string) *turns {
	return &turns{here: make(chan struct{}, 1), lock: flock.New(path)}
}

// take waits for a turn, which ends with the call of leave. It is taken without the
// lock by who has waited too long, and where there are no locks on files.
func (t *turns) take(ctx context.Context) (leave func(), err error) {
	late := time.NewTimer(patience)
	defer late.Stop()
	none := func() {}
	select {
	case t.here <- struct{}{}:
	case <-late.C:
		return none, nil
	case <-ctx.Done():
		return none, ctx.Err()
	}
	if ok, err := t.lock.TryLock(); ok || err != nil {
		return t.leave, nil
	}
	locked := make(chan struct{})
	go func() {
		defer close(locked)
		_ = t.lock.Lock() // an error is a file system without locks
	}()
	select {
	case <-locked:
		return t.leave, nil
	case <-late.C:
	case <-ctx.Done():
		err = ctx.Err()
	}
	go func() { // the turn comes too late, and goes by
		<-locked
		t.leave()
	}()
	return none, err
}

func (t *turns) leave() {
	_ = t.lock.Unlock() // it dies with the process at the latest
	<-t.here
}
