package store

import "ralph"

// Totals are sums over all sessions that have ended with one outcome.
type Totals struct {
	Outcome  string
	Sessions int
	CostUSD  float64
	Tokens   ralph.Tokens // without the context window, which is no sum
}

// Totals are the sums by outcome.
func (tx *Tx) Totals() ([]Totals, error) {
	return all(tx, func(row scanner) (t Totals, err error) {
		return t, row.Scan(&t.Outcome, &t.Sessions, &t.CostUSD, &t.Tokens.Input, &t.Tokens.Output, &t.Tokens.CacheRead, &t.Tokens.CacheCreation)
	}, `
		SELECT coalesce(outcome, ''), count(*), sum(cost_usd),
			sum(coalesce(json_extract(tokens, '$.input'), 0)), sum(coalesce(json_extract(tokens, '$.output'), 0)),
			sum(coalesce(json_extract(tokens, '$.cache_read'), 0)), sum(coalesce(json_extract(tokens, '$.cache_creation'), 0))
		FROM sessions WHERE completed_at <> '' GROUP BY coalesce(outcome, '')`)
}

// LastEventTime is when the newest event happened, the zero Time if there is none.
func (tx *Tx) LastEventTime() (t ralph.Time, err error) {
	err = tx.row(`SELECT coalesce((SELECT created FROM events ORDER BY id DESC LIMIT 1), '')`).Scan(&t)
	return t, err
}
