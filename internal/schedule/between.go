// Package schedule answers when a run may work: within a window of the day, and
// from which batch on.
//
// It is pure: it never asks for the time, waits, or reads a file but the zone
// information of the machine, and that only to parse the name of a zone. Times
// are compared by the wall clock of a zone, so that 22:00 is 22:00 in summer and
// in winter; how that meets the two days a year on which clocks are changed is
// said at [Between] and [Cron].
package schedule

import (
	"fmt"
	"strings"
	"time"
)

// A Between is a window of every day, such as 22:00-06:00, its beginning
// included and its end not. The zero Between is open always.
//
// The window is open whenever a clock on the wall of its zone shows a time
// within it. On the day on which clocks are put forward, a beginning that they
// skip opens the window at the change, and a window that they skip altogether
// does not open. On the day on which they are put back, an hour that comes twice
// counts both times.
type Between struct {
	from, to int // seconds after midnight; to may be 24:00
	zone     *time.Location
	text     string
}

const day = 24 * 60 * 60

// ParseBetween reads "22:00-06:00" or "22:00-06:00 Europe/Berlin". A window
// whose end is not after its beginning goes over midnight. Without a zone it is
// in local. The error says what is accepted.
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

// parseClock reads 6:00, 06:00 or 24:00 as seconds after midnight.
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

// parseZone reads the name of a zone, such as Europe/Berlin or UTC.
func parseZone(name string) (*time.Location, error) {
	// "" and "Local" would be another zone on another machine.
	if name != "" && name != "Local" {
		if zone, err := time.LoadLocation(name); err == nil {
			return zone, nil
		}
	}
	return nil, fmt.Errorf("no time zone %q is known on this machine: write it as Europe/Berlin or UTC", name)
}

// String is the window as it was written, "" for the zero Between.
func (b Between) String() string { return b.text }

// IsZero reports whether the window is open always.
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

// clock is the time of the day at t, in seconds after midnight.
func (b Between) clock(t time.Time) int {
	h, m, s := t.In(b.zone).Clock()
	return h*3600 + m*60 + s
}

// NextOpen is the first moment from t on at which the window is open: t itself
// if it is open then.
func (b Between) NextOpen(t time.Time) time.Time { return b.next(t, true) }

// NextClose is the first moment from t on at which the window is closed: t
// itself if it is closed then. It is the zero time if it never closes.
func (b Between) NextClose(t time.Time) time.Time {
	if b.IsZero() {
		return time.Time{}
	}
	return b.next(t, false)
}

// next finds the first moment from t on at which the window is open or closed.
// Between two changes of the zone's clocks that is arithmetic.
func (b Between) next(t time.Time, open bool) time.Time {
	mark := b.to
	if open {
		mark = b.from
	}
	for b.Open(t) != open {
		ahead := ((mark-b.clock(t))%day + day) % day
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
