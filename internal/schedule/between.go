// Package schedule decides when a run may work: within a daily window, and from which batch on.
//
// It is pure: it never waits or reads the clock, and the only file that it reads is the machine's zone information,
// to parse the name of a zone. Times are compared by the wall clock of a zone, so that 22:00 is 22:00 in summer and
// in winter; [Between] and [Cron] describe the effect of clock changes.
package schedule

import (
	"fmt"
	"strings"
	"time"
)

// A Between is a daily window, such as 22:00-06:00, including its beginning but not its end. The
// zero Between is always open.
//
// The window is open whenever the wall clock of its zone shows a time within it. When clocks go
// forward and skip its beginning, the window opens at the change; a window that is skipped
// altogether does not open. When clocks go back, an hour that occurs twice counts both times.
type Between struct {
	from, to int // seconds after midnight; to may be 24:00
	zone     *time.Location
	text     string
}

const day = 24 * 60 * 60

// ParseBetween parses "22:00-06:00" or "22:00-06:00 Europe/Berlin". A window whose end is not after its beginning spans
// midnight. Without a zone it is in local. The error names the accepted forms.
func ParseBetween(s string, local *time.Location) (Between, error) {
	times, name, explicit := strings.Cut(strings.TrimSpace(s), " ")
	b := Between{zone: local}
	first, last, ok := strings.Cut(times, "-")
	if !ok {
		return Between{}, fmt.Errorf("%q is not a window of the day: write it as 22:00-06:00", s)
	}
	var err error
	if b.from, err = parseClock(first); err != nil {
		return Between{}, err
	}
	if b.to, err = parseClock(last); err != nil {
		return Between{}, err
	}
	if b.from == day {
		return Between{}, fmt.Errorf("a window cannot begin at 24:00: write 00:00")
	}
	if b.from == b.to || b.to-b.from == day {
		return Between{}, fmt.Errorf("%q begins where it ends: leave it out to work all day", s)
	}
	if explicit {
		if b.zone, err = parseZone(strings.TrimSpace(name)); err != nil {
			return Between{}, err
		}
	}
	b.text = strings.Join(strings.Fields(s), " ")
	return b, nil
}

// parseClock parses 6:00, 06:00 or 24:00 as seconds after midnight.
func parseClock(s string) (int, error) {
	if s == "24:00" {
		return day, nil
	}
	t, err := time.Parse("15:04", s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a time of the day: write it as 22:00, from 00:00 to 24:00", s)
	}
	return t.Hour()*3600 + t.Minute()*60, nil
}

// parseZone parses the name of a zone, such as Europe/Berlin or UTC.
func parseZone(name string) (*time.Location, error) {
	// "" and "Local" would mean another zone on another machine.
	if name != "" && name != "Local" {
		if zone, err := time.LoadLocation(name); err == nil {
			return zone, nil
		}
	}
	return nil, fmt.Errorf("no time zone %q is known on this machine: write it as Europe/Berlin or UTC", name)
}

// String returns the window in its written form, "" for the zero Between.
func (b Between) String() string { return b.text }

// IsZero reports whether the window is always open.
func (b Between) IsZero() bool { return b.zone == nil }

// Open reports whether t is within the window.
func (b Between) Open(t time.Time) bool {
	if b.IsZero() {
		return true
	}
	now := b.clock(t)
	if b.from < b.to {
		return b.from <= now && now < b.to
	}
	return now >= b.from || now < b.to
}

// clock returns the time of day at t, in seconds after midnight.
func (b Between) clock(t time.Time) int {
	h, m, s := t.In(b.zone).Clock()
	return h*3600 + m*60 + s
}

// NextOpen returns the first moment from t on at which the window is open, possibly t itself. Between two changes of
// the zone's clocks it is arithmetic.
func (b Between) NextOpen(t time.Time) time.Time {
	for !b.Open(t) {
		ahead := ((b.from-b.clock(t))%day + day) % day
		if ahead == 0 {
			ahead = day
		}
		at := t.Truncate(time.Second).Add(time.Duration(ahead) * time.Second)
		if _, change := t.In(b.zone).ZoneBounds(); !change.IsZero() && change.Before(at) {
			at = change
		}
		t = at
	}
	return t
}
