package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"ralph"
)

// AddTask adds a pending or proposed task with its dependencies. The store sets its id, times and
// status reason. Feature and discipline must exist.
func (tx *Tx) AddTask(t ralph.Task, source string) (int64, error) {
	if err := checkTask(t); err != nil {
		return 0, err
	}
	if t.Status == "" {
		t.Status = ralph.Pending
	}
	if t.Origin == "" {
		t.Origin = ralph.ByHuman
	}
	r, err := tx.definition(t)
	if err != nil {
		return 0, err
	}
	r["status"], r["origin"], r["created"] = t.Status, t.Origin, tx.Now()
	r["role"], r["marks"] = cmp.Or(t.Role, ralph.RoleWork), asJSON(append([]string{}, t.Marks...))
	r["external_id"], r["external_source"] = t.ExternalID, t.ExternalSource
	id, err := tx.add("tasks", r)
	if err != nil {
		return 0, err
	}
	created := ralph.TaskCreated{Title: t.Title, Status: t.Status, Origin: t.Origin}
	if err := tx.record(ralph.Event{TaskID: id}, created); err != nil {
		return 0, err
	}
	for _, on := range t.DependsOn {
		if err := tx.AddDependency(id, on, source); err != nil {
			return 0, err
		}
	}
	return id, tx.Derive(id)
}

// UpdateTask changes the fields that a person may edit: title, description, acceptance, verification, files, priority,
// feature, discipline, model and agent.
func (tx *Tx) UpdateTask(t ralph.Task) error {
	if err := checkTask(t); err != nil {
		return err
	}
	r, err := tx.definition(t)
	if err != nil {
		return err
	}
	before, err := tx.Task(t.ID)
	if err != nil {
		return err
	}
	changes := ralph.Changes(before, t)
	_, verify := changes["verify"]
	if _, files := changes["files"]; verify || files { // the marks describe the old terms
		r["marks"] = "[]"
	}
	if err := tx.set("tasks", t.ID, r); err != nil {
		return err
	}
	if err := tx.editedByPeople(t.ID); err != nil {
		return err
	}
	if err := tx.record(ralph.Event{TaskID: t.ID}, ralph.TaskUpdated{
		Title: t.Title, Changes: changes,
	}); err != nil {
		return err
	}
	if before.Status != ralph.Merging || !ralph.NewContract(before, t, false, false) {
		return nil
	}
	// The change was verified against an earlier definition.
	const why = "the task was changed before its change was merged"
	if err := tx.withdraw(t.ID, true, why); err != nil {
		return err
	}
	if err := tx.Move(t.ID, ralph.Pending, ralph.Person, why); err != nil {
		return err
	}
	return tx.Derive(t.ID)
}

// editedByPeople marks the task's open session: the task's definition was changed by a person, not
// by the session.
func (tx *Tx) editedByPeople(task int64) error {
	return tx.do(`UPDATE sessions SET people_edited = 1 WHERE task_id = $1 AND completed_at = ''`, task)
}

// Retry puts a failed, cancelled or rejected task back into the queue, with all counters at zero. A task that waits
// after lost sessions is tried again at once. For any other task the error wraps [ralph.ErrConflict];
// [Tx.RetryCompleted] also takes completed ones.
func (tx *Tx) Retry(id int64, reason string) error {
	t, err := tx.Task(id)
	if err != nil {
		return err
	}
	if t.Status == ralph.Completed {
		return refused(ralph.UndoOrRepeat, id, "TASK-%d %s", id, t.Is())
	}
	return tx.RetryCompleted(id, reason)
}

// RetryCompleted is [Tx.Retry] for completed tasks too. Their merged changes stay.
func (tx *Tx) RetryCompleted(id int64, reason string) error {
	t, err := tx.Task(id)
	if err != nil {
		return err
	}
	if t.LostCount > 0 && t.Status != ralph.InProgress && !t.Status.Ended() {
		return errors.Join(tx.Renew(id), tx.dropBlockers(id, reason))
	}
	if !t.Status.Ended() {
		instead := ralph.TellTask
		if t.Status == ralph.Proposed || t.NeedsPerson() {
			instead = ralph.ShowInbox
		}
		return refused(instead, id, "TASK-%d %s, and only an ended task can be retried", id, t.Is())
	}
	if err := tx.Move(id, ralph.Pending, ralph.Person, reason); err != nil {
		return err
	}
	return tx.startOver(id, reason)
}

