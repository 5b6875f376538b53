package loop

import (
	"slices"
	"time"

	"ralph"
	"ralph/store"
)

// A turn says which agent works now. If none can, name is "", and until says when one can again.
type turn struct {
	name  string
	until time.Time
	why   string
}

// choose returns the first agent that may work now. The wanted agent comes first,
// then its stand-ins. An agent rests until the time recorded with its last error,
// and while a usage window of its account is over the limit. If an agent rests
// after an error that allows no stand-in, choose waits for it. It does not wait
// for an agent that people have to fix, if another one will be available.
func choose(
	agents []string, states []store.AgentState, windows []ralph.UsageWindow, limits map[string]int, now time.Time,
) turn {
	var first turn
	hopeless := true // people have to fix the first agent
	for _, name := range agents {
		its, waited, broken := turn{name: name}, false, false
		for _, s := range states {
			if s.Agent == name && s.WaitUntil.After(now) {
				its.until, its.why, waited = s.WaitUntil.Time, s.Reason, !s.Ending.StandsIn()
				broken = unusableWhy[s.Ending] != ""
			}
		}
		own := slices.DeleteFunc(slices.Clone(windows), func(w ralph.UsageWindow) bool { return w.Agent != name })
		if until, why := usedUp(own, limits, now); until.After(its.until) {
			its.until, its.why, waited = until, why, false
		}
		if its.until.IsZero() {
			return its
		}
		if its.name = ""; len(agents) > 1 {
			its.why = name + ": " + its.why
		}
		if waited {
			return its
		}
		if first.until.IsZero() || hopeless && !broken || hopeless == broken && its.until.Before(first.until) {
			first, hopeless = its, broken
		}
	}
	return first
}

// standIns reports whether another agent can work again without people having to fix it first.
func standIns(agents []string, of string, states []store.AgentState, now time.Time) bool {
	return slices.ContainsFunc(agents, func(name string) bool {
		return name != of && !slices.ContainsFunc(states, func(s store.AgentState) bool {
			return s.Agent == name && s.WaitUntil.After(now) && unusableWhy[s.Ending] != ""
		})
	})
}

// order returns the agents that may work on a task: the wanted one, then its stand-ins.
func (a Agents) order(t ralph.Task, d ralph.Discipline) []string {
	wanted := a.choose(t, d)
	others := slices.DeleteFunc(slices.Clone(a.Fallback), func(n string) bool { return n == wanted })
	return append([]string{wanted}, others...)
}

// works returns the agent that works on a task now.
func (l *Loop) works(tx *store.Tx, t ralph.Task, d ralph.Discipline) (turn, error) {
	states, err := tx.AgentStates()
	if err != nil {
		return turn{}, err
	}
	windows, err := tx.UsageWindows()
	return choose(l.Agents.order(t, d), states, windows, l.Limits.Usage, tx.Now().Time), err
}

// turnOf returns the agent whose turn it is on a task.
func (l *Loop) turnOf(tx *store.Tx, t ralph.Task) (turn, error) {
	d, err := disciplined(tx, t)
	if err != nil {
		return turn{}, err
	}
	return l.works(tx, t, d)
}

// disciplined returns the discipline of a task, if it has one.
func disciplined(tx *store.Tx, t ralph.Task) (d ralph.Discipline, err error) {
	if t.Discipline != "" {
		d, err = tx.Discipline(t.Discipline)
	}
	return d, err
}
