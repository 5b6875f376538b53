package store

import (
	"fmt"
	"time"

	"ralph"
)

// ClaimsOfPeople are the open sessions of people, the one claimed last first.
func (tx *Tx) ClaimsOfPeople() ([]ralph.Session, error) {
	return sessions.all(tx, `WHERE s.origin = 'human' AND s.completed_at = '' ORDER BY s.started_at DESC, s.id DESC`)
}

// LastOfPeople is the session that a person began last; ok is false if there is none.
func (tx *Tx) LastOfPeople() (s ralph.Session, ok bool, err error) {
	return sessions.first(tx, `WHERE s.origin = 'human' ORDER BY s.started_at DESC, s.id DESC`)
}

// ClaimOfPerson is the open session of the person who works on a task; the error
// wraps [ralph.ErrConflict] if nobody does, and says what to do.
func (tx *Tx) ClaimOfPerson(task int64) (ralph.Session, error) {
	t, err := tx.Task(task)
	if err != nil {
		return ralph.Session{}, err
	}
	if t.ClaimedBy != "" {
		s, err := tx.Session(t.ClaimedBy)
		if err != nil || s.Origin == ralph.FromHuman {
			return s, err
		}
	}
	return ralph.Session{}, fmt.Errorf(
		"TASK-%d is %s and not claimed by a person; claim it with `ralph task claim %d`: %w",
		task, t.Status, task, ralph.ErrConflict)
}

// SetProgress keeps what a person's chat reports. The error wraps
// [ralph.ErrConflict] if the session has ended.
func (tx *Tx) SetProgress(task int64, session string, p ralph.Progress) error {
	if err := tx.CheckSession(task, session); err != nil {
		return err
	}
	p.Timestamp = tx.now
	if err := tx.set("sessions", session, cells{"progress": asJSON(p), "updated_at": tx.now}); err != nil {
		return err
	}
	if err := tx.record(ralph.Event{TaskID: task, SessionID: session}, ralph.SessionProgressed{Progress: p}); err != nil {
		return err
	}
	_, err := tx.ObserveState(session, ralph.PhaseImplementing, tx.now)
	return err
}

// longClaim is from when on a person's claim is shown among what waits (decision 13).
const longClaim = 24 * time.Hour
