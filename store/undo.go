package store

import (
	"cmp"

	"ralph"
)

// An Undo reverses a task's merged work, or restores it after an undo.
type Undo struct {
	Change ralph.Change // the reverse, with the new session's id; its Undo is the status that its task gets
	By     string       // the person
	Why    string       // for the task's next session; may be ""
}

// Undoable returns the merged changes of a task that an undo reverses, newest first, and the task's next status:
// [ralph.Cancelled] if its work is undone, [ralph.Completed] if an undo is reversed and the work comes back. It goes by
// the merges alone, not by the task's status. The error wraps [ralph.ErrConflict] if there is nothing to reverse, or if
// the task is being worked on or merged.
func (tx *Tx) Undoable(task int64) (list []ralph.Change, to ralph.Status, err error) {
	t, err := tx.Task(task)
	if err != nil {
		return nil, "", err
	}
	switch t.Status {
	case ralph.InProgress:
		return nil, "", refused(ralph.CancelTask, task, "TASK-%d is being worked on", task)
	case ralph.Merging:
		c, _, err := tx.OpenChange(task)
		if err == nil && c.Undo != "" { // once more would reverse this one
			err = ralph.Conflict("TASK-%d %s already", task, t.StatusReason)
		}
		return nil, "", cmp.Or(err, ralph.Conflict("a change of TASK-%d is being merged; try again when it has been", task))
	}
	merged, err := changeRows.all(tx, `WHERE c.task_id = $1 AND c.state = 'merged' AND c.own_commit <> ''
		ORDER BY c.id DESC`, task)
	if err != nil {
		return nil, "", err
	}
	list, to = reversed(merged)
	switch {
	case len(list) == 0:
		return nil, "", ralph.Conflict("TASK-%d has merged no change that could be undone", task)
	case to == ralph.Completed && t.Status != ralph.Cancelled:
		return nil, "", refused(ralph.CancelTask, task, "TASK-%d is undone already, and is to be done again", task)
	}
	return list, to, nil
}

// LatestMerge returns the change that a task has merged last, which may be an undo.
func (tx *Tx) LatestMerge(task int64) (c ralph.Change, ok bool, err error) {
	return changeRows.first(tx, `WHERE c.task_id = $1 AND c.state = 'merged' AND c.own_commit <> ''
		ORDER BY c.id DESC`, task)
}

// Undo queues the reverse of a task's merged work. The task is merging until the reverse is merged, and then gets the
// status of [Tx.Undoable]. If the reverse cannot be merged, it gets the other one of the two.
func (tx *Tx) Undo(u Undo) error {
	task := u.Change.TaskID
	if _, _, err := tx.Undoable(task); err != nil {
		return err
	}
	t, err := tx.Task(task)
	if err != nil {
		return err
	}
	said := u.said()
	insert, args := inserting("sessions", cells{
		"id": u.Change.SessionID, "task_id": task, "origin": ralph.FromHuman, "worker": u.By,
		"role": ralph.RoleUndo, "attempt": 0,
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

// said names the person and the reason.
func (u Undo) said() string {
	said := "undone by " + u.By
	if u.Change.Undo == ralph.Completed {
		said = "brought back by " + u.By
	}
	if u.Why == "" {
		return said
	}
	return said + ": " + u.Why
}

// sayWhy tells the task's next session why.
func (tx *Tx) sayWhy(u Undo) error {
	if u.Why == "" || u.Change.Undo == ralph.Completed {
		return nil
	}
	return tx.note(u.Change.TaskID, "The work done for this task was undone: "+u.Why, u.By, nil)
}

// UndoneAlready gives the task of an undo its status without a change, because people have reversed the commits
// themselves.
func (tx *Tx) UndoneAlready(u Undo, how string) error {
	if _, _, err := tx.Undoable(u.Change.TaskID); err != nil {
		return err
	}
	t, err := tx.Task(u.Change.TaskID)
	if err != nil {
		return err
	}
	if t.Status == u.Change.Undo {
		return ralph.Conflict("TASK-%d %s already: %s", t.ID, t.Is(), how)
	}
	if err := tx.sayWhy(u); err != nil {
		return err
	}
	return tx.Move(u.Change.TaskID, u.Change.Undo, ralph.Person, u.said()+" ("+how+")")
}
