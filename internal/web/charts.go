package web

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"ralph"
	"ralph/internal/text"
	"ralph/store"
)

// spans are the periods that charts can show, in days.
var spans = []int{7, 30, 90}

// stateSessions is the number of sessions that the times in states are computed from.
const stateSessions = 500

// A chartsView is the page of charts.
type chartsView struct {
	Days     int
	Spans    []int
	Cost     chart
	Tokens   chart
	Outcomes chart
	Attempts chart
	States   []stateRow
	Sessions int // used for States
	Windows  []window
	Total    float64 // USD in the period
}

// A stateRow is the time in a state and its share.
type stateRow struct {
	ralph.StateTime
	Percent int
}

func (a *app) charts(tx *store.Tx, r *http.Request) (view, error) {
	v := chartsView{Days: 30, Spans: spans}
	if n, err := strconv.Atoi(r.URL.Query().Get("days")); err == nil && slices.Contains(spans, n) {
		v.Days = n
	}
	y, m, d := tx.Now().Local().Date()
	first := time.Date(y, m, d-v.Days+1, 0, 0, 0, 0, time.Local)
	spent, err := tx.SpentSince(ralph.At(first))
	if err != nil {
		return view{}, err
	}
	v.byDay(spent, first)
	if most := a.Limits.MaxDayCostUSD; most > 0 {
		v.Cost.limit(most, text.Money(most)+" a day")
	}
	attempts, err := tx.Attempts()
	if err != nil {
		return view{}, err
	}
	v.Attempts = newChart("Attempts per task", []legendEntry{{"blue", "tasks"}}, byAttempts(attempts), whole)
	if err := v.addStates(tx); err != nil {
		return view{}, err
	}
	v.Windows, err = a.windows(tx, a.Limits)
	return view{title: "Charts", name: "charts", nav: "/charts", live: true, body: v}, err
}

// byDay draws the consumption of sessions by the day on which they ended.
func (v *chartsView) byDay(spent []store.Spent, first time.Time) {
	outcomes := []string{ralph.OutcomeSuccess, ralph.OutcomeFailure, ralph.OutcomeTimeout}
	cost, tokens, ended := make([]datum, v.Days), make([]datum, v.Days), make([]datum, v.Days)
	at := map[string]int{}
	for i := range v.Days {
		day := first.AddDate(0, 0, i)
		name, label := day.Format(time.DateOnly), day.Format("Jan 2")
		at[name] = i
		cost[i], tokens[i] = datum{name, label, make([]float64, 1)}, datum{name, label, make([]float64, 3)}
		ended[i] = datum{name, label, make([]float64, len(outcomes))}
	}
	for _, s := range spent {
		i, ok := at[s.At.Local().Format(time.DateOnly)]
		if !ok {
			continue
		}
		cost[i].Values[0] += s.CostUSD
		v.Total += s.CostUSD
		tokens[i].Values[0] += float64(s.Tokens.Output)
		tokens[i].Values[1] += float64(s.Tokens.Input + s.Tokens.CacheCreation)
		tokens[i].Values[2] += float64(s.Tokens.CacheRead)
		if k := slices.Index(outcomes, s.Outcome); k >= 0 {
			ended[i].Values[k]++
		}
	}
	v.Cost = newChart("Cost per day", []legendEntry{{"blue", "cost"}}, cost, text.Money)
	v.Tokens = newChart("Tokens per day",
		[]legendEntry{{"green", "output"}, {"blue", "input"}, {"gray", "read from the cache"}}, tokens, short)
	v.Outcomes = newChart("Sessions per day, by outcome",
		[]legendEntry{{"green", "success"}, {"red", "failure"}, {"orange", "timeout"}}, ended, whole)
}

// manyAttempts is the number from which attempts are counted together.
const manyAttempts = 10

func byAttempts(counts map[int]int) (data []datum) {
	if len(counts) == 0 {
		return nil
	}
	highest := min(manyAttempts, slices.Max(slices.Collect(maps.Keys(counts))))
	for i := 1; i <= highest; i++ {
		name := strconv.Itoa(i)
		if i == manyAttempts {
			name += " or more"
		}
		data = append(data, datum{name, strconv.Itoa(i), make([]float64, 1)})
	}
	for n, tasks := range counts {
		data[min(n, highest)-1].Values[0] += float64(tasks)
	}
	return data
}

// addStates adds how long the latest sessions were in each state.
func (v *chartsView) addStates(tx *store.Tx) error {
	list, err := tx.Sessions(store.SessionFilter{Limit: stateSessions})
	if err != nil {
		return err
	}
	v.Sessions = len(list)
	all := 0.0
	times := ralph.TimeInStates(list, tx.Now())
	for _, s := range times {
		all += s.Seconds
	}
	for _, s := range times {
		v.States = append(v.States, stateRow{s, percent(s.Seconds, all)})
	}
	return nil
}

// whole formats a whole number.
func whole(n float64) string { return number(int64(math.Round(n))) }

// short formats a large number in few characters.
func short(n float64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.3gG", n/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.3gM", n/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.3gk", n/1e3)
	}
	return whole(n)
}
