package order

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ralph"
	"ralph/store"
)

// TestTheAllowanceOfASession: a session alone may spend everything that is left. Beside others it gets its share, at
// least the minimum, and nothing that the others may still spend.
func TestTheAllowanceOfASession(t *testing.T) {
	t.Parallel()
	limits := ralph.Limits{MaxCostUSD: 10, MaxDayCostUSD: 20, MaxMonthCostUSD: 20, SessionCostUSD: 4, SessionMinUSD: 0.5}
	for _, tt := range []struct {
		name  string
		spent store.Spending
		width int
		want  float64
	}{
		{"alone its own limit", store.Spending{}, 1, 4},
		{"alone what the run leaves", store.Spending{USD: 8, DayUSD: 8}, 1, 2},
		{"alone what the day leaves", store.Spending{DayUSD: 19.75}, 1, 0.25},
		{"its share", store.Spending{}, 4, 2.5},
		{"of what is not reserved", store.Spending{Open: 1, Reserved: 4, DayReserved: 4}, 4, 2},
		{"nor by other runs", store.Spending{Open: 1, Reserved: 4, DayReserved: 17}, 4, 1},
		{"at least the least", store.Spending{Open: 1, USD: 9, DayUSD: 9, Reserved: 0.5, DayReserved: 0.5}, 4, 0.5},
		{"the last gets all", store.Spending{Open: 3, USD: 1, Reserved: 6, DayReserved: 6}, 4, 3},
		{"the first of several gets the rest", store.Spending{USD: 9.75}, 4, 0.25},
		{"too little beside others", store.Spending{Open: 1, USD: 9, Reserved: 0.6, DayReserved: 0.6}, 4, 0},
	} {
		got, why := Allowance(limits, tt.spent, tt.width)
		if math.Abs(got-tt.want) > 1e-9 || (why == "") != (tt.want > 0) {
			t.Errorf("%s: $%g (%s), want $%g", tt.name, got, why, tt.want)
		}
	}
	for reserved, left := range map[float64]string{0.75: "all but $0.25,", 3: "all but $0.00,"} {
		if _, why := Allowance(limits, store.Spending{Open: 1, USD: 9, Reserved: reserved}, 2); !strings.Contains(why, left) {
			t.Errorf("of $1 with $%g held: %s", reserved, why)
		}
	}
	cheap := limits
	cheap.SessionCostUSD = 0.2
	if got, why := Allowance(cheap, store.Spending{Open: 1, USD: 9.7}, 2); got != 0.2 || why != "" {
		t.Errorf("of sessions that may spend $0.20 one more gets $%g (%s)", got, why)
	}
}

func TestUsageWindows(t *testing.T) {
	t.Parallel()
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
			until, why := usedUp(tt.windows, limits, now)
			if want := "usage limit: the window five_hour is used to 80%, and limits.usage allows 80%"; tt.name == "at its limit" && why != want {
				t.Errorf("it says %q, want %q", why, want)
			}
			if diff := cmp.Diff(tt.until, until); diff != "" || (why == "") != until.IsZero() {
				t.Errorf("%s%q", diff, why)
			}
		})
	}
}
