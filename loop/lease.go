package loop

import (
	"context"
	"errors"
	"time"

	"ralph"
	"ralph/store"
)

// ErrTakenForLost means that a run could not renew its lease in time, for example because its machine was asleep or cut
// off. Others have its tasks now, and the run has stopped its agents.
var ErrTakenForLost = errors.New(
	"this run was taken for lost: it could not tell the database for minutes that it works")

// giveUp returns how long a run works without renewing its lease: a bit less than the lease lasts.
func giveUp() time.Duration { return store.LeaseTime / 5 * 4 }

// refuseOthers refuses to run beside a run on another machine if their changes cannot travel
// between them.
func (l *Loop) refuseOthers(tx *store.Tx) error {
	if !l.Store.Shared() || l.Merger.Travels() {
		return nil
	}
	other, ok, err := tx.RunElsewhere()
	if err == nil && ok {
		err = ralph.Conflict("run %d works on this queue on %s: for several machines set merge.push to a remote that all "+
			"of them reach, with merge.mode: merge", other.ID, other.Machine)
	}
	return err
}

// keepAlive renews a run's lease until release is called. It ends the context with [ErrTakenForLost] once the lease has
// expired. SQLite needs no renewal: other processes on the machine see whether the run's process lives.
func (l *Loop) keepAlive(ctx context.Context, run int64) (work context.Context, release func()) {
	work, cancel := context.WithCancelCause(ctx)
	if !l.Store.Shared() {
		return work, func() { cancel(nil) }
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// The wall clock matters too: the monotonic clock stops while a machine is asleep.
		since, tick := time.Now(), time.NewTicker(store.LeaseRenewal())
		defer tick.Stop()
		for {
			select {
			case <-work.Done():
				return
			case <-tick.C:
			}
			holds := false
			limited, stop := context.WithTimeout(work, max(step, giveUp()-time.Since(since)))
			err := l.Store.Tx(limited, func(tx *store.Tx) (err error) { holds, err = tx.RenewRun(run); return err })
			stop()
			if err == nil && holds {
				since = time.Now()
			}
			if gone(err, holds, time.Since(since), time.Now().Round(0).Sub(since.Round(0))) {
				cancel(ErrTakenForLost)
				return
			}
		}
	}()
	return work, func() { cancel(nil); <-ended }
}

// gone reports whether a run has to stop its agents after trying to renew its lease: another run has the lease, or no
// renewal was acknowledged for too long, by either clock.
func gone(err error, holds bool, monotonic, wall time.Duration) bool {
	return err == nil && !holds || err != nil && max(monotonic, wall) >= giveUp()
}
