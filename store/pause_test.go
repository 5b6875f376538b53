package store

import (
	"testing"
	"time"
)

// TestLongWaitsLookRarely: an idle daemon hardly wakes, and a waiter sees a change at once after another one.
func TestLongWaitsLookRarely(t *testing.T) {
	for unchanged, want := range map[int]time.Duration{0: 200 * time.Millisecond, 49: 200 * time.Millisecond, 50: time.Second, 1 << 40: time.Second} {
		if got := nextLook(unchanged); got != want {
			t.Errorf("after %d looks: %v, want %v", unchanged, got, want)
		}
	}
}
