package schedule

import (
	"testing"
	"time"
)

func TestParseSince(t *testing.T) {
	now := time.Date(2026, 11, 25, 21, 30, 0, 0, time.UTC) // a Wednesday
	for text, want := range map[string]string{
		"24h":              "2026-11-24 21:30",
		"90m":              "2026-11-25 20:00",
		"7d":               "2026-11-18 21:30",
		"21:00":            "2026-11-25 21:00",
		"22:00":            "2026-11-24 22:00",
		"6:05":             "2026-11-25 06:05",
		"today":            "2026-11-25 00:00",
		"Yesterday":        "2026-11-24 00:00",
		"last night":       "2026-11-24 18:00",
		"tonight":          "2026-11-25 18:00",
		"monday":           "2026-11-23 00:00",
		"Wed":              "2026-11-25 00:00",
		"thursday":         "2026-11-19 00:00",
		"2026-11-20":       "2026-11-20 00:00",
		"2026-11-20 22:15": "2026-11-20 22:15",
		"2026-11-20T22:15": "2026-11-20 22:15",
		"":                 "", "0s": "", "-1h": "", "0d": "", "last week": "", "2026-13-01": "", "25:00": "", "12": "", "d": "",
	} {
		got, err := ParseSince(text, now)
		if said := got.Format("2006-01-02 15:04"); err == nil && said != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %s, %v; want %q", text, said, err, want)
		}
	}
	night := time.Date(2026, 11, 25, 7, 30, 0, 0, time.UTC)
	if got, err := ParseSince("tonight", night); err != nil || got.Format("2006-01-02 15:04") != "2026-11-24 18:00" {
		t.Errorf("in the morning, tonight began at %s, %v", got, err)
	}
}
