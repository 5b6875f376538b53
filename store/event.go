package store

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"ralph"
)

// record appends an event, in the transaction that makes it true.
func (tx *Tx) record(e ralph.Event, p ralph.EventPayload) error {
	e, err := e.Telling(p)
	if err != nil {
		return err
	}
	_, err = tx.exec(`
		INSERT INTO events (type, task_id, session_id, run_id, payload, created)
		VALUES ($1, $2, $3, $4, $5, $6)`,
		e.Type, nullID(e.TaskID), e.SessionID, nullID(e.RunID), string(e.Payload), tx.now.String())
	return err
}

// nullID is NULL for no id.
func nullID(id int64) any {
	if id == 0 {
		return nil
	}
	return id
}

// Events are the events after an id, oldest first, at most limit of them.
func (tx *Tx) Events(after int64, limit int) ([]ralph.Event, error) {
	return all(tx, scanEvent, `
		SELECT id, type, coalesce(task_id, 0), session_id, coalesce(run_id, 0), payload, created
		FROM events WHERE id > $1 ORDER BY id LIMIT $2`, after, limit)
}

// LastEvent is the id of the newest event, 0 if there is none.
func (tx *Tx) LastEvent() (int64, error) {
	var id int64
	err := tx.row(`SELECT coalesce(max(id), 0) FROM events`).Scan(&id)
	return id, err
}

// BeforeLastRun is the id of the event before the last run began; the last event
// of all if none has.
func (tx *Tx) BeforeLastRun() (int64, error) {
	var id int64
	err := tx.row(`SELECT id FROM events WHERE type = $1 ORDER BY id DESC LIMIT 1`, ralph.EventRunStarted).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return tx.LastEvent()
	}
	return id - 1, err
}

// ReaderPosition is the last event that a reader has dealt with; ok is false if
// it never began.
func (tx *Tx) ReaderPosition(reader string) (event int64, ok bool, err error) {
	err = tx.row(`SELECT position FROM event_readers WHERE reader = $1`, reader).Scan(&event)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return event, err == nil, err
}

// SetReaderPosition notes the last event that a reader has dealt with.
func (tx *Tx) SetReaderPosition(reader string, event int64) error {
	_, err := tx.exec(`
		INSERT INTO event_readers (reader, position, updated) VALUES ($1, $2, $3)
		ON CONFLICT (reader) DO UPDATE SET position = excluded.position, updated = excluded.updated`,
		reader, event, tx.now.String())
	return err
}

func scanEvent(row scanner) (ralph.Event, error) {
	var e ralph.Event
	err := row.Scan(&e.ID, &e.Type, &e.TaskID, &e.SessionID, &e.RunID, column(&e.Payload), &e.Created)
	return e, err
}

// text is v as a JSON text for a column; a nil slice is an empty list.
func text(v any) (string, error) {
	b, err := json.Marshal(v)
	if string(b) == "null" {
		return "[]", err
	}
	return string(b), err
}

// column reads a JSON text into dest.
func column(dest any) *jsonColumn { return &jsonColumn{dest} }

type jsonColumn struct{ dest any }

// Scan implements sql.Scanner.
func (c *jsonColumn) Scan(value any) error {
	s, ok := value.(string)
	if !ok {
		return fmt.Errorf("JSON column holds %T, not text", value)
	}
	if err := json.Unmarshal([]byte(s), c.dest); err != nil {
		return fmt.Errorf("stored JSON: %w", err)
	}
	return nil
}
