package web

import (
	"fmt"
	"math"
	"strings"
	"time"

	"ralph"
	"ralph/internal/text"
	"ralph/loop/order"
	"ralph/store"
)

// A notice is news for the band at the top of each page, in addition to paused agents: work has stopped, or soon will.
type notice struct {
	ID      string
	Text    string
	To      string // destination of a button's form; "" for none
	Label   string // label of the button or, without one, of the link
	Further string // a page with more details; "" for none
	Remedy  string // in a sentence, with commands in backticks; "" for none
}

// nearly is the used share of a limit that counts as almost reached.
const nearly = 0.9

// notices returns the present notices, given the spending of sessions in progress so far (USD).
func (a *app) notices(tx *store.Tx, spending float64) (list []notice, err error) {
	queue, err := tx.MergeQueue()
	if err != nil {
		return nil, err
	}
	if queue.Paused != "" {
		list = append(list, notice{
			ID: "merging", Text: "Merging is paused: " + queue.Paused, To: "/merge/resume", Label: "Resume merging",
		})
	}
	run, ok, err := tx.LastRun()
	if err != nil || !ok || !tx.Alive(run) {
		return list, err
	}
	if run.State == "ending" && run.Control == ralph.ControlNone { // the run ends without a person's request
		list = append(list, notice{
			ID: "ending", Text: "The run is ending: " + run.StateReason, To: "/run/resume", Label: "Go on", Further: "/",
		})
	}
	now := tx.Now()
	var from time.Time
	if run.Limits.Daily {
		from = midnight(now.Time)
	}
	spent, err := tx.Spending(run.ID, order.Since(from, now.Time), order.Worth)
	if err != nil {
		return nil, err
	}
	if money, ok := moneyHolds(run, spent); ok {
		list = append(list, money)
	}
	windows, err := a.windows(tx, run.Limits)
	if err != nil {
		return nil, err
	}
	if near := nearLimits(run, now.Sub(run.StartedAt.Time).Seconds(), spent, spending, windows); len(near) > 0 {
		list = append(list, notice{
			ID: "limits", Text: strings.Join(near, " · "), Label: "what is left", Further: "/#spent-h",
		})
	}
	return list, nil
}

// raises has the ways to raise the configured limits.
var raises = map[string]string{
	"limits.max_cost_usd":           "`ralph run --max-cost %.0f`",
	"limits.max_cost_per_day_usd":   "`ralph run --max-cost-per-day %.0f`",
	"limits.max_cost_per_month_usd": "`limits.max_cost_per_month_usd: %.0f` in ralph.yaml",
}

// moneyHolds returns the notice that the budgets of sessions in progress leave too little money for further sessions of
// the run, with the remedies; ok is false if they leave enough.
func moneyHolds(run ralph.Run, s store.Spending) (n notice, ok bool) {
	l, width := run.Limits, max(1, run.Limits.Parallel)
	_, why := order.Allowance(l, s, width)
	if why == "" || run.Idle == "" || s.Open >= width {
		return n, false
	}
	left, setting := order.Left(l, s)
	limit, reserved := l.MaxCostUSD, s.Reserved
	switch setting {
	case "limits.max_cost_per_day_usd":
		limit, reserved = l.MaxDayCostUSD, s.DayReserved
	case "limits.max_cost_per_month_usd":
		limit, reserved = l.MaxMonthCostUSD, s.DayReserved
	}
	free := width - s.Open
	more := math.Ceil(limit + float64(free)*l.SessionCostUSD - left)
	return notice{
		ID: "money",
		Text: fmt.Sprintf("Money holds back %d of %d sessions: %s of %s is reserved by %s in progress", free, width,
			text.Money(reserved), text.Money(limit), text.Count(s.Open, "session")),
		Remedy: fmt.Sprintf("After `ralph stop`, raise the limit: "+raises[setting]+", or reserve less for each session: "+
			"`ralph run --session-cost %.2f`. Or wait: a session returns the money that it did not spend.",
			more, max(l.SessionMinUSD, (left+reserved)/float64(width))),
	}, true
}

// nearLimits names the limits that a run is about to reach. It takes the run's time so far (seconds), the spending that
// counts towards the limits, and that of sessions in progress (USD).
func nearLimits(run ralph.Run, elapsed float64, s store.Spending, spending float64, windows []window) (said []string) {
	l := run.Limits
	near := func(used, limit float64) bool { return limit > 0 && used >= nearly*limit }
	if used := s.USD + spending; near(used, l.MaxCostUSD) {
		said = append(said, fmt.Sprintf("The run has spent %s of its %s", text.Money(used), text.Money(l.MaxCostUSD)))
	}
	if used := s.DayUSD + spending; near(used, l.MaxDayCostUSD) {
		said = append(said, fmt.Sprintf("%s of the day’s %s are spent", text.Money(used), text.Money(l.MaxDayCostUSD)))
	}
	if near(float64(run.Sessions), float64(l.MaxSessions)) {
		said = append(said, fmt.Sprintf("The run has begun %d of its %d sessions", run.Sessions, l.MaxSessions))
	}
	if near(elapsed, l.MaxSeconds) {
		said = append(said, fmt.Sprintf("The run has taken %s of its %s", span(elapsed), span(l.MaxSeconds)))
	}
	for _, w := range windows {
		if w.Limit > 0 && !w.Over && w.Percent >= w.Limit {
			title := strings.ReplaceAll(w.Title(), "_", " ")
			said = append(said, fmt.Sprintf("%d %% of %s are used: the limit is %d %%", w.Percent, title, w.Limit))
		}
	}
	return said
}

// midnight returns the start of a time's day, in ralph's time zone.
func midnight(now time.Time) time.Time {
	y, m, d := now.Local().Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.Local)
}
