package store

import (
	"context"
	"time"

	"github.com/gofrs/flock"
)

// patience is how long a writer waits for its turn before it goes on without. A holder that takes
// longer was stopped in the middle of a transaction, and SQLite reports that.
const patience = 10 * time.Second

// turns serializes the writers of all processes. SQLite lets waiting writers sleep and poll at growing intervals: with
// many writers, some would wait a hundred times as long as most. The kernel instead wakes waiters for a file lock in
// their order.
//
// It is for fairness only: transactions exclude each other without it.
type turns struct {
	here chan struct{} // holds one element while a goroutine of this process has the lock or waits for it
	lock *flock.Flock
}

func newTurns(path string) *turns {
	return &turns{here: make(chan struct{}, 1), lock: flock.New(path)}
}

// take waits for a turn, which ends when leave is called. It goes on without the lock after
// patience has passed, and where file locks are not supported.
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
		_ = t.lock.Lock() // an error means a file system without locks
	}()
	select {
	case <-locked:
		return t.leave, nil
	case <-late.C:
	case <-ctx.Done():
		err = ctx.Err()
	}
	go func() { // the lock comes too late and is released at once
		<-locked
		t.leave()
	}()
	return none, err
}

func (t *turns) leave() {
	_ = t.lock.Unlock() // it is released with the process at the latest
	<-t.here
}
