package session

import (
	"context"
	"sync/atomic"
	"time"
)

// busyShare is the CPU share from which a session's processes count as working. A waiting
// process uses less.
const busyShare = 0.01

// idleness detects that a session has shown no sign of life for long.
// Silence on its output alone does not count (unattended, "Limits").
type idleness struct {
	limit   time.Duration
	cpu     func() (time.Duration, error)             // CPU time of the session's processes so far
	tree    func(ctx context.Context) (string, error) // digest of the work tree
	seen    atomic.Int64                              // when the last event was seen, in Unix nanoseconds
	alive   time.Time                                 // time of the last sign of life
	last    time.Time                                 // time of the last look
	used    time.Duration                             // CPU time at the last look
	halfway string                                    // digest of the work tree when half of the limit had passed
}

// newIdleness starts counting now, before the session has a process.
func newIdleness(
	limit time.Duration, cpu func() (time.Duration, error), tree func(context.Context) (string, error),
) *idleness {
	now := time.Now()
	return &idleness{limit: limit, cpu: cpu, tree: tree, alive: now, last: now}
}

// event records a sign of life. It may be called from any goroutine.
func (i *idleness) event() { i.seen.Store(time.Now().UnixNano()) }

// interval returns the time between two looks.
func (i *idleness) interval() time.Duration { return max(i.limit/20, 20*time.Millisecond) }

// over looks once, and reports whether the limit is used up. Busy means that ralph itself
// is at work, which counts as life.
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
	if silent < i.limit/2 || silent < i.limit && i.halfway != "" {
		return false, nil
	}
	// Scan the work tree only now, as that is costly in a large one.
	digest, err := i.tree(ctx)
	if err != nil {
		return false, err
	}
	if i.halfway != "" && digest != i.halfway {
		i.live(now)
	}
	i.halfway = digest
	return now.Sub(i.alive) >= i.limit, nil
}

func (i *idleness) live(at time.Time) { i.alive, i.halfway = at, "" }
