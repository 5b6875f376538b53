package store

import "ralph"

// ClaimsOfPeople lists the open sessions of people, newest first.
func (tx *Tx) ClaimsOfPeople() ([]ralph.Session, error) {
	return sessionRows.all(tx, `WHERE s.origin = 'human' AND s.completed_at = '' ORDER BY s.started_at DESC, s.id DESC`)
}

// LastOfPeople returns the newest session that a person began; ok is false if there is none.
func (tx *Tx) LastOfPeople() (s ralph.Session, ok bool, err error) {
	return sessionRows.first(tx, `WHERE s.origin = 'human' ORDER BY s.started_at DESC, s.id DESC`)
}

// ClaimOfPerson returns a person's open session on a task. The error wraps [ralph.ErrConflict] if there is none.
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
	return ralph.Session{}, refused(ralph.ClaimTask, task, "TASK-%d %s, and no person has claimed it", task, t.Is())
}

// SetProgress stores the progress that a person's chat reports. The error wraps [ralph.ErrConflict]
// if the session has ended.
func (tx *Tx) SetProgress(task int64, session string, p ralph.Progress) error {
	if err := tx.CheckSession(task, session); err != nil {
		return err
	}
	p.Timestamp = tx.Now()
	if err := tx.set("sessions", session, cells{"progress": asJSON(p), "updated_at": tx.Now()}); err != nil {
		return err
	}
	if err := tx.record(ralph.Event{TaskID: task, SessionID: session}, ralph.SessionProgressed{Progress: p}); err != nil {
		return err
	}
	_, err := tx.ObserveState(session, ralph.PhaseImplementing, tx.Now())
	return err
}
