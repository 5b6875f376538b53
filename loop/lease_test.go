package loop

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"
)

// TestWhenARunBeginsAgain: a run waits for its server, and not for a file.
func TestWhenARunBeginsAgain(t *testing.T) {
	away := fmt.Errorf("recover: %w", driver.ErrBadConn)
	tests := []struct {
		name   string
		err    error
		shared bool
		want   bool
	}{
		{"it was lost", errors.Join(ErrTakenForLost, away), false, true},
		{"its server is away", away, true, true},
		{"its server's disk is full", syscall.ENOSPC, true, false},
		{"something else is wrong", errors.New("no repository"), true, false},
		{"its file is away", away, false, false},
		{"it ended", nil, true, false},
	}
	for _, tt := range tests {
		if got := beginsAgain(tt.err, tt.shared); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

// TestWhenARunIsGone: it stops its agents before others may take its lease for lapsed.
func TestWhenARunIsGone(t *testing.T) {
	t.Parallel()
	cut := errors.New("the server cannot be reached")
	tests := []struct {
		name            string
		err             error
		holds           bool
		monotonic, wall time.Duration
		want            bool
	}{
		{"renewed", nil, true, 0, 0, false},
		{"renewed after a long sleep in which nobody looked", nil, true, time.Hour, time.Hour, false},
		{"others have it", nil, false, time.Second, time.Second, true},
		{"not acknowledged yet", cut, false, giveUp() - 1, giveUp() - 1, false},
		{"not acknowledged for too long", cut, false, giveUp(), giveUp(), true},
		{"asleep: the monotonic clock stood still", cut, false, time.Second, giveUp(), true},
		{"the wall clock was set back", cut, false, giveUp(), -time.Hour, true},
	}
	for _, tt := range tests {
		if got := gone(tt.err, tt.holds, tt.monotonic, tt.wall); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}
