package session

import (
	"context"
	"sync/atomic"
	"time"
)

// busyShare is the part of a processor from which a session's processes count as
// working. A process that only waits uses less.
const busyShare = 0.01

// idleness tells when a session has shown no sign of life for long: silence on
// its output alone is not death (unattended, "Limits").
type idleness struct {
	limit time.Duration
	cpu   func() (time.Duration, error)             // of the session's processes so far
	tree  func(ctx context.Context) (string, error) // digest of the work tree
	seen  atomic.Int64                              // when the last event was seen, in Unix nanoseconds
	alive time.Time                                 // when the last sign of life was noticed
	last  time.Time                                 // of the last look
	used  time.Duration                             // at the last look
	held  string                                    // digest of the work tree when half of the limit had passed
}

// newIdleness starts counting now, when there is no process of the session yet.
func newIdleness(
	limit time.Duration, cpu func() (time.Duration, error), tree func(context.Context) (string, error),
) *idleness {
	now := time.Now()
	return &idleness{limit: limit, cpu: cpu, tree: tree, alive: now, last: now}
}

// event notes that something was seen. It may be called from any goroutine.
func (i *idleness) event() { i.seen.Store(time.Now().UnixNano()) }

// interval is how often to look.
func (i *idleness) interval() time.Duration { return max(i.limit/20, 20*time.Millisecond) }

// over looks once, and reports whether the limit is used up. busy says that ralph
// itself takes time, which counts as life.
func (i *idleness) over(ctx context.Context, now time.Time, busy bool) (bool, error) {
	used, err := i.cpu()
	working := err == nil && float64(used-i.used) > busyShare*float64(now.Sub(i.last))
	i.used, i.last = used, now
	if seen := time.Unix(0, i.seen.Load()); seen.After(i.alive) {
		i.live(seen)
	}
	if busy || working {
		i.live(now)
	}
	silent := now.Sub(i.alive)
	if silent < i.limit/2 || silent < i.limit && i.held != "" {
		return false, nil
	}
	// Only now is the work tree looked at, which costs something in a large one.
	digest, err := i.tree(ctx)
	if err != nil {
		return false, err
	}
	if i.held != "" && digest != i.held {
		i.live(now)
	}
	i.held = digest
	return now.Sub(i.alive) >= i.limit, nil
}

func (i *idleness) live(at time.Time) { i.alive, i.held = at, "" }
