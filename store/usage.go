package store

import (
	"time"

	"ralph"
)

// CostSince is what sessions that ended since a moment were charged, over all runs.
func (tx *Tx) CostSince(since time.Time) (usd float64, err error) {
	return value[float64](tx, `
		SELECT coalesce(sum(cost_usd), 0.0) FROM sessions WHERE completed_at >= $1`, ralph.At(since))
}

// UsageWindows are an account's usage windows as the agent told of them last.
func (tx *Tx) UsageWindows() ([]ralph.UsageWindow, error) {
	return all(tx, func(row scanner) (w ralph.UsageWindow, err error) {
		return w, row.Scan(&w.Name, &w.Utilization, &w.ResetsAt, &w.Seen)
	}, `SELECT name, utilization, resets_at, seen FROM usage_windows ORDER BY name`)
}

// KeepUsage notes what the agent told of a usage window.
func (tx *Tx) KeepUsage(w ralph.UsageWindow) error {
	return tx.put("usage_windows", "name", cells{
		"name": w.Name, "utilization": w.Utilization, "resets_at": w.ResetsAt, "seen": tx.now,
	})
}
