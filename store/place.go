package store

import (
	"database/sql"
	"errors"

	"ralph"
)

// Root is the root of the project that the queue is of, relative to the top of its
// work tree; "" if it has not been seen yet.
func (tx *Tx) Root() (root string, err error) {
	err = tx.row(`SELECT root FROM project WHERE id = 1`).Scan(&root)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return root, err
}

// SetRoot says which folder the queue is of.
func (tx *Tx) SetRoot(root string) error {
	_, err := tx.exec(`INSERT INTO project (id, root) VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET root = excluded.root`, root)
	return err
}

// A State is what a work tree holds, by digests.
type State struct {
	Content   string // all that is in it
	Committed string // what of it is committed: a person who commits what a session left makes it theirs
}

// Left is a state that a session, or a command that ralph ran, made of another one.
type Left struct {
	ID       int64
	State    State
	Found    State  // what it was made of
	Session  string // "" for a command
	Accepted bool   // the session's done was accepted
	Checks   []ralph.Check
}

// KeepLeft notes what a session or a command left.
func (tx *Tx) KeepLeft(l Left) error {
	accepted := 0
	if l.Accepted {
		accepted = 1
	}
	_, err := tx.exec(`
		INSERT INTO left_states (content, committed, found_content, found_committed, session_id, accepted, created)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		l.State.Content, l.State.Committed, l.Found.Content, l.Found.Committed, l.Session, accepted, tx.now.String())
	return err
}

// LeftBy finds who left a state last, before the one of that id (0: of all); ok is
// false if people did.
func (tx *Tx) LeftBy(s State, before int64) (l Left, ok bool, err error) {
	if before == 0 {
		before = 1 << 62
	}
	var accepted int
	err = tx.row(`
		SELECT l.id, l.found_content, l.found_committed, l.session_id, l.accepted,
			coalesce((SELECT s.verify FROM sessions s WHERE s.id = l.session_id), '[]')
		FROM left_states l
		WHERE l.content = $1 AND l.committed = $2 AND l.id < $3 ORDER BY l.id DESC LIMIT 1`, s.Content, s.Committed, before).
		Scan(&l.ID, &l.Found.Content, &l.Found.Committed, &l.Session, &accepted, column(&l.Checks))
	l.State, l.Accepted = s, accepted == 1
	ok, err = found(err)
	return l, ok, err
}

// NoteRedSuite records that what verifies the project fails before a run has begun
// any work, and what follows: in a word, and for people in a sentence, or "".
func (tx *Tx) NoteRedSuite(run int64, onRed, reason, follows string, checks []ralph.Check) error {
	return tx.record(ralph.Event{RunID: run},
		ralph.BaselineRed{Reason: reason, OnRed: onRed, Follows: follows, Checks: checks})
}
