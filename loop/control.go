package loop

import (
	"context"
	"sync"
	"time"

	"ralph"
)

// obeying is a context for what ralph does outside of a session's own time, such as
// verification: it ends at once with `ralph stop --now`, and after the grace with
// `ralph stop` or a first signal. Whoever asked for it releases it.
func (r *runner) obeying(ctx context.Context, grace time.Duration) (work context.Context, release func()) {
	work, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		defer cancel()
		stopping := r.Stop
		var over <-chan time.Time
		for {
			changed := r.Store.Changed()
			control, err := r.control(work)
			var again <-chan time.Time
			if err != nil { // the database is busy; the next look will tell
				control, again = ralph.ControlNone, time.After(step)
			}
			if stopping != nil && closed(stopping) {
				stopping, control = nil, ralph.ControlStop
			}
			switch {
			case control == ralph.ControlStopNow, control == ralph.ControlStop && grace <= 0:
				return
			case control == ralph.ControlStop && over == nil:
				over = time.After(grace)
			}
			select {
			case <-work.Done():
				return
			case <-over:
				return
			case <-stopping:
			case <-changed:
			case <-again:
			}
		}
	})
	return work, func() { cancel(); watch.Wait() }
}

// interruptibly runs f with a context that ends when the run is to end; what f was
// doing has no result then.
func (r *runner) interruptibly(ctx context.Context, f func(ctx context.Context) error) (stopped bool, err error) {
	work, release := r.obeying(ctx, 0)
	defer release()
	if err = f(work); work.Err() != nil {
		return true, nil
	}
	return false, err
}
