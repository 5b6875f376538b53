package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"ralph"
)

const permissionColumns = `id, task_id, session_id, tool, input, decision, rule, reason, decided_by, created, decided_at, expires`

func scanPermission(row scanner) (p ralph.Permission, err error) {
	err = row.Scan(&p.ID, &p.TaskID, &p.SessionID, &p.Tool, &p.Input, &p.Decision, &p.Rule, &p.Reason, &p.DecidedBy, &p.Created, &p.DecidedAt, &p.Expires)
	return p, err
}

// AddPermission records an agent's question whether it may use a tool, in a
// transaction of its own. One that a person is to answer stays open.
func (db *DB) AddPermission(ctx context.Context, p ralph.Permission) (id int64, err error) {
	err = db.Tx(ctx, func(tx *Tx) error {
		if err := tx.CheckSession(p.TaskID, p.SessionID); err != nil {
			return err
		}
		decided := tx.now
		if p.Decision == "ask" {
			decided = ralph.Time{}
		}
		id, err = tx.insert(`
			INSERT INTO permission_requests (task_id, session_id, tool, input, decision, rule, reason, created, decided_at, expires)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING id`,
			p.TaskID, p.SessionID, p.Tool, p.Input, p.Decision, p.Rule, p.Reason, tx.now.String(), decided.String(), p.Expires.String())
		if err != nil || p.Decision != "ask" {
			return err
		}
		return tx.record(ralph.Event{TaskID: p.TaskID, SessionID: p.SessionID},
			ralph.PermissionAsked{PermissionID: id, Tool: p.Tool, Input: p.Input, Expires: p.Expires})
	})
	return id, err
}

// Permission is one question.
func (tx *Tx) Permission(id int64) (ralph.Permission, error) {
	p, err := scanPermission(tx.row(`SELECT `+permissionColumns+` FROM permission_requests WHERE id = $1`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return p, fmt.Errorf("permission %d: %w", id, ralph.ErrNotFound)
	}
	return p, err
}

// Permissions lists a session's questions in their order; of all sessions the open
// ones if session is "".
func (tx *Tx) Permissions(session string) ([]ralph.Permission, error) {
	if session == "" {
		return all(tx, scanPermission, `SELECT `+permissionColumns+` FROM permission_requests WHERE decided_at = '' ORDER BY id`)
	}
	return all(tx, scanPermission, `SELECT `+permissionColumns+` FROM permission_requests WHERE session_id = $1 ORDER BY id`, session)
}

// AsksPermission reports whether a session waits for a person's permission.
func (tx *Tx) AsksPermission(session string) (bool, error) {
	var n int
	err := tx.row(`SELECT count(*) FROM permission_requests WHERE decided_at = '' AND session_id = $1`, session).Scan(&n)
	return n > 0, err
}

// DecidePermission answers an open question: "allow" or "deny". By is a person's
// name, or "" for ralph itself. The error wraps [ralph.ErrConflict] if it is
// answered already.
func (tx *Tx) DecidePermission(id int64, decision, reason, by string) error {
	p, err := tx.Permission(id)
	if err != nil {
		return err
	}
	if !p.DecidedAt.IsZero() {
		return fmt.Errorf("permission %d is decided already (%s): %w", id, p.Decision, ralph.ErrConflict)
	}
	if _, err := tx.exec(`UPDATE permission_requests SET decision = $1, reason = $2, decided_by = $3, decided_at = $4 WHERE id = $5`,
		decision, reason, by, tx.now.String(), id); err != nil {
		return err
	}
	return tx.record(ralph.Event{TaskID: p.TaskID, SessionID: p.SessionID},
		ralph.PermissionDecided{PermissionID: id, Decision: decision, By: by})
}

// AnswerPermission is a person's answer to an open question. What is denied without
// a word is denied with one that helps the agent.
func (tx *Tx) AnswerPermission(id int64, allow bool, reason, by string) error {
	if allow {
		return tx.DecidePermission(id, "allow", reason, by)
	}
	if reason == "" {
		reason = "denied by " + by + ". Do without it, or signal blocked (external) and say what you need."
	}
	return tx.DecidePermission(id, "deny", reason, by)
}

// closePermissions denies what a session that ends still waits for.
func (tx *Tx) closePermissions(session string) error {
	_, err := tx.exec(`UPDATE permission_requests SET decision = 'deny', reason = 'the session ended', decided_at = $1 WHERE decided_at = '' AND session_id = $2`,
		tx.now.String(), session)
	return err
}
