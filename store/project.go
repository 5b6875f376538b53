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

// NoteRedSuite records that verification fails before a run has begun any work. onRed is the
// configured reaction; consequence says in a sentence what happens next, or is "".
func (tx *Tx) NoteRedSuite(run int64, onRed, reason, consequence string, checks []ralph.Check) error {
	return tx.record(ralph.Event{RunID: run},
		ralph.BaselineRed{Reason: reason, OnRed: onRed, Consequence: consequence, Checks: checks})
}
