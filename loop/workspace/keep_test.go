package workspace

import (
	"testing"
	"time"
)

// TestLostSince: dates in names of refs are bounded, other names stay.
func TestLostSince(t *testing.T) {
	end := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	tests := []struct {
		ref  string
		want time.Time
	}{
		{LostRef("7d3c"), end},
		{lostRefs + "7d3c/heads/mine", end},
		{lostRefs + "2-20260401T101500.250", time.Date(2026, 4, 1, 10, 15, 0, 250e6, time.UTC)},
		{lostRefs + "check-1-20260401T101500.250", time.Date(2026, 4, 1, 10, 15, 0, 250e6, time.UTC)},
		{lostRefs + "main-90fff22e91f3", time.Time{}},
		{lostRefs + "main", time.Time{}},
	}
	for _, tt := range tests {
		got, err := lostSince(tt.ref, func(session string) (time.Time, error) {
			if session != "7d3c" {
				t.Errorf("%s is of session %q", tt.ref, session)
			}
			return end, nil
		})
		if err != nil || !got.Equal(tt.want) {
			t.Errorf("%s: %v, %v", tt.ref, got, err)
		}
	}
}
