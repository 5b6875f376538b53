package loop

import (
	"context"
	"sync"
	"time"

	"ralph"
)

// glance is how soon it is looked what people ask for, and again after each commit.
const glance = 200 * time.Millisecond

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
			select { // most of what is done so is over before anybody could ask for anything
			case <-work.Done():
				return
			case <-over:
				return
			case <-stopping:
			case <-time.After(glance):
			}
			changed := r.Store.Changed()
			control, err := r.control(work)
			var again <-chan time.Time
			if err != nil { // the database is busy; the next look will tell
				control, again = ralph.ControlNone, time.After(step)
			}
			if closed(stopping) {
				stopping, control = nil, ralph.ControlStop
			}
			now, soon := obeyed(control, grace)
			if now {
				return
			}
			if soon && over == nil {
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

// obeyed tells whether what people ask for ends what is done now, or when its grace is over.
func obeyed(control string, grace time.Duration) (now, soon bool) {
	stop := control == ralph.ControlStop
	return control == ralph.ControlStopNow || stop && grace <= 0, stop && grace > 0
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
