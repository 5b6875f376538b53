package schedule_test

import (
	"testing"
	"time"

	"ralph/internal/schedule"
)

func TestOpening(t *testing.T) {
	night := between(t, "22:00-06:00", time.UTC)
	tests := []struct {
		name          string
		now, batch    string
		window        schedule.Between
		until, reason string // "" for none
	}{
		{"without window and schedule a session may begin", "2026-11-20T12:00:00Z", "", schedule.Between{}, "", ""},
		{"within the window a session may begin", "2026-11-20T23:00:00Z", "", night, "", ""},
		{"at the window's first moment a session may begin", "2026-11-20T22:00:00Z", "", night, "", ""},
		{"outside the window it waits for its beginning", "2026-11-20T12:00:00Z", "", night, "2026-11-20T22:00:00Z", "for the window 22:00-06:00"},
		{"at the window's end no session begins", "2026-11-21T06:00:00Z", "", night, "2026-11-21T22:00:00Z", "for the window 22:00-06:00"},
		{"before its batch a session waits for it", "2026-11-20T12:00:00Z", "2026-11-20T18:00:00Z", schedule.Between{}, "2026-11-20T18:00:00Z", "for the next batch"},
		{"once the batch has begun a session may begin", "2026-11-20T18:00:00Z", "2026-11-20T18:00:00Z", schedule.Between{}, "", ""},
		{"a batch within the window begins on time", "2026-11-20T23:00:00Z", "2026-11-21T02:00:00Z", night, "2026-11-21T02:00:00Z", "for the next batch"},
		{"a batch outside the window waits for it too", "2026-11-20T23:00:00Z", "2026-11-21T12:00:00Z", night, "2026-11-21T22:00:00Z", "for the next batch, and for the window 22:00-06:00"},
		{"a batch that the window's end cuts waits for the next night", "2026-11-21T07:00:00Z", "2026-11-20T23:00:00Z", night, "2026-11-21T22:00:00Z", "for the window 22:00-06:00"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var batch, want time.Time
			if tt.batch != "" {
				batch = at(t, tt.batch)
			}
			if tt.until != "" {
				want = at(t, tt.until)
			}
			until, reason := schedule.Opening(at(t, tt.now), batch, tt.window)
			if !until.Equal(want) || reason != tt.reason {
				t.Errorf("Opening = %s, %q, want %s, %q", until, reason, want, tt.reason)
			}
		})
	}
}