// startOver resets all counters of a task.
func (tx *Tx) startOver(id int64, reason string) error {
	if err := tx.set("tasks", id, cells{
		"stuck_count": 0, "verify_failures": 0, "attempts": 0, "prompt_too_long": 0, "lost_count": 0, "times_sent_back": 0,
		"not_before": "",
	}); err != nil {
		return err
	}
	if err := tx.dropBlockers(id, reason); err != nil {
		return err
	}
	return tx.Derive(id)
}

// Next returns the first task of the queue; ok is false if there is none. Tasks whose last session
// was lost come after the others, once they are due.
func (tx *Tx) Next() (t ralph.Task, ok bool, err error) {
	t, ok, err = taskRows.first(tx, `WHERE t.status = 'pending' AND t.lost_count = 0 ORDER BY `+queueOrder)
	if err == nil && !ok {
		t, ok, err = tx.NextLost()
		ok = ok && !t.NotBefore.After(tx.Now().Time)
	}
	return t, ok, err
}

// Queue lists at most limit tasks that could be claimed now, in the order of [Tx.Next].
func (tx *Tx) Queue(limit int) ([]ralph.Task, error) {
	list, err := taskRows.all(tx, `
		WHERE t.status = 'pending' AND t.lost_count = 0 ORDER BY `+queueOrder+` LIMIT $1`, limit)
	if err != nil || len(list) == limit {
		return list, err
	}
	lost, err := taskRows.all(tx, `WHERE t.status = 'pending' AND t.lost_count > 0 AND t.not_before <= $1
		ORDER BY t.not_before, t.id LIMIT $2`, tx.Now(), limit-len(list))
	return append(list, lost...), err
}

// WorkedOn lists the tasks in progress or merging.
func (tx *Tx) WorkedOn() ([]int64, error) {
	return values[int64](tx, `SELECT id FROM tasks WHERE status IN ('in_progress', 'merging') ORDER BY id`)
}

// PutBehind moves a task behind all others of its priority. If none of those waits, it goes behind
// the next task of the queue and gets that one's priority.
func (tx *Tx) PutBehind(id int64) error {
	t, err := tx.Task(id)
	if err != nil {
		return err
	}
	queue, err := tx.Queue(2)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(queue, func(o ralph.Task) bool { return o.ID != id })
	if i >= 0 && queue[i].Priority > t.Priority {
		return tx.MoveRank(id, queue[i].ID, true)
	}
	if err := tx.do(`
		UPDATE tasks SET rank = (SELECT max(rank) + 1 FROM tasks WHERE priority = $1), updated = $2 WHERE id = $3`,
		t.Priority, tx.Now(), id); err != nil {
		return err
	}
	return tx.record(ralph.Event{TaskID: id}, ralph.TaskUpdated{Skipped: true})
}

// MoveRank puts a task directly before or after another one in the queue, and gives it the other's
// priority. The tasks in front keep their order.
func (tx *Tx) MoveRank(id, other int64, after bool) error {
	if id == other {
		return &ralph.FieldError{Field: fmt.Sprintf("TASK-%d", id), Problem: "cannot be moved relative to itself"}
	}
	t, err := tx.Task(id)
	if err != nil {
		return err
	}
	o, err := tx.Task(other)
	if err != nil {
		return err
	}
	for _, t := range []ralph.Task{t, o} {
		if t.Status.Ended() && t.Status != ralph.Failed {
			return ralph.Conflict("TASK-%d %s, and has no place in the queue", t.ID, t.Is())
		}
	}
	queue, err := values[int64](tx, `
		SELECT t.id FROM tasks t
		WHERE t.priority = $1 AND t.status NOT IN ('completed', 'rejected', 'cancelled')
		ORDER BY `+queueOrder, o.Priority)
	if err != nil {
		return err
	}
	var front []int64
	for _, q := range queue {
		if q == id {
			continue
		}
		if q == other && !after {
			front = append(front, id)
		}
		front = append(front, q)
		if q == other {
			break
		}
	}
	if after {
		front = append(front, id)
	}
	// Negative ranks come before tasks that were never moved, which have rank 0.
	if err := tx.set("tasks", id, cells{"rank": 0, "priority": o.Priority, "updated": tx.Now()}); err != nil {
		return err
	}
	if err := tx.editedByPeople(id); err != nil {
		return err
	}
	for i, q := range front {
		if err := tx.set("tasks", q, cells{"rank": i - len(front)}); err != nil {
			return err
		}
	}
	return tx.record(ralph.Event{TaskID: id}, ralph.TaskUpdated{Priority: &o.Priority, Moved: other})
}
