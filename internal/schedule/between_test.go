package schedule_test

import (
	"strings"
	"testing"
	"time"

	"ralph/internal/schedule"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func between(t testing.TB, s string, local *time.Location) schedule.Between {
	t.Helper()
	b, err := schedule.ParseBetween(s, local)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// at reads a moment as "2026-03-29T01:59:00Z" or with an offset.
func at(t testing.TB, s string) time.Time {
	t.Helper()
	m, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestBetween(t *testing.T) {
	const berlin = "Europe/Berlin" // forward on 2026-03-29 at 02:00, back on 2026-10-25 at 03:00
	tests := []struct {
		name   string
		window string
		local  string
		now    string
		open   bool
		opens  string // what NextOpen says
	}{
		{"an evening is before a night's window", "22:00-06:00", "UTC", "2026-11-20T21:59:59Z", false, "2026-11-20T22:00:00Z"},
		{"the beginning belongs to the window", "22:00-06:00", "UTC", "2026-11-20T22:00:00Z", true, "2026-11-20T22:00:00Z"},
		{"the window goes over midnight", "22:00-06:00", "UTC", "2026-11-21T00:00:00Z", true, "2026-11-21T00:00:00Z"},
		{"the end does not belong to the window", "22:00-06:00", "UTC", "2026-11-21T06:00:00Z", false, "2026-11-21T22:00:00Z"},
		{"a window of the day opens on the next day", "9:00-17:30", "UTC", "2026-11-20T17:30:00Z", false, "2026-11-21T09:00:00Z"},
		{"a window may end at midnight", "18:00-24:00", "UTC", "2026-11-20T23:59:59Z", true, "2026-11-20T23:59:59Z"},
		{"fractions of a second do not delay it", "22:00-06:00", "UTC", "2026-11-20T21:59:59.9Z", false, "2026-11-20T22:00:00Z"},
		{"times are those of the machine", "22:00-06:00", berlin, "2026-11-20T21:30:00Z", true, "2026-11-20T21:30:00Z"},
		{"a zone that is named wins over the machine's", "22:00-06:00 America/New_York", berlin, "2026-11-20T21:30:00Z", false, "2026-11-21T03:00:00Z"},
		{"a night in which clocks go forward is an hour shorter", "22:00-06:00", berlin, "2026-03-28T22:00:00+01:00", true, "2026-03-28T22:00:00+01:00"},
		{"a night in which clocks go back is an hour longer", "22:00-06:00", berlin, "2026-10-24T22:00:00+02:00", true, "2026-10-24T22:00:00+02:00"},
		{"a beginning that is skipped opens at the change", "02:30-04:00", berlin, "2026-03-29T01:00:00+01:00", false, "2026-03-29T03:00:00+02:00"},
		{"a window that is skipped does not open that day", "02:10-02:50", berlin, "2026-03-29T00:00:00+01:00", false, "2026-03-30T02:10:00+02:00"},
		{"an hour that comes twice counts the first time", "02:00-02:30", berlin, "2026-10-25T01:00:00+02:00", false, "2026-10-25T02:00:00+02:00"},
		{"an hour that comes twice counts the second time", "02:00-02:30", berlin, "2026-10-25T02:30:00+02:00", false, "2026-10-25T02:00:00+01:00"},
		{"clocks that change at midnight", "00:00-06:00", "America/Santiago", "2026-09-05T23:00:00-04:00", false, "2026-09-06T01:00:00-03:00"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, now := between(t, tt.window, zone(t, tt.local)), at(t, tt.now)
			if got := b.Open(now); got != tt.open {
				t.Errorf("Open = %v, want %v", got, tt.open)
			}
			if got, want := b.NextOpen(now), at(t, tt.opens); !got.Equal(want) {
				t.Errorf("NextOpen = %s, want %s", got, want)
			}
		})
	}
}

func TestNoWindowIsOpenAlways(t *testing.T) {
	var b schedule.Between
	now := at(t, "2026-11-20T21:59:59Z")
	if !b.IsZero() || !b.Open(now) || !b.NextOpen(now).Equal(now) {
		t.Errorf("the zero Between is open: %v, and opens at %s", b.Open(now), b.NextOpen(now))
	}
}

// NextOpen agrees with a search minute by minute, through both clock changes of the year.
func TestTheNextChangeIsTheFirstOne(t *testing.T) {
	for _, name := range []string{"Europe/Berlin", "America/Santiago", "Australia/Lord_Howe", "UTC"} {
		for _, window := range []string{"22:00-06:00", "02:10-02:50", "00:00-00:30", "23:30-24:00", "01:45-02:15", "03:00-02:00"} {
			b := between(t, window, zone(t, name))
			for _, start := range []string{"2026-03-28T12:00:00Z", "2026-04-04T00:00:00Z", "2026-09-05T12:00:00Z", "2026-10-03T00:00:00Z", "2026-10-24T12:00:00Z"} {
				from := at(t, start)
				got, want := b.NextOpen(from), from
				for !b.Open(want) {
					want = want.Add(time.Minute)
				}
				if !got.Equal(want) {
					t.Errorf("%s in %s, from %s: %s, want %s", window, name, start, got, want)
				}
			}
		}
	}
}

func TestWindowsThatAreRefused(t *testing.T) {
	for in, want := range map[string]string{
		"":                        "write it as 22:00-06:00",
		"22:00":                   "write it as 22:00-06:00",
		"22-6":                    `"22" is not a time of the day`,
		"22:00-6":                 `"6" is not a time of the day`,
		"25:00-06:00":             `"25:00" is not a time of the day`,
		"22:60-06:00":             `"22:60" is not a time of the day`,
		"22:0-06:00":              `"22:0" is not a time of the day`,
		"24:01-06:00":             `"24:01" is not a time of the day`,
		"-1:00-06:00":             `"" is not a time of the day`,
		"+1:00-06:00":             `"+1:00" is not a time of the day`,
		"10pm-6am":                `"10pm" is not a time of the day`,
		"24:00-06:00":             "cannot begin at 24:00",
		"06:00-06:00":             "leave it out to work all day",
		"00:00-24:00":             "leave it out to work all day",
		"22:00-06:00 Local":       `no time zone "Local"`,
		"22:00-06:00 Mars/X":      `no time zone "Mars/X"`,
		"22:00-06:00 ../../UTC":   "no time zone",
		"22:00 - 06:00":           "write it as 22:00-06:00",
		"22:00-06:00-08:00":       `"06:00-08:00" is not a time of the day`,
		"22:00-06:00 UTC or else": `no time zone "UTC or else"`,
	} {
		_, err := schedule.ParseBetween(in, time.UTC)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error with %q", in, err, want)
		}
	}
}

func FuzzBetween(f *testing.F) {
	for _, s := range []string{"22:00-06:00", "9:30-24:00 UTC", "02:10-02:50 Europe/Berlin", "00:00-00:00", "a-b", "22:00-06:00 "} {
		f.Add(s, int64(1774742400))
	}
	local := zone(f, "Europe/Berlin")
	f.Fuzz(func(t *testing.T, s string, unix int64) {
		b, err := schedule.ParseBetween(s, local)
		if err != nil {
			return
		}
		now := time.Unix(unix%(1<<33), 0)
		if opens := b.NextOpen(now); !b.Open(opens) || opens.Before(now) || opens.After(now.AddDate(0, 0, 3)) {
			t.Fatalf("%s from %s: opens %s", s, now, opens)
		}
		if again := between(t, b.String(), local); again.Open(now) != b.Open(now) {
			t.Fatalf("%q reads differently as %q", s, b.String())
		}
	})
}
