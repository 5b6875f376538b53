package store

import (
	"errors"
	"fmt"
	"slices"

	"ralph"
	"ralph/signals"
)

// ErrNoFacts says that a session was decided before ralph stored the facts of decisions.
var ErrNoFacts = errors.New("was decided before ralph kept what decisions are made from")

// Replayed returns the facts from which a session was decided, and the decision. Known learnings
// are read as they are today, restricted to those older than the session's end; the caller applies
// the rules.
func (tx *Tx) Replayed(s ralph.Session) (signals.Facts, signals.Decision, error) {
	then, err := Decided(s)
	if err != nil {
		return signals.Facts{}, then, err
	}
	facts, err := value[string](tx, `SELECT facts FROM sessions WHERE id = $1`, s.ID)
	if err != nil {
		return signals.Facts{}, then, err
	}
	if facts == "" {
		return signals.Facts{}, then, fmt.Errorf("session %s %w", s.ID, ErrNoFacts)
	}
	f, err := signals.Recorded([]byte(facts))
	if err != nil {
		return f, then, fmt.Errorf("session %s: %w", s.ID, err)
	}
	f.Known, err = tx.knownTo(f)
	f.Known = slices.DeleteFunc(f.Known, func(l ralph.Learning) bool { return !l.Created.Before(s.CompletedAt.Time) })
	return f, then, err
}

// Decided lists decided sessions, oldest first, one page at a time: up to limit sessions after the
// given one. The zero session starts at the beginning.
func (tx *Tx) Decided(after ralph.Session, limit int) ([]ralph.Session, error) {
	return sessions.all(tx, `
		WHERE (s.started_at, s.id) > ($1, $2) AND s.completed_at <> ''
			AND s.role = 'work' ORDER BY s.started_at, s.id LIMIT $3`,
		after.StartedAt, after.ID, limit)
}
