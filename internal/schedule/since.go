package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// evening is the hour when a night begins.
const evening = 18

// ParseSince reads the start of a period that ends now: a span (2h, 90m, 7d), a time of the day (22:00, the last
// one), a day (today, yesterday, monday, 2026-11-20), "tonight" or "last night", which begin at 18:00.
func ParseSince(text string, now time.Time) (time.Time, error) {
	word := strings.ToLower(strings.TrimSpace(text))
	y, m, d := now.Date()
	at := func(days, hour, minute int) time.Time {
		return time.Date(y, m, d-days, hour, minute, 0, 0, now.Location())
	}
	switch word {
	case "today":
		return at(0, 0, 0), nil
	case "yesterday":
		return at(1, 0, 0), nil
	case "tonight", "this night":
		if now.Hour() >= evening {
			return at(0, evening, 0), nil
		}
		return at(1, evening, 0), nil
	case "last night", "night":
		return at(1, evening, 0), nil
	}
	for days := range 7 {
		if name := strings.ToLower(at(days, 0, 0).Weekday().String()); word == name || word == name[:3] {
			return at(days, 0, 0), nil
		}
	}
	if n, err := strconv.Atoi(strings.TrimSuffix(word, "d")); err == nil && strings.HasSuffix(word, "d") && n > 0 {
		return now.AddDate(0, 0, -n), nil
	}
	if clock, err := time.Parse("15:04", word); err == nil {
		if t := at(0, clock.Hour(), clock.Minute()); !t.After(now) {
			return t, nil
		}
		return at(1, clock.Hour(), clock.Minute()), nil
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02 15:04", "2006-01-02T15:04", time.RFC3339} {
		if t, err := time.ParseInLocation(layout, strings.ToUpper(word), now.Location()); err == nil {
			return t, nil
		}
	}
	if span, err := time.ParseDuration(word); err == nil && span > 0 {
		return now.Add(-span), nil
	}
	return now, fmt.Errorf("%q is not a time: say 22:00, 2h, 7d, today, yesterday, \"last night\", monday, or 2026-11-20",
		text)
}
