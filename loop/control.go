package loop

import (
	"context"
	"sync"
	"time"

	"ralph"
)

// obeying returns a context for work outside of a session's own time, such as
// verification. `ralph stop --now` cancels it at once; `ralph stop` or a first
// signal cancels it after the grace period. The caller must call release.
func (c course) obeying(ctx context.Context, grace time.Duration) (work context.Context, release func()) {
	work, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		defer cancel()
		stopping := c.Stop
		var over <-chan time.Time
		for {
			select { // most work ends before anybody can ask for anything
			case <-work.Done():
				return
			case <-over:
				return
			case <-stopping:
			case <-time.After(shortWait):
			}
			changed := c.Store.Changed()
			control, err := c.control(work)
			var again <-chan time.Time
			if err != nil { // the database is busy: look again soon
				control, again = ralph.ControlNone, time.After(step)
			}
			if closed(stopping) {
				stopping, control = nil, ralph.ControlStop
			}
			now, soon := obeyed(control, grace)
			if now {
				return
			}
			switch {
			case soon && over == nil:
				left := grace
				if stopping == nil {
					left -= c.sinceStop()
				}
				over = time.After(left)
			case !soon && again == nil && stopping != nil: // people want the run to continue
				over = nil
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

// obeyed reports whether a control ends the work now, or when its grace period is over.
func obeyed(control string, grace time.Duration) (now, soon bool) {
	soon = control == ralph.ControlStop
	return control == ralph.ControlStopNow || soon && grace <= 0, soon
}

// interruptibly runs f with a context that is cancelled when the run has to end. Then the result of f is void.
func (c course) interruptibly(ctx context.Context, f func(ctx context.Context) error) (stopped bool, err error) {
	work, release := c.obeying(ctx, 0)
	defer release()
	if err = f(work); work.Err() != nil {
		return true, nil
	}
	return false, err
}
