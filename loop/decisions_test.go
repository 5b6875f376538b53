package loop_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ralph"
	"ralph/loop"
)

func TestLimitsOfARun(t *testing.T) {
	limits := ralph.Limits{MaxSessions: 3, MaxSeconds: 60, MaxCostUSD: 5, MaxDayCostUSD: 8, StagnantMaximum: 2, SessionCostUSD: 4}
	for want, s := range map[string]loop.Spending{
		"": loop.Spend(2, 1, 59*time.Second, 4.99, 7.99),
		"the limit of 3 sessions per run is reached":                                        loop.Spend(3, 0, 0, 0, 0),
		"the limit of 1m0s per run is reached":                                              loop.Spend(0, 0, time.Minute, 0, 0),
		"the limit of $5.00 per run is reached ($5.20 spent)":                               loop.Spend(0, 0, 0, 5.2, 0),
		"the limit of $5.00 per run is reached ($5.00 spent)":                               loop.Spend(0, 0, 0, 5, 0),
		"the limit of $8.00 per day is reached ($8.00 spent since midnight, over all runs)": loop.Spend(0, 0, 0, 0, 8),
		"2 sessions in a row changed nothing":                                               loop.Spend(0, 2, 0, 0, 0),
	} {
		if got := loop.Reached(limits, s); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for _, tt := range []struct{ run, day, want float64 }{{0, 0, 4}, {3, 3, 2}, {0, 7.5, 0.5}} {
		if got := loop.Allowance(limits, loop.Spend(0, 0, 0, tt.run, tt.day)); got != tt.want {
			t.Errorf("spent %g and %g: may spend %g, want %g", tt.run, tt.day, got, tt.want)
		}
	}
}

func TestUsageWindows(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	soon, later := now.Add(time.Hour), now.Add(50*time.Hour)
	limits := map[string]int{"five_hour": 80, "seven_day": 90}
	window := func(name string, used float64, reset time.Time) ralph.UsageWindow {
		return ralph.UsageWindow{Name: name, Utilization: used, ResetsAt: ralph.At(reset)}
	}
	for _, tt := range []struct {
		name    string
		windows []ralph.UsageWindow
		until   time.Time
	}{
		{"none is known", nil, time.Time{}},
		{"below its limit", []ralph.UsageWindow{window("five_hour", 0.79, soon)}, time.Time{}},
		{"hardly below its limit", []ralph.UsageWindow{window("five_hour", 0.795, soon)}, time.Time{}},
		{"behind one that is not", []ralph.UsageWindow{window("seven_day", 0.1, later), window("five_hour", 0.8, soon)}, soon},
		{"at its limit", []ralph.UsageWindow{window("five_hour", 0.8, soon)}, soon},
		{"reset meanwhile", []ralph.UsageWindow{window("five_hour", 1, now.Add(-time.Second))}, time.Time{}},
		{"without a reset time", []ralph.UsageWindow{window("five_hour", 1, time.Time{})}, time.Time{}},
		{"the one that is reset last counts", []ralph.UsageWindow{window("five_hour", 1, soon), window("seven_day", 0.95, later)}, later},
		{"a window of one model is bounded as its family", []ralph.UsageWindow{window("seven_day_opus", 0.95, later)}, later},
		{"a window without a limit", []ralph.UsageWindow{window("overage", 1, later)}, time.Time{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			until, why := loop.UsedUp(tt.windows, limits, now)
			if want := "usage limit: the window five_hour is used to 80%, and limits.usage allows 80%"; tt.name == "at its limit" && why != want {
				t.Errorf("it says %q, want %q", why, want)
			}
			if diff := cmp.Diff(tt.until, until); diff != "" || (why == "") != until.IsZero() {
				t.Errorf("%s%q", diff, why)
			}
		})
	}
}
