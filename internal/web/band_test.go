package web_test

import (
	"slices"
	"strings"
	"testing"

	"ralph"
	"ralph/internal/web"
	"ralph/store"
)

// TestALimitThatIsAboutToBeReachedIsSaid, before it stops anything.
func TestALimitThatIsAboutToBeReachedIsSaid(t *testing.T) {
	t.Parallel()
	limits := ralph.Limits{MaxCostUSD: 20, MaxDayCostUSD: 40, MaxSessions: 100, MaxSeconds: 3600}
	for name, tt := range map[string]struct {
		run             ralph.Run
		elapsed         float64
		today, spending float64
		want            []string
	}{
		"nothing":                     {},
		"no limit":                    {run: ralph.Run{CostUSD: 100, Sessions: 1000, Limits: ralph.Limits{}}, elapsed: 1e6, today: 1000},
		"money":                       {run: ralph.Run{CostUSD: 18, Limits: limits}, want: []string{"The run has spent $18.00 of its $20.00"}},
		"a little less":               {run: ralph.Run{CostUSD: 17.9, Limits: limits}},
		"with what is spent just now": {run: ralph.Run{CostUSD: 17, Limits: limits}, spending: 1.5, want: []string{"The run has spent $18.50 of its $20.00"}},
		"the day's":                   {run: ralph.Run{Limits: limits}, today: 39, want: []string{"$39.00 of the day’s $40.00 are spent"}},
		"sessions":                    {run: ralph.Run{Sessions: 95, Limits: limits}, want: []string{"The run has begun 95 of its 100 sessions"}},
		"time":                        {run: ralph.Run{Limits: limits}, elapsed: 3500, want: []string{"The run has taken 58 min 20 s of its 1 h"}},
	} {
		if got := web.NearLimits(tt.run, tt.elapsed, tt.today, tt.spending); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestMoneyThatHoldsSessionsBackIsSaid with its remedies, and only while the run wants another session.
func TestMoneyThatHoldsSessionsBackIsSaid(t *testing.T) {
	t.Parallel()
	limits := ralph.Limits{MaxCostUSD: 30, MaxDayCostUSD: 100, MaxMonthCostUSD: 400, SessionCostUSD: 10, SessionMinUSD: 1, Parallel: 4}
	spent := store.Spending{Open: 2, USD: 9.56, DayUSD: 9.56, MonthUSD: 9.56, Reserved: 20, DayReserved: 20}
	change := func(f func(l *ralph.Limits, s *store.Spending)) (ralph.Limits, store.Spending) {
		l, s := limits, spent
		f(&l, &s)
		return l, s
	}
	for name, tt := range map[string]struct {
		change       func(l *ralph.Limits, s *store.Spending)
		idle         string
		said, remedy string
	}{
		"of the run": {
			idle: "waits", said: "Money holds back 2 of 4 sessions: $20.00 of $30.00 is reserved by 2 sessions in progress",
			remedy: "raise the limit: `ralph run --max-cost 50`, or reserve less for each session: `ralph run --session-cost 5.11`",
		},
		"of the day, with those of other runs": {
			change: func(_ *ralph.Limits, s *store.Spending) { s.USD, s.DayReserved, s.DayUSD = 0, 50, 49.5 },
			idle:   "waits", said: "$50.00 of $100.00 is reserved by 2 sessions", remedy: "`ralph run --max-cost-per-day 120`",
		},
		"of the month": {
			change: func(l *ralph.Limits, s *store.Spending) { l.MaxCostUSD, s.MonthUSD = 400, 379.5 },
			idle:   "waits", said: "$20.00 of $400.00", remedy: "`limits.max_cost_per_month_usd: 420` in ralph.yaml",
		},
		"one session":         {change: func(_ *ralph.Limits, s *store.Spending) { s.Open = 1 }, idle: "waits", said: "holds back 3 of 4 sessions", remedy: "ralph run"},
		"nothing is to begin": {},
		"all work":            {change: func(_ *ralph.Limits, s *store.Spending) { s.Open = 4 }, idle: "waits"},
		"enough is left":      {change: func(_ *ralph.Limits, s *store.Spending) { s.USD = 5 }, idle: "waits"},
		"none works":          {change: func(_ *ralph.Limits, s *store.Spending) { s.Open = 0 }, idle: "waits"},
	} {
		l, s := limits, spent
		if tt.change != nil {
			l, s = change(tt.change)
		}
		said, remedy := web.MoneyHolds(ralph.Run{Limits: l, Idle: tt.idle}, s)
		if (said == "") != (tt.said == "") || !strings.Contains(said, tt.said) || !strings.Contains(remedy, tt.remedy) {
			t.Errorf("%s: %q, %q", name, said, remedy)
		}
	}
}

// TestAStoppedQueueStandsAboveEveryPage, with its remedy, and in the title. It is decided on only there.
func TestAStoppedQueueStandsAboveEveryPage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.write(func(tx *store.Tx) error { return tx.PauseMerging("the suite is red on main") })
	b := s.browser().signIn()
	for _, path := range []string{"/", "/tasks", "/inbox"} {
		has(t, b.get(path), "<title>(1) ralph", "Merging is paused: the suite is red on main", "Resume merging")
	}
	b.done("/merge/resume")
	if page := b.get("/"); strings.Contains(page, "(1) ralph") || strings.Contains(page, "the suite is red") {
		t.Error("it still stands there")
	}
}

// TestASessionInProgressShowsItsActivity on the first page and on that of its task: its last step, its clock and its
// limit.
func TestASessionInProgressShowsItsActivity(t *testing.T) {
	t.Parallel()
	s, _ := newNight(t)
	b := s.browser().signIn()
	for _, path := range []string{"/", "/tasks/1"} {
		has(t, b.get(path), "The tests pass; I look at the edge cases now.", `<span data-clock="10`, "$4.96")
	}
}
