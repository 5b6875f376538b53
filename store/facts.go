package store

import (
	"encoding/json"
	"fmt"

	"ralph"
	"ralph/signals"
)

// DecidedFrom returns the stored facts and decision of a session. The facts lack the known learnings and the rules.
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
	var f signals.Facts
	if err := json.Unmarshal([]byte(facts), &f); err != nil {
		return f, d, fmt.Errorf("session %s: the facts of its decision cannot be read: %w", s.ID, err)
	}
	return f, d, nil
}
