package store

import (
	"time"

	"ralph"
)

// CostSince is what sessions that ended since a moment were charged, over all runs.
func (tx *Tx) CostSince(since time.Time) (usd float64, err error) {
	err = tx.row(`SELECT coalesce(sum(cost_usd), 0.0) FROM sessions WHERE completed_at >= $1`, ralph.At(since).String()).Scan(&usd)
	return usd, err
}

// UsageWindows are an account's usage windows as the agent told of them last.
func (tx *Tx) UsageWindows() ([]ralph.UsageWindow, error) {
	return all(tx, func(row scanner) (w ralph.UsageWindow, err error) {
		err = row.Scan(&w.Name, &w.Utilization, &w.ResetsAt, &w.Seen)
		return w, err
	}, `SELECT name, utilization, resets_at, seen FROM usage_windows ORDER BY name`)
}

// KeepUsage notes what the agent told of a usage window.
func (tx *Tx) KeepUsage(w ralph.UsageWindow) error {
	_, err := tx.exec(`
		INSERT INTO usage_windows (name, utilization, resets_at, seen) VALUES ($1, $2, $3, $4)
		ON CONFLICT (name) DO UPDATE SET utilization = excluded.utilization, resets_at = excluded.resets_at, seen = excluded.seen`,
		w.Name, w.Utilization, w.ResetsAt.String(), tx.now.String())
	return err
}
