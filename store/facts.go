package store

import (
	"fmt"
	"slices"

	"ralph"
	"ralph/signals"
)

// DecidedFrom returns the facts from which a session was decided, and the decision. Known learnings are read as they
// are today, restricted to those older than the session's end; the caller applies the rules.
func (tx *Tx) DecidedFrom(s ralph.Session) (signals.Facts, signals.Decision, error) {
	d, err := Decided(s)
	if err != nil {
		return signals.Facts{}, d, err
	}
	facts, err := value[string](tx, `SELECT facts FROM sessions WHERE id = $1`, s.ID)
	if err != nil {
		return signals.Facts{}, d, err
	}
	if facts == "" {
		return signals.Facts{}, d, ralph.NotFound("session %.8s has not been decided", s.ID)
	}
	f, err := signals.Recorded([]byte(facts))
	if err != nil {
		return f, d, fmt.Errorf("session %s: %w", s.ID, err)
	}
	f.Known, err = tx.knownTo(f)
	f.Known = slices.DeleteFunc(f.Known, func(l ralph.Learning) bool { return !l.Created.Before(s.CompletedAt.Time) })
	return f, d, err
}
