package store

import (
	"ralph"
)

// What happened is read by who remembers the last id that they dealt with. That misses
// nothing as long as ids come in the order of commits: SQLite has one writer at a time.
// On PostgreSQL a transaction that began earlier may commit later, with lower ids; there
// every writing transaction has to take one lock of the project first
// (pg_advisory_xact_lock), or readers stop below the oldest transaction that is under way.

var events = reads("events e", func(e *ralph.Event) []field {
	return []field{
		{"e.id", &e.ID},
		{"e.type", &e.Type},
		{"coalesce(e.task_id, 0)", &e.TaskID},
		{"e.session_id", &e.SessionID},
		{"coalesce(e.run_id, 0)", &e.RunID},
		{"e.payload", column(&e.Payload)},
		{"e.created", &e.Created},
	}
})

// record appends an event, in the transaction that makes it true.
func (tx *Tx) record(e ralph.Event, p ralph.EventPayload) error {
	e, err := e.Telling(p)
	if err != nil {
		return err
	}
	_, err = tx.add("events", cells{
		"type":       e.Type,
		"task_id":    null(e.TaskID),
		"session_id": e.SessionID,
		"run_id":     null(e.RunID),
		"payload":    string(e.Payload),
		"created":    tx.now,
	})
	return err
}

// during begins an event of a session.
func during(s ralph.Session) ralph.Event {
	return ralph.Event{TaskID: s.TaskID, SessionID: s.ID, RunID: s.RunID}
}

// Events are the events after an id, oldest first, at most limit of them.
func (tx *Tx) Events(after int64, limit int) ([]ralph.Event, error) {
	return events.all(tx, `WHERE e.id > $1 ORDER BY e.id LIMIT $2`, after, limit)
}

// LastEvent is the id of the newest event, 0 if there is none.
func (tx *Tx) LastEvent() (int64, error) {
	return value[int64](tx, `SELECT coalesce(max(id), 0) FROM events`)
}

// LastEventOf is the id of a task's newest event, 0 if there is none.
func (tx *Tx) LastEventOf(task int64) (int64, error) {
	return value[int64](tx, `SELECT coalesce(max(id), 0) FROM events WHERE task_id = $1`, task)
}

// LastEventTime is when the newest event happened, the zero Time if there is none.
func (tx *Tx) LastEventTime() (ralph.Time, error) {
	return value[ralph.Time](tx, `SELECT coalesce((SELECT created FROM events ORDER BY id DESC LIMIT 1), '')`)
}

// BeforeLastRun is the id of the event before the last run began; the last event
// of all if none has.
func (tx *Tx) BeforeLastRun() (int64, error) {
	id, err := value[int64](tx, `SELECT id FROM events WHERE type = $1 ORDER BY id DESC LIMIT 1`, ralph.EventRunStarted)
	if ok, err := found(err); err == nil && !ok {
		return tx.LastEvent()
	}
	return id - 1, err
}

// ReaderPosition is the last event that a reader has dealt with; ok is false if
// it never began.
func (tx *Tx) ReaderPosition(reader string) (event int64, ok bool, err error) {
	event, err = value[int64](tx, `SELECT position FROM event_readers WHERE reader = $1`, reader)
	ok, err = found(err)
	return event, ok, err
}

// SetReaderPosition notes the last event that a reader has dealt with.
func (tx *Tx) SetReaderPosition(reader string, event int64) error {
	return tx.put("event_readers", "reader", cells{"reader": reader, "position": event, "updated": tx.now})
}
