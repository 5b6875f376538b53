package store

import (
	"ralph"
	"ralph/signals"
)

// An Undo takes back what was merged of a task.
type Undo struct {
	Change ralph.Change // the reverse, with the new session's id; its Undo says what becomes of its task
	By     string       // the person
	Why    string       // for the task's next session; "" if it is called off
}

// Undoable returns what of a completed task has been merged and is not undone, the newest first. The error wraps
// [ralph.ErrConflict] if there is nothing to take back.
func (tx *Tx) Undoable(task int64) (list []ralph.Change, err error) {
	t, err := tx.Task(task)
	if err != nil {
		return nil, err
	}
	merged, err := changes.all(tx, `WHERE c.task_id = $1 AND c.state = 'merged' ORDER BY c.id DESC`, task)
	if err != nil {
		return nil, err
	}
	for _, c := range merged {
		if c.Undo != "" {
			break
		}
		if c.Commit != "" { // else the target had it already
			list = append(list, c)
		}
	}
	switch {
	case len(list) == 0 && len(merged) > 0 && merged[0].Undo != "":
		return nil, ralph.Conflict("TASK-%d is undone already, by commit %[2]s: "+
			"`git revert %[2]s` brings its work back as it was, a session does it anew", task, merged[0].Commit)
	case t.Status != ralph.Completed:
		return nil, ralph.Conflict("TASK-%d is %s: only what a completed task has merged can be undone", task, t.Status)
	case len(list) == 0:
		return nil, refused(ralph.RetryTask, task, "TASK-%d has merged no change", task)
	}
	return list, nil
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
	said := u.said()
	insert, args := inserting("sessions", cells{
		"id": u.Change.SessionID, "task_id": task, "attempt": attempt, "origin": ralph.FromHuman, "worker": u.By,
		"discipline": t.Discipline, "current_state": ralph.PhaseDone, "ending": ralph.Finished,
		"outcome": ralph.OutcomeSuccess, "outcome_reason": said, "cost_known": true,
		"started_at": tx.Now(), "updated_at": tx.Now(), "completed_at": tx.Now(),
	})
	if err := tx.do(insert, args...); err != nil {
		return err
	}
	if err := tx.sayWhy(u); err != nil {
		return err
	}
	if err := tx.Move(task, ralph.Merging, ralph.Person, "is being "+said); err != nil {
		return err
	}
	c := u.Change
	c.State, c.Reason = ralph.Queued, said
	_, err = tx.AddChange(c)
	return err
}

// said says who undid it, and why.
func (u Undo) said() string {
	if u.Why == "" {
		return "undone by " + u.By
	}
	return "undone by " + u.By + ": " + u.Why
}

// sayWhy tells the task's next session why.
func (tx *Tx) sayWhy(u Undo) error {
	if u.Why == "" {
		return nil
	}
	_, err := tx.AddComment(ralph.Comment{
		TaskID: u.Change.TaskID, Author: u.By, AuthorKind: ralph.ByHuman, Kind: ralph.Note,
		Body: "What was done for this task is undone: " + u.Why,
	})
	return err
}

// UndoneAlready gives the task of an undo its status where nothing is left to take back: people have done that.
func (tx *Tx) UndoneAlready(u Undo, how string) error {
	if _, err := tx.Undoable(u.Change.TaskID); err != nil {
		return err
	}
	if err := tx.sayWhy(u); err != nil {
		return err
	}
	if err := tx.Move(u.Change.TaskID, u.Change.Undo, ralph.Person, u.said()+" ("+how+")"); err != nil {
		return err
	}
	return tx.startOver(u.Change.TaskID, u.said())
}

// undone ends the task of a change that has taken back what it had been merged.
func (tx *Tx) undone(c ralph.Change) error {
	if err := tx.Move(c.TaskID, c.Undo, ralph.Merger, c.Reason); err != nil {
		return err
	}
	return tx.startOver(c.TaskID, c.Reason)
}

// notUndone takes a change out of the queue that was to take back what its task has been merged. That stays. Unless
// a person dropped the change, the inbox says so.
func (tx *Tx) notUndone(c ralph.Change, why string, person bool) error {
	if err := tx.SetChange(c.ID, c.State, ralph.Dropped); err != nil {
		return err
	}
	if err := tx.set("changes", c.ID, cells{"reason": why}); err != nil {
		return err
	}
	if err := tx.record(ofChange(c), ralph.ChangeDropped{ChangeID: c.ID, Reason: why}); err != nil {
		return err
	}
	if !person {
		if _, err := tx.signal(c.TaskID, c.SessionID, "ralph", signals.Flag{
			What: "what it has merged could not be taken back: " + why, Severity: "warning", Category: "incomplete_prior",
		}); err != nil {
			return err
		}
	}
	return tx.Move(c.TaskID, ralph.Completed, ralph.Merger, "completed still, as it could not be undone: "+why)
}
