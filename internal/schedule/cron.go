package schedule

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/adhocore/gronx"
)

// A Cron defines when batches begin, in the five fields of cron: minute, hour, day of the
// month, month, day of the week.
//
// Like [Between] it follows the wall clock. When clocks go forward, the times that they skip occur
// together, at the change; when they go back, a time that occurs twice counts the first time.
// Schedules in UTC are not affected.
type Cron struct {
	fields string
	zone   *time.Location
	text   string
}

// shorthands are the words for five fields.
var shorthands = []string{"@hourly", "@daily", "@weekly", "@monthly", "@yearly", "@annually"}

// ParseCron parses "0 22 * * 1-5", "@daily" or, with a zone, "CRON_TZ=Europe/Berlin 0 22 * * 1-5". Without a zone it is
// in local. A schedule that never occurs, such as the 30th of February, is refused. The error names the accepted forms.
func ParseCron(s string, local *time.Location) (Cron, error) {
	fields := strings.Fields(s)
	c := Cron{zone: local, text: strings.Join(fields, " ")}
	if len(fields) > 0 {
		if name, ok := strings.CutPrefix(strings.TrimPrefix(fields[0], "CRON_"), "TZ="); ok {
			var err error
			if c.zone, err = parseZone(name); err != nil {
				return Cron{}, err
			}
			fields = fields[1:]
		}
	}
	c.fields = strings.Join(fields, " ")
	if word := len(fields) == 1 && slices.Contains(shorthands, c.fields); !word && len(fields) != 5 {
		return Cron{}, fmt.Errorf("%q is not a schedule: "+
			"write five fields (minute, hour, day of the month, month, day of the week), such as \"0 22 * * 1-5\", "+
			"or one of %s", s, strings.Join(shorthands, ", "))
	}
	if !gronx.IsValid(c.fields) {
		return Cron{}, fmt.Errorf("%q is not a schedule: a field is out of its range or cannot be read "+
			"(minute 0-59, hour 0-23, day 1-31, month 1-12, day of the week 0-7)", s)
	}
	// Eight years contain every date: one leap year may be skipped.
	if c.Next(time.Date(2096, 3, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Cron{}, fmt.Errorf("%q never comes: no month has such a day", s)
	}
	return c, nil
}

// String returns the schedule in its written form.
func (c Cron) String() string { return c.text }

// IsZero reports whether there is no schedule.
func (c Cron) IsZero() bool { return c.fields == "" }

// Next returns the first moment after t in the schedule; the zero time if there is none, and for
// the zero Cron.
func (c Cron) Next(t time.Time) time.Time {
	if c.IsZero() {
		return time.Time{}
	}
	here := t.In(c.zone)
	_, offset := here.Zone()
	wall := here.UTC().Add(time.Duration(offset) * time.Second) // as the wall clock shows it, without a zone
	for {
		next, err := gronx.NextTickAfter(c.fields, wall, false)
		if err != nil || !next.After(wall) {
			return time.Time{}
		}
		if at := c.moment(next); at.After(t) {
			return at
		}
		wall = next
	}
}

// moment returns when the zone's clock first shows a time of the wall clock, given in UTC; if it skips that time, the
// moment at which it does.
func (c Cron) moment(wall time.Time) time.Time {
	var late time.Time
	for _, around := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		_, offset := wall.Add(around).In(c.zone).Zone()
		at := wall.Add(-time.Duration(offset) * time.Second).In(c.zone)
		if _, there := at.Zone(); there == offset {
			return at
		}
		if late.Before(at) {
			late = at
		}
	}
	change, _ := late.ZoneBounds()
	return change
}
