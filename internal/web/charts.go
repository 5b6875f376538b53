package web

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"ralph"
	"ralph/internal/text"
	"ralph/store"
)

// A stretch is the time that one column of a chart covers.
type stretch struct {
	Name string // "day"; also in addresses
	back func(from time.Time, n int) time.Time
}

// stretches are the time spans of charts.
var stretches = []stretch{
	{"day", func(from time.Time, n int) time.Time { return from.AddDate(0, 0, -n) }},
	{"week", func(from time.Time, n int) time.Time { return from.AddDate(0, 0, -7*n) }},
	{"month", func(from time.Time, n int) time.Time { return from.AddDate(0, -n, 0) }},
}

const (
	// columns is the maximum number of columns of a chart: on a phone each is still wide enough for
	// a finger.
	columns = 12
	// partRows is the maximum number of rows of a cost table.
	partRows = 10
	// stateSessions is the number of sessions that the times in states are computed from.
	stateSessions = 200
)

// starts returns the moments at which the last columns begin, and the end of the last one, in now's zone. Weeks begin
// on Mondays.
func (s stretch) starts(now time.Time) (list []time.Time) {
	y, m, d := now.Date()
	last := time.Date(y, m, d, 0, 0, 0, 0, now.Location())
	switch s.Name {
	case "week":
		last = last.AddDate(0, 0, -(int(last.Weekday())+6)%7)
	case "month":
		last = last.AddDate(0, 0, 1-d)
	}
	for n := columns - 1; n >= -1; n-- {
		list = append(list, s.back(last, n))
	}
	return list
}

// A chartsView is the page of charts.
type chartsView struct {
	By         string // the length of a column
	Stretches  []stretch
	From       time.Time // the first day with work; zero for none
	All        string    // the address of all sessions of the chart
	Sessions   int
	Merged     int
	CostUSD    float64
	InProgress float64 // USD that sessions in progress have spent, about
	Charts     []chart
	Parts      []costs
	States     []stateRow
	Of         int // number of sessions behind States
}

// PerMerged returns the cost of a merged task, in words; "" if none was merged.
func (v chartsView) PerMerged() string { return perMerged(v.CostUSD, v.Merged) }

// costs divides the cost by one attribute.
type costs struct {
	Of   string // "model"
	Rows []costRow
}

// A costRow is one part of the cost.
type costRow struct {
	Name, To string
	store.Spent
	Width float64 // width of its bar, in thousandths of the widest
}

// Cost returns the cost in words.
func (r costRow) Cost() string { return text.Cost(r.CostUSD, r.Known, r.Tokens.Sum()) }

// PerMerged returns the cost of a merged task, in words; "" if none was merged.
func (r costRow) PerMerged() string { return perMerged(r.CostUSD, r.Merged) }

func perMerged(usd float64, merged int) string {
	if merged == 0 {
		return ""
	}
	return text.Money(usd / float64(merged))
}

// A stateRow is the time in a state and its share.
type stateRow struct {
	ralph.StateTime
	Percent int
}

func (a *app) charts(tx *store.Tx, r *http.Request) (view, error) {
	by := stretches[0]
	for _, s := range stretches {
		if s.Name == r.URL.Query().Get("by") {
			by = s
		}
	}
	v := chartsView{By: by.Name, Stretches: stretches}
	var err error
	if v.InProgress, err = a.spending(tx); err != nil {
		return view{}, err
	}
	starts := by.starts(tx.Now().Local())
	var spent [][]store.Spent
	for i := range columns {
		list, err := tx.Spent(ralph.At(starts[i]), ralph.At(starts[i+1]))
		if err != nil {
			return view{}, err
		}
		spent = append(spent, list)
	}
	for len(spent) > 0 && len(spent[0]) == 0 { // the scale begins with work
		spent, starts = spent[1:], starts[1:]
	}
	if len(spent) > 0 {
		if err := v.add(tx, spent, starts, a.Limits.MaxDayCostUSD); err != nil {
			return view{}, err
		}
	}
	err = v.addStates(tx)
	return view{title: "Charts", name: "charts", nav: "/charts", live: true, body: v}, err
}

// add adds the spending in columns that begin at the starts; the last start is the end. maxDayUSD is the limit of a
// day, 0 for none.
func (v *chartsView) add(tx *store.Tx, spent [][]store.Spent, starts []time.Time, maxDayUSD float64) (err error) {
	from, to := starts[0], starts[len(starts)-1]
	v.From, v.All = from, sessionsIn(from, to)
	v.draw(spent, starts)
	if maxDayUSD > 0 && v.By == "day" {
		v.Charts[0].limit(maxDayUSD, text.Money(maxDayUSD)+" a day")
	}
	all := slices.Concat(spent...)
	v.Parts = []costs{
		{"model", summed(all, func(s store.Spent) (string, string) {
			return cmp.Or(s.Model, "not known"), sessionsIn(from, to, "model", s.Model)
		})},
		{"agent", summed(all, func(s store.Spent) (string, string) {
			return cmp.Or(s.Agent, "not known"), sessionsIn(from, to, "agent", s.Agent)
		})},
	}
	tasks, err := tx.SpentByTask(ralph.At(from), ralph.At(to), partRows)
	v.Parts = append(v.Parts, costs{"feature", summed(all, func(s store.Spent) (string, string) {
		return cmp.Or(s.Feature, "of no feature"), sessionsIn(from, to, "feature", s.Feature)
	})}, costs{"task", summed(tasks, func(s store.Spent) (string, string) {
		return fmt.Sprintf("TASK-%d %s", s.Task, s.Title), sessionsIn(from, to, "task", strconv.FormatInt(s.Task, 10))
	})})
	return err
}

