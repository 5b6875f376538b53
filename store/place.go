package store

import (
	"ralph"
)

// Root returns the project's root relative to the top of its work tree; "" if it is not known yet.
func (tx *Tx) Root() (root string, err error) {
	return value[string](tx, `SELECT coalesce(max(root), '') FROM project`)
}

// SetRoot records the project's root.
func (tx *Tx) SetRoot(root string) error {
	return tx.put("project", "id", cells{"id": 1, "root": root})
}

// A State identifies the content of a work tree by digests.
type State struct {
	Content   string // the whole content
	Committed string // the committed part: a person who commits a session's leftovers makes them their own
}

// A Left is a state of the work tree that a session, or a command that ralph ran, produced.
type Left struct {
	ID       int64
	State    State
	Found    State  // the state before
	Session  string // "" for a command
	Accepted bool   // the session's done was accepted
	Checks   []ralph.Check
}

// AddLeft records a state that a session or a command left.
func (tx *Tx) AddLeft(l Left) error {
	_, err := tx.add("left_states", cells{
		"content":         l.State.Content,
		"committed":       l.State.Committed,
		"found_content":   l.Found.Content,
		"found_committed": l.Found.Committed,
		"session_id":      l.Session,
		"accepted":        l.Accepted,
		"created":         tx.now,
	})
	return err
}

// LeftBy finds the latest record of a state, of those before an id (0: of all); ok is false if
// there is none, that is, if people made the state.
func (tx *Tx) LeftBy(s State, before int64) (l Left, ok bool, err error) {
	if before == 0 {
		before = 1 << 62
	}
	err = tx.row(`
		SELECT l.id, l.found_content, l.found_committed, l.session_id, l.accepted,
			coalesce((SELECT s.verify FROM sessions s WHERE s.id = l.session_id), '[]')
		FROM left_states l
		WHERE l.content = $1 AND l.committed = $2 AND l.id < $3 ORDER BY l.id DESC LIMIT 1`, s.Content, s.Committed, before).
		Scan(&l.ID, &l.Found.Content, &l.Found.Committed, &l.Session, &l.Accepted, column(&l.Checks))
	l.State = s
	ok, err = found(err)
	return l, ok, err
}

// NoteRedSuite records that verification fails before a run has begun any work. onRed is the
// configured reaction; consequence says in a sentence what happens next, or is "".
func (tx *Tx) NoteRedSuite(run int64, onRed, reason, consequence string, checks []ralph.Check) error {
	return tx.record(ralph.Event{RunID: run},
		ralph.BaselineRed{Reason: reason, OnRed: onRed, Consequence: consequence, Checks: checks})
}
