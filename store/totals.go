package store

import (
	"cmp"
	"slices"
	"strconv"

	"ralph"
)

// Totals are sums over all sessions that ended in one way.
type Totals struct {
	Ended    string // one of [ralph.Ended]
	Sessions int
	CostUSD  float64
	Tokens   ralph.Tokens // without the context window, which cannot be summed
}

// Totals sums up the sessions by how they ended. It reads only the index idx_sessions_ended, in its order.
func (tx *Tx) Totals() ([]Totals, error) {
	return all(tx, func(row scanner) (t Totals, err error) {
		return t, row.Scan(&t.Ended, &t.Sessions, &t.CostUSD,
			&t.Tokens.Input, &t.Tokens.Output, &t.Tokens.CacheRead, &t.Tokens.CacheCreation)
	}, `
		SELECT ended, count(*), sum(cost_usd),
			sum(tokens_input), sum(tokens_output),
			sum(tokens_cache_read), sum(tokens_cache_creation)
		FROM sessions WHERE completed_at <> '' GROUP BY ended`)
}

// A Spent is the total of the ended sessions in one group of a query.
type Spent struct {
	Agent, Model, Ended string
	Feature             string // its name; "" for none
	Task                int64
	Title               string // of the task

	Sessions int
	Merged   int // sessions whose work was merged
	CostUSD  float64
	Known    bool         // the cost of each was reported
	Tokens   ralph.Tokens // without the context window
}

// spent has the sums of a query over sessions s; ended selects sessions that ended between $1 and $2, except
// undos, in which no agent works.
const (
	spent = `count(*), sum(CASE WHEN s.accepted = 1 AND EXISTS (SELECT 1 FROM changes c
		WHERE c.session_id = s.id AND c.state = 'merged') THEN 1 ELSE 0 END),
		sum(s.cost_usd), min(s.cost_known)`
	ended = `s.completed_at >= $1 AND s.completed_at < $2 AND s.role <> 'undo'`
)

// Spent sums up the sessions that ended at or after from and before to, by agent, model, ending and the task's feature.
func (tx *Tx) Spent(from, to ralph.Time) ([]Spent, error) {
	return all(tx, func(row scanner) (s Spent, err error) {
		return s, row.Scan(&s.Agent, &s.Model, &s.Ended, &s.Feature, &s.Sessions, &s.Merged, &s.CostUSD, &s.Known,
			&s.Tokens.Input, &s.Tokens.Output, &s.Tokens.CacheRead, &s.Tokens.CacheCreation)
	}, `SELECT s.agent, s.model, s.ended,
			coalesce((SELECT f.name FROM features f WHERE f.id = t.feature_id), ''), `+spent+`,
			sum(s.tokens_input), sum(s.tokens_output), sum(s.tokens_cache_read), sum(s.tokens_cache_creation)
		FROM sessions s JOIN tasks t ON t.id = s.task_id
		WHERE `+ended+` GROUP BY s.agent, s.model, s.ended, t.feature_id`, from, to)
}

// SpentByTask is [Tx.Spent] by task, without tokens: the limit most expensive tasks.
func (tx *Tx) SpentByTask(from, to ralph.Time, limit int) ([]Spent, error) {
	return all(tx, func(row scanner) (s Spent, err error) {
		return s, row.Scan(&s.Task, &s.Title, &s.Sessions, &s.Merged, &s.CostUSD, &s.Known)
	}, `SELECT s.task_id, max(t.title), `+spent+`
		FROM (SELECT s.task_id FROM sessions s WHERE `+ended+`
			GROUP BY s.task_id ORDER BY sum(s.cost_usd) DESC, s.task_id LIMIT `+strconv.Itoa(limit)+`) most
		JOIN sessions s ON s.task_id = most.task_id JOIN tasks t ON t.id = s.task_id
		WHERE `+ended+` GROUP BY s.task_id ORDER BY sum(s.cost_usd) DESC, s.task_id`, from, to)
}

// SpentOn returns the cost (USD) of the sessions of some tasks, without tasks that had none.
func (tx *Tx) SpentOn(tasks []int64) (map[int64]float64, error) {
	if len(tasks) == 0 {
		return map[int64]float64{}, nil
	}
	var by filter
	in(&by, "s.task_id", tasks)
	return byKey[int64, float64](tx,
		`SELECT s.task_id, sum(s.cost_usd) FROM sessions s`+by.where()+` GROUP BY s.task_id`, by.args...)
}

// Flaky returns the tests that were flaky in checks of sessions that ended since a time, the most frequent first.
func (tx *Tx) Flaky(since ralph.Time) ([]ralph.Flaky, error) {
	type checked struct {
		checks []ralph.Check
		ended  ralph.Time
	}
	sessions, err := all(tx, func(row scanner) (c checked, err error) {
		return c, row.Scan(column(&c.checks), &c.ended)
	}, `SELECT s.verify, s.completed_at FROM sessions s
		WHERE s.completed_at >= $1 AND s.verify LIKE '%"flaky":%' ORDER BY s.completed_at`, since)
	list := []ralph.Flaky{}
	for _, s := range sessions {
		for _, c := range s.checks {
			for _, test := range c.Flaky {
				i := slices.IndexFunc(list, func(f ralph.Flaky) bool { return f.Test == test && f.Command == c.Command })
				if i < 0 {
					i, list = len(list), append(list, ralph.Flaky{Test: test, Command: c.Command})
				}
				list[i].Times, list[i].Last = list[i].Times+1, s.ended
			}
		}
	}
	slices.SortStableFunc(list, func(a, b ralph.Flaky) int {
		return cmp.Or(cmp.Compare(b.Times, a.Times), cmp.Compare(a.Name(), b.Name()))
	})
	return list, err
}
