package loop

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"ralph/loop/agent"

	"ralph"
	"ralph/store"
)

// Backoff says how long an agent that cannot work now is left alone.
type Backoff struct {
	Initial time.Duration // after the first error
	Max     time.Duration // at most
	Tries   int           // errors in a row after which the run ends
}

// longestReset is how far ahead a reset time is believed: the longest usage
// window is a week.
const longestReset = 8 * 24 * time.Hour

// A pause is what an agent error leads to: a wait, or the end of the run.
type pause struct {
	until  time.Time
	reason string
	end    *end
}

// afterError decides what an agent error leads to (pipeline, "Agent errors").
// failures counts the errors in a row that were waited for, this one included;
// repeats counts those of this class; jitter is between 0 and 1.
func afterError(
	report agent.Report, failures, repeats int, noWait bool, b Backoff, now time.Time, jitter float64,
) pause {
	stop := func(format string, args ...any) pause {
		return pause{end: &end{ralph.ExitAgent, fmt.Sprintf(format, args...)}}
	}
	switch report.Ending {
	case ralph.AuthFailed:
		return stop("the agent's credentials were refused: %s", report.Reason)
	case ralph.Billing:
		return stop("the agent's account has no credit: %s", report.Reason)
	case ralph.MCPFailed:
		if repeats < 2 {
			return pause{}
		}
		return stop("ralph's tools did not reach the agent, twice in a row: %s", report.Reason)
	case ralph.NoWork:
		if repeats < 2 {
			return pause{}
		}
		return stop("the agent did nothing at all, twice in a row: %s", report.Reason)
	case ralph.RateLimited, ralph.Overloaded, ralph.Network:
	default:
		return pause{}
	}
	what := map[ralph.Ending]string{
		ralph.RateLimited: "rate limit", ralph.Overloaded: "the service is overloaded",
		ralph.Network: "the service was not reached",
	}[report.Ending]
	if !noWait && report.Ending != ralph.RateLimited && failures > b.Tries {
		return stop("%s, %d times in a row: %s", what, failures, report.Reason)
	}
	wait := b.Max
	if shift := failures - 1; shift < 20 {
		wait = min(b.Max, b.Initial<<shift)
	}
	until := now.Add(wait/2 + time.Duration(jitter*float64(wait/2)))
	// A reset time that has passed already was not the whole truth.
	if r := report.ResetAt; r.After(now) && r.Before(now.Add(longestReset)) {
		until = r.Add(time.Second)
	}
	p := pause{until: until, reason: what + ": " + report.Reason}
	if noWait {
		p.end = &end{ralph.ExitAgent, p.reason + ", and --no-wait"}
	}
	return p
}

// afterAgent notes what a session tells of the agent, for this run and the next.
func (r *runner) afterAgent(ctx context.Context, report agent.Report) error {
	if report.Ending == r.last {
		r.repeats++
	} else {
		r.last, r.repeats = report.Ending, 1
	}
	var p pause
	err := r.Store.Tx(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		state, err := tx.AgentState()
		if err != nil {
			return err
		}
		for _, w := range report.Usage {
			if err := tx.KeepUsage(w); err != nil {
				return err
			}
		}
		if !report.Ending.AgentError() {
			if report.Ending == ralph.Interrupted || report.Ending == ralph.Lost || state == (store.AgentState{}) {
				return nil
			}
			return tx.SetAgentState(store.AgentState{})
		}
		p = afterError(report, state.Failures+1, r.repeats, r.NoWait, r.Backoff, time.Now(), rand.Float64())
		if p.until.IsZero() {
			return nil
		}
		state = store.AgentState{WaitUntil: ralph.At(p.until), Reason: p.reason, Failures: state.Failures + 1}
		return tx.SetAgentState(state)
	})
	if err == nil && p.end != nil {
		return p.end
	}
	return err
}

// waitForAgent waits as long as the database says that no session should start,
// this run's word or an earlier one's.
func (r *runner) waitForAgent(ctx context.Context) error {
	now := time.Now()
	state, err := store.Read(ctx, r.Store, func(tx *store.Tx) (store.AgentState, error) {
		state, err := tx.AgentState()
		if err != nil {
			return state, err
		}
		windows, err := tx.UsageWindows()
		if until, why := usedUp(windows, r.Limits.Usage, now); until.After(state.WaitUntil.Time) {
			state.WaitUntil, state.Reason = ralph.At(until), why
		}
		return state, err
	})
	switch {
	case err != nil || !state.WaitUntil.After(now):
		return err
	case r.NoWait:
		return &end{ralph.ExitAgent, fmt.Sprintf("no session before %s, and --no-wait: %s", state.WaitUntil, state.Reason)}
	}
	return r.wait(ctx, state.Reason, state.WaitUntil.Time)
}
