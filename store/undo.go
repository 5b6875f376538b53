package store

import "ralph"

// An Undo takes back what was merged of a task.
type Undo struct {
	Change ralph.Change // the reverse, with the new session's id; its Undo says what becomes of the task
	By     string       // the person
	Why    string       // for the task's next session; "" if it is called off
}

// Undoable returns the change of a completed task that was merged last. The error wraps [ralph.ErrConflict] if there is
// nothing to take back.
func (tx *Tx) Undoable(task int64) (c ralph.Change, err error) {
	t, err := tx.Task(task)
	if err != nil {
		return c, err
	}
	c, ok, err := changes.first(tx, `WHERE c.task_id = $1 AND c.state = 'merged' ORDER BY c.id DESC`, task)
	switch {
	case err != nil:
		return c, err
	case t.Status != ralph.Completed:
		return c, ralph.Conflict("TASK-%d is %s: only what a completed task has merged can be undone", task, t.Status)
	case !ok || c.Undo != "":
		return c, refused(ralph.RetryTask, task, "TASK-%d has merged no change", task)
	}
	return c, nil
}

// Undo queues the reverse of what a task has merged. The task is merging until that has been merged, and gets the
// change's status then; if it cannot be merged, the task stays completed.
func (tx *Tx) Undo(u Undo) error {
	task := u.Change.TaskID
	if _, err := tx.Undoable(task); err != nil {
		return err
	}
	t, err := tx.Task(task)
	if err != nil {
		return err
	}
	attempt, err := value[int](tx, `SELECT count(*) + 1 FROM sessions WHERE task_id = $1 AND role <> 'review'`, task)
	if err != nil {
		return err
	}
	said := "undone by " + u.By
	if u.Why != "" {
		said += ": " + u.Why
	}
	insert, args := inserting("sessions", cells{
		"id": u.Change.SessionID, "task_id": task, "attempt": attempt, "origin": ralph.FromHuman, "worker": u.By,
		"discipline": t.Discipline, "current_state": ralph.PhaseDone, "ending": ralph.Finished,
		"outcome": ralph.OutcomeSuccess, "outcome_reason": said, "cost_known": true,
		"started_at": tx.now, "updated_at": tx.now, "completed_at": tx.now,
	})
	if _, err := tx.exec(insert, args...); err != nil {
		return err
	}
	if u.Why != "" {
		if _, err := tx.AddComment(ralph.Comment{
			TaskID: task, Author: u.By, AuthorKind: ralph.ByHuman, Kind: ralph.Note,
			Body: "What was done for this task is undone: " + u.Why,
		}); err != nil {
			return err
		}
	}
	if err := tx.Move(task, ralph.Merging, ralph.Person, "is being "+said); err != nil {
		return err
	}
	c := u.Change
	c.State, c.Reason = ralph.Queued, said
	_, err = tx.AddChange(c)
	return err
}

// undone ends the task of a change that has taken back what it had been merged.
func (tx *Tx) undone(c ralph.Change) error {
	if err := tx.Move(c.TaskID, c.Undo, ralph.Merger, c.Reason); err != nil {
		return err
	}
	return tx.Derive(c.TaskID)
}

// notUndone takes a change out of the queue that was to take back what its task has been merged. That stays.
func (tx *Tx) notUndone(c ralph.Change, why string) error {
	if err := tx.SetChange(c.ID, c.State, ralph.Dropped); err != nil {
		return err
	}
	if err := tx.set("changes", c.ID, cells{"reason": why}); err != nil {
		return err
	}
	if err := tx.record(ofChange(c), ralph.ChangeDropped{ChangeID: c.ID, Reason: why}); err != nil {
		return err
	}
	return tx.Move(c.TaskID, ralph.Completed, ralph.Merger, "completed still, as it could not be undone: "+why)
}
