package store

import "ralph"

// Totals are sums over all ended sessions with one outcome.
type Totals struct {
	Outcome  string
	Sessions int
	CostUSD  float64
	Tokens   ralph.Tokens // without the context window, which cannot be summed
}

// Totals returns the sums by outcome.
func (tx *Tx) Totals() ([]Totals, error) {
	return all(tx, func(row scanner) (t Totals, err error) {
		return t, row.Scan(&t.Outcome, &t.Sessions, &t.CostUSD,
			&t.Tokens.Input, &t.Tokens.Output, &t.Tokens.CacheRead, &t.Tokens.CacheCreation)
	}, `
		SELECT coalesce(outcome, ''), count(*), sum(cost_usd),
			sum(tokens_input), sum(tokens_output),
			sum(tokens_cache_read), sum(tokens_cache_creation)
		FROM sessions WHERE completed_at <> '' GROUP BY coalesce(outcome, '')`)
}

// Spent is the consumption of one ended session.
type Spent struct {
	At      ralph.Time // when it ended
	Outcome string
	CostUSD float64
	Tokens  ralph.Tokens // without the context window
}

// SpentSince lists the consumption of the sessions that ended since a moment, oldest first.
func (tx *Tx) SpentSince(since ralph.Time) ([]Spent, error) {
	return all(tx, func(row scanner) (s Spent, err error) {
		return s, row.Scan(&s.At, &s.Outcome, &s.CostUSD,
			&s.Tokens.Input, &s.Tokens.Output, &s.Tokens.CacheRead, &s.Tokens.CacheCreation)
	}, `
		SELECT completed_at, coalesce(outcome, ''), cost_usd,
			tokens_input, tokens_output,
			tokens_cache_read, tokens_cache_creation
		FROM sessions WHERE completed_at >= $1 AND completed_at <> '' ORDER BY completed_at`, since)
}

// Attempts counts tasks by their number of attempts, without those that were never begun.
func (tx *Tx) Attempts() (map[int]int, error) {
	return counts[int](tx, `SELECT attempts, count(*) FROM tasks WHERE attempts > 0 GROUP BY attempts`)
}
