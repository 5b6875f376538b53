package loop

import "time"

// What the tests of the package's decisions look at.
var (
	Welcome  = welcome
	Farewell = farewell
	Tampered = tampered
	Reached  = reached
	UsedUp   = usedUp
	Judge    = judge
)

type (
	Spending = spending
	Outcome  = outcome
)

// Allowance is allowance.
var Allowance = allowance

// Spend makes what limits are compared with.
func Spend(sessions, stagnant int, elapsed time.Duration, run, day float64) Spending {
	return spending{per: "run", sessions: sessions, stagnant: stagnant, elapsed: elapsed, run: run, day: day}
}

// SetClaiming has something happen between reading a task and claiming it.
func SetClaiming(l *Loop, f func()) { l.claiming = f }
