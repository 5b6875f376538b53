package loop_test

import (
	"testing"
	"time"

	"ralph"
	"ralph/loop"
)

func TestLimitsOfARun(t *testing.T) {
	t.Parallel()
	limits := ralph.Limits{MaxSessions: 3, MaxSeconds: 60, MaxCostUSD: 5, MaxDayCostUSD: 8, MaxMonthCostUSD: 8, StagnantMaximum: 2, SessionCostUSD: 4}
	for want, s := range map[string]loop.Spending{
		"": loop.Spend(2, 1, 59*time.Second, 4.99, 7.99),
		"the limit of 3 sessions per run is reached":                                        loop.Spend(3, 0, 0, 0, 0),
		"the limit of 1m0s per run is reached":                                              loop.Spend(0, 0, time.Minute, 0, 0),
		"the limit of $5.00 per run is reached ($5.20 spent)":                               loop.Spend(0, 0, 0, 5.2, 0),
		"the limit of $5.00 per run is reached ($5.00 spent)":                               loop.Spend(0, 0, 0, 5, 0),
		"the limit of $8.00 per day is reached ($8.00 spent since midnight, over all runs)": loop.Spend(0, 0, 0, 0, 8),
		"the sessions of 2 tasks in a row changed nothing":                                  loop.Spend(0, 2, 0, 0, 0),
	} {
		if got := loop.Reached(limits, s); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
