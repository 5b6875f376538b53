package order

import (
	"fmt"
	"time"

	"ralph"
	"ralph/loop/agent"
	"ralph/store"
)

// Worth is the value of a million tokens without a known price; see [store.Tx.Spending].
var Worth = [4]float64{agent.Dearest.Input, agent.Dearest.Output, agent.Dearest.Cached, agent.Dearest.Write}

// Since returns since when spending counts at a time; run is when the run's limits begin to.
func Since(run, now time.Time) store.Since {
	day := Midnight(now)
	return store.Since{Run: run, Day: day, Month: day.AddDate(0, 0, 1-day.Day())}
}

// Allowance returns the budget of the next session: its own limit, or its share of the rest of the run and the day
// once the sessions in progress have spent their maximum. Beside others, a session does not begin with less than the
// minimum; why then gives the reason.
func Allowance(l ralph.Limits, s store.Spending, width int) (usd float64, why string) {
	left, _ := Left(l, s)
	least := min(l.SessionMinUSD, l.SessionCostUSD)
	if s.Open > 0 && left < least {
		return 0, fmt.Sprintf("sessions in progress may spend all but $%.2f, and another one needs "+
			"at least $%.2f", max(left, 0), least)
	}
	share := max(left/float64(max(width-s.Open, 1)), least)
	return min(l.SessionCostUSD, share, left), ""
}

// Left returns the part of the budget that no session in progress may spend (USD), and the setting of the limit that
// leaves the least.
func Left(l ralph.Limits, s store.Spending) (usd float64, setting string) {
	usd, setting = l.MaxCostUSD-s.USD-s.Reserved, "limits.max_cost_usd"
	if day := l.MaxDayCostUSD - s.DayUSD - s.DayReserved; day < usd {
		usd, setting = day, "limits.max_cost_per_day_usd"
	}
	if month := l.MaxMonthCostUSD - s.MonthUSD - s.DayReserved; month < usd {
		usd, setting = month, "limits.max_cost_per_month_usd"
	}
	return usd, setting
}

// Midnight returns the start of the day in the local time zone.
func Midnight(now time.Time) time.Time {
	y, m, d := now.Date()
	return time.Date(y, m, d, 0, 0, 0, 0, now.Location())
}