// draw draws the columns and adds them up.
func (v *chartsView) draw(spent [][]store.Spent, starts []time.Time) {
	var cost, merged, ended, tokens []datum
	for i, list := range spent {
		from, to := starts[i], starts[i+1]
		at := func(parts int) datum {
			return datum{columnName(v.By, from), columnLabel(v.By, from), sessionsIn(from, to), make([]float64, parts)}
		}
		c, m, e, t := at(1), at(1), at(len(ralph.Ended)), at(3)
		usd, n := 0.0, 0
		for _, s := range list {
			usd, n, v.Sessions = usd+s.CostUSD, n+s.Merged, v.Sessions+s.Sessions
			if k := slices.Index(ralph.Ended, s.Ended); k >= 0 {
				e.Values[k] += float64(s.Sessions)
			}
			t.Values[0] += float64(s.Tokens.Output)
			t.Values[1] += float64(s.Tokens.Input + s.Tokens.CacheCreation)
			t.Values[2] += float64(s.Tokens.CacheRead)
		}
		if c.Values[0] = usd; n > 0 {
			m.Values[0] = usd / float64(n)
		}
		v.CostUSD, v.Merged = v.CostUSD+usd, v.Merged+n
		cost, merged, ended, tokens = append(cost, c), append(merged, m), append(ended, e), append(tokens, t)
	}
	from, to := starts[0], starts[len(starts)-1]
	of := func(i int, colour string) legendEntry {
		return legendEntry{colour, ralph.Ended[i], sessionsIn(from, to, "ended", ralph.Ended[i])}
	}
	v.Charts = []chart{
		newChart("Cost per "+v.By, []legendEntry{{"blue", "cost", ""}}, cost, text.Money),
		newChart("Cost per merged task", []legendEntry{{"teal", "cost per merged task", ""}}, merged, text.Money),
		newChart("Sessions per "+v.By+", by how they ended", []legendEntry{
			of(0, "green"), of(1, "red"), of(2, "orange"), of(3, "gray"),
		}, ended, whole),
		newChart("Tokens per "+v.By, []legendEntry{
			{"green", "output", ""}, {"blue", "input", ""}, {"gray", "read from the cache", ""},
		}, tokens, short),
	}
}

// columnName names a column in full.
func columnName(by string, from time.Time) string {
	switch by {
	case "week":
		return "week of " + from.Format("Jan 2")
	case "month":
		return from.Format("January 2006")
	}
	return from.Format("Mon Jan 2")
}

// columnLabel names a column in few characters.
func columnLabel(by string, from time.Time) string {
	if by == "month" {
		return from.Format("Jan")
	}
	return from.Format("Jan 2")
}

// sessionsIn returns the address of the sessions that ended at or after one midnight and before another, the most
// expensive first, with further conditions as names and values.
func sessionsIn(from, to time.Time, conditions ...string) string {
	q := url.Values{
		"from": {from.Format(time.DateOnly)}, "to": {to.AddDate(0, 0, -1).Format(time.DateOnly)}, "sort": {"cost"},
	}
	for i := 0; i+1 < len(conditions); i += 2 {
		q.Set(conditions[i], conditions[i+1])
	}
	return "/sessions?" + q.Encode()
}

// summed adds up parts with the same name, the most expensive first. named returns a part's name and the address of its
// details.
func summed(spent []store.Spent, named func(store.Spent) (name, to string)) (rows []costRow) {
	for _, s := range spent {
		name, to := named(s)
		i := slices.IndexFunc(rows, func(r costRow) bool { return r.To == to })
		if i < 0 {
			rows = append(rows, costRow{Name: name, To: to, Spent: s})
			continue
		}
		r := &rows[i]
		r.Sessions, r.Merged, r.CostUSD = r.Sessions+s.Sessions, r.Merged+s.Merged, r.CostUSD+s.CostUSD
		r.Known, r.Tokens = r.Known && s.Known, r.Tokens.Add(s.Tokens)
	}
	slices.SortStableFunc(rows, func(x, y costRow) int {
		return cmp.Or(cmp.Compare(y.CostUSD, x.CostUSD), strings.Compare(x.Name, y.Name))
	})
	rows = rows[:min(len(rows), partRows)]
	for i := range rows {
		if most := rows[0].CostUSD; most > 0 {
			rows[i].Width = round(rows[i].CostUSD * barWidth / most)
		}
	}
	return rows
}

// addStates adds the time that the latest sessions spent in each state.
func (v *chartsView) addStates(tx *store.Tx) error {
	list, err := tx.Sessions(store.SessionFilter{Limit: stateSessions})
	if err != nil {
		return err
	}
	v.Of = len(list)
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
