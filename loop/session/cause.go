package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ralph"
	"ralph/loop/agent"
	"ralph/loop/order"
)

// A Cause is the reason why a session was stopped early, as the cause of its context.
type Cause string

// The causes. A new one needs a row in the table below.
const (
	timeUp    Cause = "time"
	wasIdle   Cause = "idle"
	runLimit  Cause = "run's time"
	runStop   Cause = "run stopped"
	runKilled Cause = "run stopped at once"
	cancelled Cause = "cancelled"
	contract  Cause = "contract"
	halted    Cause = "halted"
	filled    Cause = "filled"
)

// causes has, for each cause, the session's ending and its reason in words, with the limit
// if there is one. signals.Decide decides whether the ending counts as an attempt.
var causes = map[Cause]struct {
	ending ralph.Ending
	words  string
	people bool // a person asked for it, and should not wait for a check
	limit  func(order.Limits) time.Duration
}{
	timeUp: {ralph.TimedOut, "timed out after %s", false, func(l order.Limits) time.Duration { return l.Time }},
	wasIdle: {
		ralph.TimedOut, "timed out: idle for %s, without an event, a signal, CPU use or a change in the work tree",
		false, func(l order.Limits) time.Duration { return l.Idle },
	},
	runLimit:  {ralph.Interrupted, "the run's time is up", false, nil},
	runStop:   {ralph.Interrupted, "the run was stopped", true, nil},
	runKilled: {ralph.Interrupted, "the run was stopped at once", false, nil},
	cancelled: {ralph.Interrupted, "its task was cancelled", true, nil},
	contract:  {ralph.Interrupted, "its task was changed", true, nil},
	halted:    {ralph.Interrupted, "a person stopped it", true, nil},
	filled: {
		ralph.TimedOut, "its workspace and temporary files grew beyond workspace.max_size", false, nil,
	},
}

// requests maps people's requests to causes that stop a running session at once.
var requests = map[string]Cause{
	ralph.ControlStopNow: runStop, "cancel": cancelled, "contract": contract, "halt": halted,
}

// Error returns the reason.
func (c Cause) Error() string { return causes[c].words }

// A spent is the cause of a session whose time is up.
type spent struct {
	Cause
	after time.Duration
}

// Unwrap returns the cause.
func (s spent) Unwrap() error { return s.Cause }

// TimeUp implements [agent.TimeUp].
func (s spent) TimeUp() (after time.Duration, silent bool) { return s.after, s.Cause == wasIdle }

// causeOf returns the cause of a context's end; "" for any other cause, for example if the session's results cannot be
// stored.
func causeOf(err error) (c Cause) {
	if errors.Is(err, context.Canceled) {
		return runKilled
	}
	errors.As(err, &c)
	return c
}

// withCause adds to the report of an interrupted session why it was
// stopped. A session that ended by itself first keeps its ending.
func withCause(l order.Limits, report agent.Report, err error) agent.Report {
	if report.Ending != ralph.Interrupted || err == nil {
		return report
	}
	report.Reason = "interrupted: " + err.Error()
	if c, ok := causes[causeOf(err)]; ok {
		report.Ending, report.Reason = c.ending, "interrupted: "+c.words
		if c.limit != nil {
			report.Reason = fmt.Sprintf(c.words, c.limit(l))
		}
	}
	return report
}
