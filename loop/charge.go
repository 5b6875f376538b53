package loop

import "ralph/loop/agent"

// charge is what a session is charged, and whether that is all that it cost: what
// its agent reported; else what the streamed usage comes to; else, where it may have
// called its model, the session's own limit, for an unknown cost is never taken for
// zero (decision 18). An agent that never came that far cost nothing.
func charge(r agent.Report, limit float64) (usd float64, known bool) {
	switch {
	case r.CostKnown:
		return r.CostUSD, true
	case r.CostUSD > 0:
		return r.CostUSD, false
	case !r.Began:
		return 0, true
	}
	return limit, false
}
