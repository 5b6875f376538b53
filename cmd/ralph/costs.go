package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"ralph"
	"ralph/internal/show"
	"ralph/internal/term"
	"ralph/internal/text"
	"ralph/loop/order"
	"ralph/store"
)

// A cost is a row of `ralph report --by`.
type cost struct {
	Of       string  `json:"of"` // the model, agent, day or feature; "" for none
	Sessions int     `json:"sessions"`
	Merged   int     `json:"merged"` // sessions whose work was merged
	CostUSD  float64 `json:"cost_usd"`
	Known    bool    `json:"cost_known"`
	Tokens   int64   `json:"tokens"`
}

// reportCosts prints the costs since a time (zero: all), or of a run, by model, agent, day or feature.
func (a *app) reportCosts(ctx context.Context, by string, from time.Time, run int64) error {
	if err := oneOf("--by", by, "model", "agent", "day", "feature"); err != nil {
		return err
	}
	list, err := read(ctx, a, func(tx *store.Tx) ([]cost, error) {
		to := time.Now().Add(time.Second)
		if run != 0 {
			r, err := tx.Run(run)
			if err != nil {
				return nil, err
			}
			if from = r.StartedAt.Time; !r.EndedAt.IsZero() {
				to = r.EndedAt.Add(time.Second)
			}
		}
		if by == "day" {
			return costsByDay(tx, from, to)
		}
		spent, err := tx.Spent(ralph.At(from), ralph.At(to))
		return sumUp(spent, map[string]func(store.Spent) string{
			"model":   func(s store.Spent) string { return s.Model },
			"agent":   func(s store.Spent) string { return s.Agent },
			"feature": func(s store.Spent) string { return s.Feature },
		}[by]), err
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(list, func(x, y cost) int {
		if by == "day" {
			return cmp.Compare(x.Of, y.Of)
		}
		return cmp.Compare(y.CostUSD, x.CostUSD)
	})
	return a.print(append([]cost{}, list...), func(w io.Writer) { costTable(w, a.screen(), by, list) })
}

// costsByDay sums up the costs of each day since a time (zero: the last 30 days). It omits days without a session.
func costsByDay(tx *store.Tx, from, to time.Time) (list []cost, err error) {
	if from.IsZero() {
		from = to.AddDate(0, 0, -30)
	}
	for day := order.Midnight(from.Local()); day.Before(to); day = day.AddDate(0, 0, 1) {
		spent, err := tx.Spent(ralph.At(day), ralph.At(day.AddDate(0, 0, 1)))
		if err != nil {
			return nil, err
		}
		list = append(list, sumUp(spent, func(store.Spent) string { return day.Format(time.DateOnly) })...)
	}
	return list, nil
}

// sumUp adds up the costs with the same name.
func sumUp(spent []store.Spent, name func(store.Spent) string) (list []cost) {
	for _, s := range spent {
		i := slices.IndexFunc(list, func(c cost) bool { return c.Of == name(s) })
		if i < 0 {
			i, list = len(list), append(list, cost{Of: name(s), Known: true})
		}
		c := &list[i]
		c.Sessions, c.Merged, c.CostUSD = c.Sessions+s.Sessions, c.Merged+s.Merged, c.CostUSD+s.CostUSD
		c.Known, c.Tokens = c.Known && s.Known, c.Tokens+s.Tokens.Sum()
	}
	return list
}

// costTable writes costs with their sum.
func costTable(w io.Writer, s term.Screen, by string, list []cost) {
	t := term.Table{Head: []string{by, "sessions", "merged", "tokens", "cost"}, Right: []int{1, 2, 3, 4}}
	all := cost{Of: "together", Known: true}
	row := func(c cost) {
		t.Rows = append(t.Rows, []string{
			text.Line(cmp.Or(c.Of, "none"), 60), strconv.Itoa(c.Sessions), strconv.Itoa(c.Merged),
			show.Thousands(c.Tokens), text.Cost(c.CostUSD, c.Known, c.Tokens),
		})
	}
	for _, c := range list {
		row(c)
		all.Sessions, all.Merged, all.CostUSD = all.Sessions+c.Sessions, all.Merged+c.Merged, all.CostUSD+c.CostUSD
		all.Known, all.Tokens = all.Known && c.Known, all.Tokens+c.Tokens
	}
	if len(list) == 0 {
		fmt.Fprintln(w, "no session ended in that time")
		return
	}
	row(all)
	s.Table(w, t)
}
