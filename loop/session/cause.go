package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ralph"
	"ralph/loop/agent"
)

// A Cause is why a session was stopped before its end: the cause of its context.
type Cause string

// The causes. A new one needs its row in the table below.
const (
	timeUp    Cause = "time"
	wasIdle   Cause = "idle"
	runLimit  Cause = "run's time"
	runStop   Cause = "run stopped"
	runKilled Cause = "run stopped at once"
	cancelled Cause = "cancelled"
	contract  Cause = "contract"
	halted    Cause = "halted"
)

// causes say what follows of each: how the session has ended, whether that counts as an
// attempt being for signals.Decide to say, and the words of it, with its limits.
var causes = map[Cause]struct {
	ending ralph.Ending
	words  string
	people bool // it is a person's word, who does not want to wait for a check
	limit  func(Limits) time.Duration
}{
	timeUp: {ralph.TimedOut, "timed out after %s", false, func(l Limits) time.Duration { return l.Time }},
	wasIdle: {
		ralph.TimedOut, "timed out: idle for %s, without an event, a signal, CPU use or a change in the work tree",
		false, func(l Limits) time.Duration { return l.Idle },
	},
	runLimit:  {ralph.Interrupted, "the run's time is up", false, nil},
	runStop:   {ralph.Interrupted, "the run was stopped", true, nil},
	runKilled: {ralph.Interrupted, "the run was stopped at once", false, nil},
	cancelled: {ralph.Interrupted, "its task was cancelled", true, nil},
	contract:  {ralph.Interrupted, "what its task asks for was changed", true, nil},
	halted:    {ralph.Interrupted, "a person stopped it", true, nil},
}

// requests are the causes by which a running session is stopped at once when somebody
// asks for it.
var requests = map[string]Cause{
	ralph.ControlStopNow: runStop, "cancel": cancelled, "contract": contract, "halt": halted,
}

// Error says why.
func (c Cause) Error() string { return causes[c].words }

// causeOf is the cause of a context's end; "" if it is none of them, as where what the
// session does cannot be kept.
func causeOf(err error) (c Cause) {
	if errors.Is(err, context.Canceled) {
		return runKilled
	}
	errors.As(err, &c)
	return c
}

// withCause says why an interrupted session was: a session that had ended by
// itself when it was to be stopped has ended by itself.
func (l Limits) withCause(report agent.Report, err error) agent.Report {
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
