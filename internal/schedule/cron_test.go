package schedule_test

import (
	"strings"
	"testing"
	"time"

	"ralph/internal/schedule"
)

func cron(t testing.TB, s string, local *time.Location) schedule.Cron {
	t.Helper()
	c, err := schedule.ParseCron(s, local)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCron(t *testing.T) {
	const berlin = "Europe/Berlin"
	tests := []struct {
		name     string
		schedule string
		local    string
		now      string
		next     []string
	}{
		{"every evening", "0 22 * * *", "UTC", "2026-11-20T21:59:59Z", []string{"2026-11-20T22:00:00Z", "2026-11-21T22:00:00Z"}},
		{"the moment itself has passed", "0 22 * * *", "UTC", "2026-11-20T22:00:00Z", []string{"2026-11-21T22:00:00Z"}},
		{"a part of the minute has passed", "0 22 * * *", "UTC", "2026-11-20T22:00:00.5Z", []string{"2026-11-21T22:00:00Z"}},
		{"days of the week by number", "0 22 * * 1-5", "UTC", "2026-11-20T22:00:00Z", []string{"2026-11-23T22:00:00Z"}},
		{"days of the week by name", "0 22 * * MON,WED", "UTC", "2026-11-20T22:00:00Z", []string{"2026-11-23T22:00:00Z", "2026-11-25T22:00:00Z"}},
		{"Sunday is 0 and 7", "0 0 * * 7", "UTC", "2026-11-20T22:00:00Z", []string{"2026-11-22T00:00:00Z"}},
		{"a day of the month or of the week, as in cron", "0 0 1 * 1", "UTC", "2026-11-24T00:00:00Z", []string{"2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z"}},
		{"steps", "*/20 * * * *", "UTC", "2026-11-20T22:05:00Z", []string{"2026-11-20T22:20:00Z", "2026-11-20T22:40:00Z", "2026-11-20T23:00:00Z"}},
		{"@daily is midnight of the machine's zone", "@daily", berlin, "2026-11-20T22:05:00Z", []string{"2026-11-21T00:00:00+01:00"}},
		{"@hourly", "@hourly", "UTC", "2026-11-20T22:05:00Z", []string{"2026-11-20T23:00:00Z"}},
		{"a zone that is named wins", "CRON_TZ=America/New_York 0 22 * * *", berlin, "2026-11-20T22:05:00Z", []string{"2026-11-20T22:00:00-05:00"}},
		{"TZ= is the same", "TZ=UTC @daily", berlin, "2026-11-20T22:05:00Z", []string{"2026-11-21T00:00:00Z"}},
		{"a leap day", "0 0 29 2 *", "UTC", "2026-11-20T22:05:00Z", []string{"2028-02-29T00:00:00Z"}},
		{"a time that is skipped comes at the change", "30 2 * * *", berlin, "2026-03-28T12:00:00Z", []string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"}},
		{"right before the change", "30 2 * * *", berlin, "2026-03-29T01:59:59+01:00", []string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"}},
		{"at the change it has come", "30 2 * * *", berlin, "2026-03-29T03:00:00+02:00", []string{"2026-03-30T02:30:00+02:00"}},
		{"all that is skipped comes once", "*/20 * * * *", berlin, "2026-03-29T01:30:00+01:00", []string{"2026-03-29T01:40:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T03:20:00+02:00"}},
		{"a skipped midnight", "@daily", "America/Santiago", "2026-09-05T12:00:00-04:00", []string{"2026-09-06T01:00:00-03:00", "2026-09-07T00:00:00-03:00"}},
		{"half an hour is skipped", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00+10:30", []string{"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"}},
		{"a whole day is skipped", "30 2 * * *", "Pacific/Apia", "2011-12-29T12:00:00-10:00", []string{"2011-12-31T00:00:00+14:00", "2011-12-31T02:30:00+14:00"}},
		{"a day of the week that the change ends", "30 2 * * 0", berlin, "2026-03-28T12:00:00Z", []string{"2026-03-29T03:00:00+02:00", "2026-04-05T02:30:00+02:00"}},
		{"a time that comes twice counts the first time", "30 2 * * *", berlin, "2026-10-24T12:00:00Z", []string{"2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"}},
		{"and only once when asked in between", "30 2 * * *", berlin, "2026-10-25T02:40:00+02:00", []string{"2026-10-26T02:30:00+01:00"}},
		{"and when asked in the second hour", "45 2 * * *", berlin, "2026-10-25T02:10:00+01:00", []string{"2026-10-26T02:45:00+01:00"}},
		{"steps in an hour that comes twice", "*/30 * * * *", berlin, "2026-10-25T01:45:00+02:00", []string{"2026-10-25T02:00:00+02:00", "2026-10-25T02:30:00+02:00", "2026-10-25T03:00:00+01:00"}},
		{"in New York, too", "30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", []string{"2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"}},
		{"a night's time moves with the clocks", "0 22 * * *", berlin, "2026-03-28T12:00:00Z", []string{"2026-03-28T22:00:00+01:00", "2026-03-29T22:00:00+02:00"}},
		{"UTC has no such days", "TZ=UTC 30 2 * * *", berlin, "2026-03-28T12:00:00Z", []string{"2026-03-29T02:30:00Z"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, now := cron(t, tt.schedule, zone(t, tt.local)), at(t, tt.now)
			for _, want := range tt.next {
				now = c.Next(now)
				if !now.Equal(at(t, want)) {
					t.Fatalf("Next = %s, want %s", now, want)
				}
			}
		})
	}
}

func TestNoScheduleNeverComes(t *testing.T) {
	var c schedule.Cron
	if !c.IsZero() || !c.Next(time.Unix(0, 0)).IsZero() {
		t.Error("the zero Cron comes")
	}
}

func TestSchedulesThatAreRefused(t *testing.T) {
	for in, want := range map[string]string{
		"":                         "write five fields",
		"soon":                     "write five fields",
		"@reboot":                  "write five fields",
		"@every 5m":                "write five fields",
		"@everysecond":             "write five fields",
		"* * * *":                  "write five fields",
		"0 * * * * *":              "write five fields",
		"0 0 1 1 * 2030":           "write five fields",
		"TZ=UTC":                   "write five fields",
		"60 * * * *":               "out of its range",
		"0 24 * * *":               "out of its range",
		"0 0 0 * *":                "out of its range",
		"0 0 1 13 *":               "out of its range",
		"0 0 * * 8":                "out of its range",
		"*/0 * * * *":              "out of its range",
		"5-1 * * * *":              "out of its range",
		"1,, * * * *":              "out of its range",
		"a b c d e":                "out of its range",
		"0 0 30 2 *":               "never comes",
		"0 0 31 4,6,9,11 *":        "never comes",
		"CRON_TZ=Mars/X 0 0 * * *": `no time zone "Mars/X"`,
		"TZ= 0 0 * * *":            `no time zone ""`,
	} {
		_, err := schedule.ParseCron(in, time.UTC)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error with %q", in, err, want)
		}
	}
}

func FuzzCron(f *testing.F) {
	for _, s := range []string{"0 22 * * 1-5", "@daily", "TZ=UTC */7 1-5,9 L 2 MON", "0 0 30 2 *", "0 0 */31 */12 */7", "15 10 15W * ?", "0 0 * * 5#3", "* * * * 5L"} {
		f.Add(s, int64(1774742400))
	}
	local := zone(f, "Europe/Berlin")
	f.Fuzz(func(t *testing.T, s string, unix int64) {
		c, err := schedule.ParseCron(s, local)
		if err != nil {
			return
		}
		now := time.Unix(unix%(1<<33), 0)
		// Some dates are rarer than the library looks ahead; then there is none.
		if next := c.Next(now); !next.IsZero() && (!next.After(now) || next.Second() != 0) {
			t.Fatalf("%s after %s: %s", s, now, next)
		}
	})
}
