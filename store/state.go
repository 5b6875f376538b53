package store

import (
	"database/sql"
	"errors"
	"fmt"

	"ralph"
)

// Errors of a session whose state cannot be changed, with the texts that agents are told.
type (
	// SessionUnknownError says that there is no such session.
	SessionUnknownError struct{ ID string }
	// SessionCompletedError says that the session has ended.
	SessionCompletedError struct{ ID string }
)

// Error returns the text for agents.
func (e *SessionUnknownError) Error() string { return "Session " + e.ID + " not found" }

// Unwrap returns [ralph.ErrNotFound].
func (e *SessionUnknownError) Unwrap() error { return ralph.ErrNotFound }

// Error returns the text for agents.
func (e *SessionCompletedError) Error() string { return "Session " + e.ID + " is already completed" }

// Unwrap returns [ralph.ErrConflict].
func (e *SessionCompletedError) Unwrap() error { return ralph.ErrConflict }

// ReportState moves a session to the phase that its agent reports, and returns the previous one.
// Any order is recorded; unexpected ones are marked.
func (tx *Tx) ReportState(session string, to ralph.Phase, metadata map[string]any) (previous ralph.Phase, err error) {
	history, task, run, err := tx.states(session)
	if err != nil {
		return "", err
	}
	previous = history[len(history)-1].State
	change := ralph.PhaseChange{
		State: to, Timestamp: tx.Now(), Metadata: metadata, Source: ralph.Reported,
		Unexpected: previous != to && !ralph.ExpectedPhase(previous, to),
	}
	return previous, tx.moveState(session, task, run, history, change)
}

// ObserveState moves a session to an observed phase, unless its agent has just reported another
// one. It reports whether the phase changed.
func (tx *Tx) ObserveState(session string, seen ralph.Phase, at ralph.Time) (bool, error) {
	history, task, run, err := tx.states(session)
	if err != nil {
		return false, err
	}
	last := history[len(history)-1]
	if at.Before(last.Timestamp.Time) {
		at = last.Timestamp // the clock was set back, or the observation is older than the report
	}
	if !ralph.Observe(last, seen, at) {
		return false, nil
	}
	change := ralph.PhaseChange{
		State: seen, Timestamp: at, Source: ralph.Observed, Unexpected: !ralph.ExpectedPhase(last.State, seen),
	}
	return true, tx.moveState(session, task, run, history, change)
}

// OpenSession returns an error if a session's state cannot be changed: it is unknown or has ended.
func (tx *Tx) OpenSession(id string) error {
	_, _, _, err := tx.states(id)
	return err
}

// states reads the phase history of a session that has not ended.
func (tx *Tx) states(session string) (history []ralph.PhaseChange, task, run int64, err error) {
	var completed string
	err = tx.row(`SELECT state_history, task_id, coalesce(run_id, 0), completed_at FROM sessions WHERE id = $1`, session).
		Scan(column(&history), &task, &run, &completed)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		err = &SessionUnknownError{session}
	case err == nil && completed != "":
		err = &SessionCompletedError{session}
	case err == nil && len(history) == 0:
		err = fmt.Errorf("session %s has no history", session)
	}
	return history, task, run, err
}

func (tx *Tx) moveState(session string, task, run int64, history []ralph.PhaseChange, change ralph.PhaseChange) error {
	previous := history[len(history)-1].State
	if err := tx.set("sessions", session, cells{
		"current_state": change.State, "state_history": asJSON(append(history, change)), "updated_at": tx.Now(),
	}); err != nil {
		return err
	}
	return tx.record(ralph.Event{TaskID: task, SessionID: session, RunID: run}, ralph.SessionMoved{
		Previous: previous, State: change.State, Source: change.Source, Unexpected: change.Unexpected,
		Metadata: change.Metadata,
	})
}

// AddCheckpoint stores a checkpoint of a session and returns its id.
func (tx *Tx) AddCheckpoint(c ralph.Checkpoint) (id int64, err error) {
	s, err := tx.Session(c.SessionID)
	if err != nil {
		return 0, err
	}
	id, err = tx.add("checkpoints", cells{
		"session_id":   c.SessionID,
		"source":       c.Source,
		"iteration":    c.Iteration,
		"state":        s.State,
		"completed":    asJSON(c.Completed),
		"remaining":    asJSON(c.Remaining),
		"note":         c.Note,
		"tokens_used":  c.TokensUsed,
		"tokens_limit": c.TokensLimit,
		"created":      tx.Now(),
	})
	if err != nil {
		return 0, err
	}
	return id, tx.record(during(s), ralph.CheckpointAdded{
		Checkpoint: id, Source: c.Source, Iteration: c.Iteration, TokensUsed: c.TokensUsed, TokensLimit: c.TokensLimit,
	})
}

var checkpointRows = reads("checkpoints", func(c *ralph.Checkpoint) []field {
	return []field{
		{"id", &c.ID},
		{"session_id", &c.SessionID},
		{"source", &c.Source},
		{"iteration", &c.Iteration},
		{"state", &c.State},
		{"completed", column(&c.Completed)},
		{"remaining", column(&c.Remaining)},
		{"note", &c.Note},
		{"tokens_used", &c.TokensUsed},
		{"tokens_limit", &c.TokensLimit},
		{"created", &c.Created},
	}
})

// Checkpoints lists a session's checkpoints, oldest first.
func (tx *Tx) Checkpoints(session string) ([]ralph.Checkpoint, error) {
	return checkpointRows.all(tx, `WHERE session_id = $1 ORDER BY id`, session)
}

// Interrupted returns the latest session of a task, if it did not finish, with its latest
// checkpoint; ok is false if it finished or left no checkpoint.
func (tx *Tx) Interrupted(task int64) (s ralph.Session, c ralph.Checkpoint, ok bool, err error) {
	s, ok, err = sessionRows.first(tx, `WHERE s.task_id = $1
		AND s.role IN ('work', 'plan') AND s.completed_at <> '' ORDER BY s.started_at DESC, s.id`, task)
	if err != nil || !ok || s.Ending == ralph.Finished {
		return s, c, false, err
	}
	list, err := tx.Checkpoints(s.ID)
	if err != nil || len(list) == 0 {
		return s, c, false, err
	}
	return s, list[len(list)-1], true, nil
}

// contextSessions is how many of the latest sessions [Tx.ContextWindows] looks at.
const contextSessions = 50

// ContextWindows returns the context sizes of models in tokens, as the latest sessions reported
// them.
func (tx *Tx) ContextWindows() (map[string]int64, error) {
	type known struct {
		model  string
		tokens ralph.Tokens
	}
	list, err := all(tx, func(row scanner) (k known, err error) { return k, row.Scan(&k.model, column(&k.tokens)) },
		`SELECT model, tokens FROM sessions WHERE completed_at <> '' ORDER BY completed_at DESC LIMIT $1`, contextSessions)
	windows := map[string]int64{}
	for _, k := range list {
		if windows[k.model] == 0 && k.tokens.ContextWindow > 0 {
			windows[k.model] = k.tokens.ContextWindow
		}
	}
	return windows, err
}
