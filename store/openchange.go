package store

import "ralph"

var changeRows = reads("changes c", func(c *ralph.Change) []field {
	return []field{
		{"c.id", &c.ID},
		{"c.task_id", &c.TaskID},
		{"c.session_id", &c.SessionID},
		{"c.base", &c.Base},
		{"c.head", &c.Head},
		{"c.tree", &c.Tree},
		{"c.state", &c.State},
		{"c.from_commit", &c.From},
		{"c.to_commit", &c.To},
		{"c.own_commit", &c.Commit},
		{"c.own_base", &c.Onto},
		{"c.files", column(&c.Files)},
		{"c.reason", &c.Reason},
		{"c.conflicts", column(&c.Conflicts)},
		{"c.undo", &c.Undo},
		{"coalesce(nullif(c.proof, ''), 'null')", column(&c.Proof)},
		{"c.created", &c.Created},
		{"c.updated", &c.Updated},
		{"c.branch", &c.Branch},
	}
})

// unsettled selects changes that are checked no longer, and that are not in a final state.
const unsettled = `c.state NOT IN ('checking', 'merged', 'sent_back', 'dropped')`

// OpenChange returns the task's change that is not in a final state; ok is false if it has none.
func (tx *Tx) OpenChange(task int64) (c ralph.Change, ok bool, err error) {
	return changeRows.first(tx, `WHERE c.task_id = $1 AND `+unsettled, task)
}

// ofChange returns an event about a change, without its payload.
func ofChange(c ralph.Change) ralph.Event {
	return ralph.Event{TaskID: c.TaskID, SessionID: c.SessionID}
}

// dropOpen drops the open change of a task, if any.
func (tx *Tx) dropOpen(task int64, why string) error {
	c, ok, err := tx.OpenChange(task)
	if err != nil || !ok {
		return err
	}
	if c.State == ralph.Moving {
		return moving(c)
	}
	return tx.drop(c, why)
}

// drop drops a change.
func (tx *Tx) drop(c ralph.Change, why string) error {
	if err := tx.set("changes", c.ID, cells{"state": ralph.Dropped, "reason": why, "updated": tx.Now()}); err != nil {
		return err
	}
	return tx.record(ofChange(c), ralph.ChangeDropped{ChangeID: c.ID, Reason: why})
}

// moving is the error for a change that can no longer be withdrawn.
func moving(c ralph.Change) error {
	return ralph.Conflict("the change of TASK-%d is being merged this moment; try again when it has been",
		c.TaskID)
}
