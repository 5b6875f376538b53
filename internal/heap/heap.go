// Package heap lets ralph's heap grow to five times of what lives before it is collected, unless GOGC says otherwise:
// most commands end before their garbage is worth the time. It imports next to nothing, so that this holds while the
// packages of all commands are initialized, which fills a fresh heap.
package heap

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

func init() { //nolint:gochecknoinits // before the packages that take long
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

// A command is at rest that allocates less than little, in bytes, in so much time.
const (
	rest   = 10 * time.Second
	little = 1 << 20
)

// Trim gives memory back to the system, whenever the command comes to rest, until ctx ends: for those that last.
func Trim(ctx context.Context) {
	ticker := time.NewTicker(rest)
	defer ticker.Stop()
	total := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	for last, trimmed := uint64(0), uint64(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		metrics.Read(total)
		now := total[0].Value.Uint64()
		if now-last < little && now-trimmed > little {
			debug.FreeOSMemory()
			trimmed = now
		}
		last = now
	}
}
