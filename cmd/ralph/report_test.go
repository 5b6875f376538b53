package main

import (
	"testing"
	"time"
)

func TestSinceWhen(t *testing.T) {
	now := time.Date(2026, 11, 25, 21, 30, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"":           "2026-11-25 21:30",
		"24h":        "2026-11-24 21:30",
		"90m":        "2026-11-25 20:00",
		"7d":         "2026-11-18 21:30",
		"today":      "2026-11-25 00:00",
		"yesterday":  "2026-11-24 00:00",
		"2026-11-20": "2026-11-20 00:00",
		"0s":         "",
		"-1h":        "",
		"0d":         "",
		"last week":  "",
		"2026-13-01": "",
	} {
		got, err := sinceWhen(text, now)
		if said := got.Format("2006-01-02 15:04"); err == nil && said != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %s, %v; want %q", text, said, err, want)
		}
	}
}
