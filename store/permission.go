package store

import (
	"cmp"
	"context"
	"fmt"

	"ralph"
)

var permissionRows = reads("permission_requests", func(p *ralph.Permission) []field {
	return []field{
		{"id", &p.ID},
		{"task_id", &p.TaskID},
		{"session_id", &p.SessionID},
		{"tool", &p.Tool},
		{"input", &p.Input},
		{"decision", &p.Decision},
		{"rule", &p.Rule},
		{"reason", &p.Reason},
		{"decided_by", &p.DecidedBy},
		{"created", &p.Created},
		{"decided_at", &p.DecidedAt},
		{"expires", &p.Expires},
	}
})

// AddPermission records an agent's request to use a tool, in a transaction of its own. The request
// stays open if its decision is "ask".
func (db *DB) AddPermission(ctx context.Context, p ralph.Permission) (id int64, err error) {
	err = db.Tx(ctx, func(tx *Tx) error {
		if err := tx.CheckSession(p.TaskID, p.SessionID); err != nil {
			return err
		}
		decided := tx.Now()
		if p.Decision == "ask" {
			decided = ralph.Time{}
		}
		id, err = tx.add("permission_requests", cells{
			"task_id":    p.TaskID,
			"session_id": p.SessionID,
			"tool":       p.Tool,
			"input":      p.Input,
			"decision":   p.Decision,
			"rule":       p.Rule,
			"reason":     p.Reason,
			"created":    tx.Now(),
			"decided_at": decided,
			"expires":    p.Expires,
		})
		if err != nil || p.Decision != "ask" {
			return err
		}
		return tx.record(ralph.Event{TaskID: p.TaskID, SessionID: p.SessionID},
			ralph.PermissionAsked{PermissionID: id, Tool: p.Tool, Input: p.Input, Expires: p.Expires})
	})
	return id, err
}

// Permission returns one request.
func (tx *Tx) Permission(id int64) (ralph.Permission, error) {
	return permissionRows.one(tx, fmt.Sprintf("permission %d", id), ralph.ListPermissions, `WHERE id = $1`, id)
}

// Permissions lists a session's requests, oldest first; with session "" it lists the open requests
// of all sessions.
func (tx *Tx) Permissions(session string) ([]ralph.Permission, error) {
	if session == "" {
		return permissionRows.all(tx, `WHERE decided_at = '' ORDER BY id`)
	}
	return permissionRows.all(tx, `WHERE session_id = $1 ORDER BY id`, session)
}

// DecidePermission answers an open request with "allow" or "deny". By is a person's name, or "" for
// ralph itself. The error wraps [ralph.ErrConflict] if it has been answered.
func (tx *Tx) DecidePermission(id int64, decision, reason, by string) error {
	p, err := tx.Permission(id)
	if err != nil {
		return err
	}
	if !p.DecidedAt.IsZero() {
		return ralph.Conflict("permission %d is decided already by %s: %s", id, cmp.Or(p.DecidedBy, "ralph"), p.Decision)
	}
	if err := tx.set("permission_requests", id, cells{
		"decision": decision, "reason": reason, "decided_by": by, "decided_at": tx.Now(),
	}); err != nil {
		return err
	}
	return tx.record(ralph.Event{TaskID: p.TaskID, SessionID: p.SessionID},
		ralph.PermissionDecided{PermissionID: id, Decision: decision, By: by})
}

// AnswerPermission is a person's answer to an open request. A denial without a reason gets one that
// helps the agent.
func (tx *Tx) AnswerPermission(id int64, allow bool, reason, by string) error {
	if allow {
		return tx.DecidePermission(id, "allow", reason, by)
	}
	if reason == "" {
		reason = "denied by " + by + ". Do without it, or signal blocked (external) and say why you need it."
	}
	return tx.DecidePermission(id, "deny", reason, by)
}

// closePermissions denies the open requests of a session that ends.
func (tx *Tx) closePermissions(session string) error {
	return tx.do(`
		UPDATE permission_requests SET decision = 'deny', reason = 'the session ended', decided_at = $1
		WHERE decided_at = '' AND session_id = $2`, tx.Now(), session)
}
