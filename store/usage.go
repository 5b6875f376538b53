package store

import (
	"time"

	"ralph"
)

// CostSince sums the cost of the sessions, of all runs, that ended since a time.
func (tx *Tx) CostSince(since time.Time) (usd float64, err error) {
	return value[float64](tx, `
		SELECT coalesce(sum(cost_usd), 0.0) FROM sessions WHERE completed_at >= $1`, ralph.At(since))
}

// UsageWindows lists the usage windows of agents' accounts, as last reported.
func (tx *Tx) UsageWindows() ([]ralph.UsageWindow, error) {
	return all(tx, func(row scanner) (w ralph.UsageWindow, err error) {
		return w, row.Scan(&w.Agent, &w.Name, &w.Utilization, &w.ResetsAt, &w.Seen)
	}, `SELECT agent, name, utilization, resets_at, seen FROM usage_windows ORDER BY agent, name`)
}

// PutUsageWindow stores a usage window that an agent reported.
func (tx *Tx) PutUsageWindow(w ralph.UsageWindow) error {
	return tx.put("usage_windows", "agent, name", cells{
		"agent": w.Agent, "name": w.Name, "utilization": w.Utilization, "resets_at": w.ResetsAt, "seen": tx.Now(),
	})
}

// LikelyCost returns what one more session on each of some tasks is likely to cost together (USD): for each task the
// mean of its own sessions so far.
func (tx *Tx) LikelyCost(tasks ...int64) (usd float64, err error) {
	for _, id := range tasks {
		mean, err := value[float64](tx, `
			SELECT coalesce(avg(cost_usd), 0.0) FROM sessions WHERE task_id = $1 AND completed_at <> '' AND role = 'work'`, id)
		if err != nil {
			return 0, err
		}
		usd += mean
	}
	return usd, nil
}
