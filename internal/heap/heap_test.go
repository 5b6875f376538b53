package heap_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"ralph/internal/heap"
)

var kept []byte

// TestTrim once after work, and not again while nothing is allocated.
func TestTrim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go heap.Trim(ctx)
		forced := func() uint32 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.NumForcedGC
		}
		for round := range uint32(3) {
			before := forced()
			kept = make([]byte, 4<<20)
			time.Sleep(11 * time.Second)
			if n := forced() - before; n != 0 {
				t.Errorf("round %d: trimmed while it works", round)
			}
			time.Sleep(time.Hour)
			if n := forced() - before; n != 1 {
				t.Errorf("round %d: trimmed %d times in an hour of rest", round, n)
			}
		}
	})
}
