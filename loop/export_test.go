package loop

import (
	"time"

	"ralph/loop/agent"

	"ralph"
	"ralph/store"
)

// What the tests of the package's decisions look at.
var (
	Reached = reached
	UsedUp  = usedUp
)

type (
	Spending = spending
)

// Allowance is allowance.
var Allowance = allowance

// Spend makes what limits are compared with.
func Spend(sessions, stagnant int, elapsed time.Duration, run, day float64) Spending {
	return spending{per: "run", sessions: sessions, stagnant: stagnant, elapsed: elapsed, run: run, day: day}
}

// SetClaiming has something happen between reading a task and claiming it.
func SetClaiming(l *Loop, f func()) { l.claiming = f }

// AfterError is afterError: until when to wait, why, and the reason to end.
func AfterError(r agent.Report, failures, repeats int, noWait bool, b Backoff, now time.Time, jitter float64) (until time.Time, reason, ends string) {
	p := afterError(r, failures, repeats, noWait, b, now, jitter)
	if p.end != nil {
		ends = p.end.reason
	}
	return p.until, p.reason, ends
}

// JudgeRest is judgeRest: the exit statuses.
func JudgeRest(tasks []ralph.Task, inbox []store.InboxItem, worked map[int64]bool, only int64) (statuses []int) {
	for _, e := range judgeRest(tasks, inbox, worked, only) {
		statuses = append(statuses, e.status)
	}
	return statuses
}
