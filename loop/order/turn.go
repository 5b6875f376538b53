package order

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ralph"
	"ralph/store"
)

// A Turn names the agent that works now. If none can, Name is "", and Until is when one can again.
type Turn struct {
	Name  string
	Until time.Time
	Why   string
}

// firstAble returns the first agent that may work now. The wanted agent comes first, then
// its stand-ins. An agent rests until the time recorded with its last error, and while a
// usage window of its account is over the limit. firstAble waits for an agent after an
// error that permits no stand-in. It does not wait for an agent that people have to fix,
// if another one will be available.
func firstAble(
	agents []string, states []store.AgentState, windows []ralph.UsageWindow, limits map[string]int, now time.Time,
) Turn {
	var first Turn
	hopeless := true // people have to fix the first agent
	for _, name := range agents {
		its, waited, broken := Turn{Name: name}, false, false
		for _, s := range states {
			if s.Agent == name && s.WaitUntil.After(now) {
				its.Until, its.Why, waited = s.WaitUntil.Time, s.Reason, !s.Ending.StandsIn()
				broken = s.Ending.NeedsPerson()
			}
		}
		own := slices.DeleteFunc(slices.Clone(windows), func(w ralph.UsageWindow) bool { return w.Agent != name })
		if until, why := usedUp(own, limits, now); until.After(its.Until) {
			its.Until, its.Why, waited = until, why, false
		}
		if its.Until.IsZero() {
			return its
		}
		if its.Name = ""; len(agents) > 1 {
			its.Why = name + ": " + its.Why
		}
		if waited {
			return its
		}
		if first.Until.IsZero() || hopeless && !broken || hopeless == broken && its.Until.Before(first.Until) {
			first, hopeless = its, broken
		}
	}
	return first
}

// StandIns reports whether another agent can work again without people having to fix it first.
func StandIns(agents []string, of string, states []store.AgentState, now time.Time) bool {
	return slices.ContainsFunc(agents, func(name string) bool {
		return name != of && !slices.ContainsFunc(states, func(s store.AgentState) bool {
			return s.Agent == name && s.WaitUntil.After(now) && s.Ending.NeedsPerson()
		})
	})
}

// Order returns the agents that may work on a task: the wanted one, then its stand-ins.
func (a Agents) Order(t ralph.Task, d ralph.Discipline) []string {
	wanted := a.choose(t, d)
	others := slices.DeleteFunc(slices.Clone(a.Fallback), func(n string) bool { return n == wanted })
	return append([]string{wanted}, others...)
}

// turn returns the agent that works on a task now.
func (c *Config) turn(tx *store.Tx, t ralph.Task, d ralph.Discipline) (Turn, error) {
	return c.firstAble(tx, c.Agents.Order(t, d))
}

// firstAble returns the first of the agents that can work now.
func (c *Config) firstAble(tx *store.Tx, agents []string) (Turn, error) {
	states, err := tx.AgentStates()
	if err != nil {
		return Turn{}, err
	}
	windows, err := tx.UsageWindows()
	return firstAble(agents, states, windows, c.Limits.Usage, tx.Now().Time), err
}

// TurnOf returns the agent whose turn it is on a task.
func (c *Config) TurnOf(tx *store.Tx, t ralph.Task) (Turn, error) {
	d, err := discipline(tx, t)
	if err != nil {
		return Turn{}, err
	}
	return c.turn(tx, t, d)
}

// OrderOf returns the agents that may work on a task: the wanted one, then its stand-ins.
func (c *Config) OrderOf(tx *store.Tx, t ralph.Task) ([]string, error) {
	d, err := discipline(tx, t)
	return c.Agents.Order(t, d), err
}

// discipline returns the discipline of a task, if it has one.
func discipline(tx *store.Tx, t ralph.Task) (d ralph.Discipline, err error) {
	if t.Discipline != "" {
		d, err = tx.Discipline(t.Discipline)
	}
	return d, err
}

// usedUp returns the latest reset time of the usage windows that are over their
// limit (decision 15), and why. Windows without a future reset time do not count.
func usedUp(windows []ralph.UsageWindow, limits map[string]int, now time.Time) (until time.Time, why string) {
	for _, w := range windows {
		percent, ok := usageLimit(w.Name, limits)
		if !ok || w.Utilization*100 < float64(percent) || !w.ResetsAt.After(now) || !w.ResetsAt.After(until) {
			continue
		}
		until = w.ResetsAt.Time
		why = fmt.Sprintf("usage limit: the window %s is used to %.0f%%, and limits.usage allows %d%%",
			w.Name, w.Utilization*100, percent)
	}
	return until, why
}

// usageLimit returns the limit of a window. A limit for seven_day also applies to
// seven_day_opus and the like, unless they have their own.
func usageLimit(window string, limits map[string]int) (percent int, ok bool) {
	for name := window; name != ""; {
		if percent, ok = limits[name]; ok {
			return percent, true
		}
		name = name[:max(strings.LastIndexByte(name, '_'), 0)]
	}
	return 0, false
}
