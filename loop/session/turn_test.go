package session

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ralph/loop/agent"
	"ralph/store"
)

// A stopwatch is a log that records whether a session's clock was stopped when a line was written.
type stopwatch struct {
	slog.Handler
	s     *Session
	stood *bool
}

func (w stopwatch) Handle(ctx context.Context, r slog.Record) error {
	*w.stood = w.s.clock.paused()
	return w.Handler.Handle(ctx, r)
}

// TestASessionsClockStandsStillWhileItsTurnIsJudged, and runs again
// afterwards, whatever the result.
func TestASessionsClockStandsStillWhileItsTurnIsJudged(t *testing.T) {
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "ralph.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	var stood bool
	s := &Session{clock: newClock(time.Hour, func() {})}
	s.Store, s.Log = db, slog.New(stopwatch{slog.NewTextHandler(&log, nil), s, &stood})
	if answer := s.turnEnded(t.Context(), agent.Turn{}); answer != (agent.Answer{}) {
		t.Errorf("got %+v", answer)
	}
	if !strings.Contains(log.String(), "is checked only after its session") {
		t.Errorf("it says %q", log.String())
	}
	if !stood || s.clock.paused() {
		t.Errorf("its clock stood still: %t, and does still: %t", stood, s.clock.paused())
	}
	s.clock.pause()
}
