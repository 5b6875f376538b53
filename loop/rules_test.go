package loop

import (
	"testing"
	"time"

	"ralph"
)

func TestRequestsEndWorkNowOrSoon(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		control   string
		grace     time.Duration
		now, soon bool
	}{
		{ralph.ControlNone, 0, false, false},
		{ralph.ControlNone, time.Minute, false, false},
		{ralph.ControlPause, 0, false, false},
		{ralph.ControlPause, time.Minute, false, false},
		{ralph.ControlStop, 0, true, true},
		{ralph.ControlStop, time.Minute, false, true},
		{ralph.ControlStopNow, 0, true, false},
		{ralph.ControlStopNow, time.Minute, true, false},
	} {
		if now, soon := obeyed(tt.control, tt.grace); now != tt.now || soon != tt.soon {
			t.Errorf("%q with a grace of %s: now %t, soon %t", tt.control, tt.grace, now, soon)
		}
	}
}

func TestLimitsOfARun(t *testing.T) {
	t.Parallel()
	limits := ralph.Limits{MaxSessions: 3, MaxSeconds: 60, MaxCostUSD: 5, MaxDayCostUSD: 8, MaxMonthCostUSD: 9, StagnantMaximum: 2}
	for want, s := range map[string]spending{
		"": {sessions: 2, stagnant: 1, elapsed: 59 * time.Second, run: 4.99, day: 7.99, month: 8.99},
		"the limit of 3 sessions per run is reached":                                                 {sessions: 3},
		"the limit of 1m0s per run is reached":                                                       {elapsed: time.Minute},
		"the limit of $5.00 per run is reached ($5.20 spent)":                                        {run: 5.2},
		"the limit of $5.00 per run is reached ($5.00 spent)":                                        {run: 5},
		"the limit of $8.00 per day is reached ($8.00 spent since midnight, over all runs)":          {day: 8},
		"the limit of $9.00 per month is reached ($9.00 spent since the month began, over all runs)": {month: 9},
		"the sessions of 2 tasks in a row changed nothing":                                           {stagnant: 2},
	} {
		s.per = "run"
		if got := reached(limits, s); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
