package store

import (
	"context"
	"iter"

	"ralph"
)

// Readers of the log remember the id of the last event that they handled. They miss nothing as long
// as ids are assigned in commit order: SQLite has one writer at a time. On PostgreSQL, a
// transaction that began earlier may commit later, with lower ids; there, every writing transaction
// must first take one lock per project (pg_advisory_xact_lock), or readers must stop below the
// oldest open transaction.

var eventRows = reads("events e", func(e *ralph.Event) []field {
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
	text, args := inserting("events", cells{
		"type":       e.Type,
		"task_id":    null(e.TaskID),
		"session_id": e.SessionID,
		"run_id":     null(e.RunID),
		"payload":    string(e.Payload),
		"created":    tx.Now(),
	})
	return tx.do(text, args...)
}

// during returns an event about a session, without its payload.
func during(s ralph.Session) ralph.Event {
	return ralph.Event{TaskID: s.TaskID, SessionID: s.ID, RunID: s.RunID}
}

// Events lists at most limit events after an id, oldest first.
func (tx *Tx) Events(after int64, limit int) ([]ralph.Event, error) {
	return eventRows.all(tx, `WHERE e.id > $1 ORDER BY e.id LIMIT $2`, after, limit)
}

// RefusedDones lists the refusals of dones in a session that went on, oldest first.
func (tx *Tx) RefusedDones(s ralph.Session) ([]ralph.Event, error) {
	return eventRows.all(tx, `WHERE e.task_id = $1 AND e.session_id = $2 AND e.type = $3 ORDER BY e.id`,
		s.TaskID, s.ID, ralph.EventType(ralph.DoneRefused{}))
}

// eventPage is how many events are read at a time, to bound memory.
const eventPage = 500

// EventsAfter returns the events after an id, oldest first, until there are no more.
func (db *DB) EventsAfter(ctx context.Context, id int64) iter.Seq2[ralph.Event, error] {
	return func(yield func(ralph.Event, error) bool) {
		for {
			page, err := Read(ctx, db, func(tx *Tx) ([]ralph.Event, error) { return tx.Events(id, eventPage) })
			if err != nil {
				yield(ralph.Event{}, err)
				return
			}
			for _, e := range page {
				if id = e.ID; !yield(e, nil) {
					return
				}
			}
			if len(page) < eventPage {
				return
			}
		}
	}
}

// LastEvent returns the id of the newest event, 0 if there is none.
func (tx *Tx) LastEvent() (int64, error) {
	return value[int64](tx, `SELECT coalesce(max(id), 0) FROM events`)
}

// LastEventTime returns the time of the newest event, the zero Time if there is none.
func (tx *Tx) LastEventTime() (ralph.Time, error) {
	return value[ralph.Time](tx, `SELECT coalesce((SELECT created FROM events ORDER BY id DESC LIMIT 1), '')`)
}

// BeforeLastRun returns the id just before the event that began the last run. If there was no run,
// it returns the id of the newest event.
func (tx *Tx) BeforeLastRun() (int64, error) {
	id, err := value[int64](tx, `SELECT id FROM events WHERE type = $1 ORDER BY id DESC LIMIT 1`,
		ralph.EventType(ralph.RunStarted{}))
	if ok, err := found(err); err == nil && !ok {
		return tx.LastEvent()
	}
	return id - 1, err
}

// ReaderPosition returns the last event that a reader has handled; ok is false if it has never
// started.
func (tx *Tx) ReaderPosition(reader string) (event int64, ok bool, err error) {
	event, err = value[int64](tx, `SELECT position FROM event_readers WHERE reader = $1`, reader)
	ok, err = found(err)
	return event, ok, err
}

// SetReaderPosition records the last event that a reader has handled.
func (tx *Tx) SetReaderPosition(reader string, event int64) error {
	return tx.put("event_readers", "reader", cells{"reader": reader, "position": event, "updated": tx.Now()})
}
