package store

import (
	"errors"
	"fmt"
	"slices"

	"ralph"
	"ralph/signals"
)

// ErrNoFacts is the error of a session that was settled before ralph kept what
// decisions are made from.
var ErrNoFacts = errors.New("was settled before ralph kept what decisions are made from")

// Replayed is what a settled session was decided from and what was decided. What
// was known of learnings is read as it is today, of those that are older than the
// session's end; the rules are left to the caller.
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

// Settled lists the sessions that have been settled, oldest first, a page at a
// time: up to limit of them that come after the given one; the zero session is
// the beginning.
func (tx *Tx) Settled(after ralph.Session, limit int) ([]ralph.Session, error) {
	return sessions.all(tx, `
		WHERE (s.started_at, s.id) > ($1, $2) AND s.completed_at <> '' ORDER BY s.started_at, s.id LIMIT $3`,
		after.StartedAt, after.ID, limit)
}
