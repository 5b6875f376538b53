package loop

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"ralph"
	"ralph/internal/text"
	"ralph/loop/agent"
	"ralph/loop/order"
	"ralph/loop/session"
	"ralph/store"
)

// longestReset is the latest believable reset time from now: the longest usage window is a week.
const longestReset = 8 * 24 * time.Hour

// A pause is the consequence of an agent error: a wait, or the end of the run.
type pause struct {
	until  time.Time
	reason string
	end    *end
}

// afterError decides the consequence of an agent error (pipeline, "Agent errors"). Failures is the number of agent
// errors in a row, including this one; repeats is the number of those with this ending. Others is true if another agent
// may stand in. Jitter is between 0 and 1.
func afterError(
	report agent.Report, failures, repeats int, others, noWait bool, b Backoff, now time.Time, jitter float64,
) pause {
	stop := func(format string, args ...any) pause {
		return pause{end: &end{ralph.ExitAgent, fmt.Sprintf(format, args...)}}
	}
	switch report.Ending {
	case ralph.AuthFailed, ralph.Billing:
		if !others {
			return stop("%s: %s", unusableWhy[report.Ending], report.Reason)
		}
		failures = math.MaxInt // wait as long as possible
	case ralph.MCPFailed:
		if repeats < 2 {
			return pause{}
		}
		return stop("ralph's tools did not reach the agent, twice in a row: %s", report.Reason)
	case ralph.NoWork:
		switch {
		case others:
		case repeats < 2:
			return pause{}
		default:
			return stop("the agent did nothing at all, twice in a row: %s", report.Reason)
		}
	case ralph.RateLimited, ralph.Overloaded, ralph.Network:
	default:
		return pause{}
	}
	what := cmp.Or(unusableWhy[report.Ending], map[ralph.Ending]string{
		ralph.RateLimited: "rate limit", ralph.Overloaded: "the service is overloaded",
		ralph.Network: "the service could not be reached", ralph.NoWork: "the agent did nothing",
	}[report.Ending])
	instead := others && report.Ending.StandsIn()
	if !noWait && !instead && report.Ending != ralph.RateLimited && failures > b.Tries {
		return stop("%s, %s in a row: %s", what, text.Count(failures, "time"), report.Reason)
	}
	wait := b.Max
	if shift := failures - 1; shift < 20 {
		wait = min(b.Max, b.Initial<<shift)
	}
	until := now.Add(wait/2 + time.Duration(jitter*float64(wait/2)))
	// A reset time in the past cannot be right.
	if r := report.ResetAt; r.After(now) && r.Before(now.Add(longestReset)) {
		until = r.Add(time.Second)
	}
	p := pause{until: until, reason: what + ": " + report.Reason}
	if noWait && !instead {
		p.end = &end{ralph.ExitAgent, p.reason + ", and --no-wait"}
	}
	return p
}

// unusableWhy describes the endings that only people can fix.
var unusableWhy = map[ralph.Ending]string{
	ralph.AuthFailed: "the agent's credentials were refused", ralph.Billing: "the agent's account has no credit",
}

// afterAgent records the agent's health after a session, for this run and later ones. It ignores a session that began
// before the agent's last failure.
func (r *runner) afterAgent(ctx context.Context, s *session.Session, report agent.Report) error {
	name := s.Row.Agent
	known := s.Row.StartedAt.Before(r.failed[name])
	switch last := (lastEnding{name, report.Ending}); {
	case known:
	case last == r.last:
		r.repeats++
	default:
		r.last, r.repeats = last, 1
	}
	var p pause
	err := r.Store.Tx(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		states, err := tx.AgentStates()
		if err != nil {
			return err
		}
		state := store.AgentState{Agent: name}
		for _, s := range states {
			if s.Agent == name {
				state = s
			}
		}
		for _, w := range report.Usage {
			w.Agent = name
			if err := tx.PutUsageWindow(w); err != nil {
				return err
			}
		}
		if known {
			return nil
		}
		if !report.Ending.AgentError() {
			if report.Ending == ralph.Interrupted || report.Ending == ralph.Lost || state.Failures == 0 {
				return nil
			}
			return tx.SetAgentState(store.AgentState{Agent: name})
		}
		now := r.Store.Now()
		r.failed[name] = ralph.At(now).Time
		t, err := tx.Task(s.Row.TaskID)
		if err != nil {
			return err
		}
		agents, err := r.OrderOf(tx, t)
		if err != nil {
			return err
		}
		others := order.StandIns(agents, name, states, now)
		p = afterError(report, state.Failures+1, r.repeats, others, r.NoWait, r.Backoff, now, rand.Float64())
		if how := agent.ProfileOf(s.Agent).LogIn; p.end != nil && report.Ending == ralph.AuthFailed && how != "" {
			p.end.reason += "; " + how + ", then `ralph run`"
		}
		if p.until.IsZero() {
			return nil
		}
		return tx.SetAgentState(store.AgentState{
			Agent: name, WaitUntil: ralph.At(p.until), Reason: p.reason, Ending: report.Ending, Failures: state.Failures + 1,
		})
	})
	if err == nil && p.end != nil {
		return p.end
	}
	return err
}

// waitForAgent waits while no agent that may work on the task can work. It asks the database, which also has the errors
// of earlier runs.
func (r *runner) waitForAgent(ctx context.Context, its order.Turn) error {
	switch {
	case its.Until.IsZero():
		return nil
	case r.NoWait:
		return &end{ralph.ExitAgent, fmt.Sprintf("no session before %s, and --no-wait: %s", ralph.At(its.Until), its.Why)}
	}
	return r.wait(ctx, its.Why, its.Until)
}
