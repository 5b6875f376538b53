package store

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"ralph"
	"ralph/signals"
)

// inQueue selects changes in the merge queue.
const inQueue = `c.state IN ('queued', 'verifying', 'moving')`

// Change returns one change. The error wraps [ralph.ErrNotFound] if there is none.
func (tx *Tx) Change(id int64) (ralph.Change, error) {
	return changeRows.one(tx, fmt.Sprintf("change %d", id), "", `WHERE c.id = $1`, id)
}

// Changes lists changes, newest first; task 0 means all tasks, limit 0 means all changes.
func (tx *Tx) Changes(task int64, limit int) ([]ralph.Change, error) {
	var by filter
	if task != 0 {
		by.and("c.task_id = ?", task)
	}
	return changeRows.all(tx, by.where()+` ORDER BY c.id DESC`+by.page(limit, 0), by.args...)
}

// ChangesBeside lists all changes of the tasks whose sessions a filter selects, newest first.
func (tx *Tx) ChangesBeside(f SessionFilter) ([]ralph.Change, error) {
	by := f.matching()
	return changeRows.all(tx,
		`WHERE c.task_id IN (SELECT s.task_id FROM sessions s `+by.where()+`) ORDER BY c.id DESC`, by.args...)
}

// SentBack counts how often the work of a filter's sessions was sent back, by task.
func (tx *Tx) SentBack(f SessionFilter) (map[int64]int, error) {
	by := f.matching()
	return byKey[int64, int](tx, `
		SELECT s.task_id, count(*) FROM sessions s
		JOIN events e ON e.task_id = s.task_id AND e.session_id = s.id
			AND e.type = '`+ralph.EventType(ralph.ChangeSentBack{})+`'
		`+by.where()+` GROUP BY s.task_id`, by.args...)
}

// ChangeOf returns a task's newest change that is not being checked; ok is false if there is none.
func (tx *Tx) ChangeOf(task int64) (c ralph.Change, ok bool, err error) {
	return changeRows.first(tx, `WHERE c.task_id = $1 AND c.state <> 'checking' ORDER BY c.id DESC`, task)
}

// QueuedChanges lists the changes in the merge queue by place.
func (tx *Tx) QueuedChanges() ([]ralph.Change, error) {
	return changeRows.all(tx, `WHERE `+inQueue+` ORDER BY c.place, c.id`)
}

// Line lists the changes that are being checked or queued, by place.
func (tx *Tx) Line() ([]ralph.Change, error) {
	return changeRows.all(tx, `WHERE (`+inQueue+` OR c.state = 'checking') ORDER BY c.place, c.id`)
}

// nextPlace selects the place at the end of the line.
const nextPlace = `SELECT coalesce(max(place), 0) + 1 FROM changes`

// JoinLine puts the change of an open session at the end of the line, where it is checked until [Tx.LeaveLine] or the
// session's decision. A change that is in the line with the same head keeps its place.
func (tx *Tx) JoinLine(c ralph.Change) error {
	if err := tx.CheckSession(c.TaskID, c.SessionID); err != nil {
		return err
	}
	there, err := value[bool](tx, `
		SELECT EXISTS (SELECT 1 FROM changes WHERE session_id = $1 AND head = $2 AND state = 'checking')`,
		c.SessionID, c.Head)
	if err != nil || there {
		return err
	}
	if err := tx.LeaveLine(c.SessionID); err != nil {
		return err
	}
	place, err := value[int64](tx, nextPlace)
	if err == nil {
		c.State = ralph.Checking
		_, err = tx.insertChange(c, place)
	}
	return err
}

// LeaveLine removes a session's change from the line if it is still being checked.
func (tx *Tx) LeaveLine(session string) error {
	return tx.do(`DELETE FROM changes WHERE session_id = $1 AND state = 'checking'`, session)
}

// MergesAlone returns the first open task whose changes were sent back at least timesSentBack times; 0 if there is
// none. No other task is merged before it.
func (tx *Tx) MergesAlone(timesSentBack int) (int64, error) {
	return value[int64](tx, mergesAlone, timesSentBack)
}

const mergesAlone = `SELECT coalesce(min(t.id), 0) FROM tasks t
	WHERE t.times_sent_back >= $1 AND t.times_sent_back > 0 AND t.status IN ('pending', 'in_progress', 'merging')`

// AddChange stores the work that a session left in a workspace as a queued or held change. It drops the task's earlier
// open change. A checked change keeps its place in the line.
func (tx *Tx) AddChange(c ralph.Change) (int64, error) {
	if err := tx.dropOpen(c.TaskID, ralph.Superseded); err != nil {
		return c.ID, err
	}
	place, err := value[int64](tx, `SELECT coalesce(
		(SELECT max(place) FROM changes WHERE session_id = $1 AND state = 'checking'), (`+nextPlace+`))`, c.SessionID)
	if err = errors.Join(err, tx.LeaveLine(c.SessionID)); err == nil {
		c.ID, err = tx.insertChange(c, place)
	}
	if err == nil && c.State == ralph.Queued {
		err = tx.recordQueued(c)
	}
	return c.ID, err
}

func (tx *Tx) insertChange(c ralph.Change, place int64) (int64, error) {
	return tx.add("changes", cells{
		"task_id": c.TaskID, "session_id": c.SessionID, "base": c.Base, "head": c.Head, "tree": c.Tree, "state": c.State,
		"place": place, "undo": c.Undo, "reason": c.Reason, "conflicts": asJSON(append([]string{}, c.Conflicts...)),
		"created": tx.Now(), "updated": tx.Now(),
	})
}

// addSessionChange stores the work that a session left in a workspace. It is queued if the done was accepted.
func (tx *Tx) addSessionChange(s ralph.Session, d signals.Decision) error {
	c := *s.Change
	c.TaskID, c.SessionID, c.State = s.TaskID, s.ID, ralph.Held
	switch {
	case d.Status == ralph.Merging:
		c.State = ralph.Queued
	case d.SentBack != "":
		c.State, c.Reason, c.Conflicts = ralph.SentBack, d.SentBack, d.Conflicts
	}
	id, err := tx.AddChange(c)
	if err != nil || d.SentBack == "" {
		return err
	}
	if t, err := tx.Task(s.TaskID); err != nil || t.TimesSentBack >= d.TimesSentBack {
		return err // it was counted when its agent was told
	}
	return tx.countSentBack(ofChange(c), ralph.ChangeSentBack{ChangeID: id, Reason: d.SentBack, Conflicts: d.Conflicts})
}

// NoteSentBack counts a change as sent back within its session, because it conflicts with changes merged meanwhile. The
// session goes on, and its agent is told.
func (tx *Tx) NoteSentBack(s ralph.Session, reason string, conflicts []string) error {
	return tx.countSentBack(during(s), ralph.ChangeSentBack{Reason: reason, Conflicts: conflicts})
}

func (tx *Tx) countSentBack(e ralph.Event, b ralph.ChangeSentBack) error {
	t, err := tx.Task(e.TaskID)
	if err != nil {
		return err
	}
	b.Times = t.TimesSentBack + 1
	return errors.Join(tx.set("tasks", t.ID, cells{"times_sent_back": b.Times}), tx.record(e, b))
}

func (tx *Tx) recordQueued(c ralph.Change) error {
	return tx.record(ofChange(c), ralph.ChangeQueued{ChangeID: c.ID, Head: c.Head})
}

// ForgetChange drops a task's change that is held or was sent back, so that its next session starts without it. A
// change in the merge queue stays.
func (tx *Tx) ForgetChange(task int64, why string) error {
	c, ok, err := tx.ChangeOf(task)
	if err != nil || !ok || c.State != ralph.Held && c.State != ralph.SentBack {
		return err
	}
	return tx.drop(c, why)
}

// withdraw takes a task's change out of the queue because a person changed the task. The change is
// held for the next session, or dropped if keep is false.
func (tx *Tx) withdraw(task int64, keep bool, why string) error {
	c, ok, err := tx.OpenChange(task)
	switch {
	case err != nil || !ok:
		return err
	case c.State == ralph.Moving:
		return moving(c)
	case c.Undo != "" && keep:
		return refused(ralph.DropChange, task, "TASK-%d is being undone, and can be edited when it has been", task)
	case !keep:
		return tx.dropOpen(task, why)
	}
	return tx.set("changes", c.ID, cells{"state": ralph.Held, "reason": why, "updated": tx.Now()})
}

// SetChange moves a change from one state to another. The error wraps [ralph.ErrConflict] if its
// state is not from: a person may have withdrawn it.
func (tx *Tx) SetChange(id int64, from, to ralph.ChangeState) error {
	n, err := tx.exec(`UPDATE changes SET state = $1, updated = $2 WHERE id = $3 AND state = $4`, to, tx.Now(), id, from)
	if err == nil && n == 0 {
		err = ralph.Conflict("change %d is not %s any more", id, from)
	}
	return err
}

// BeginMove records the target's current commit, its next commit, and c's own part of the difference: its From, To,
// Commit and Files. From here on the change cannot be withdrawn: the ref alone decides whether it was merged.
func (tx *Tx) BeginMove(c ralph.Change) error {
	if err := tx.SetChange(c.ID, c.State, ralph.Moving); err != nil {
		return err
	}
	return tx.set("changes", c.ID, cells{
		"from_commit": c.From, "to_commit": c.To, "own_commit": c.Commit, "files": asJSON(c.Files), "branch": c.Branch,
	})
}

// unmoved clears the cells that [Tx.BeginMove] sets.
var unmoved = cells{"from_commit": "", "to_commit": "", "own_commit": "", "own_base": "", "files": "[]"}

// Requeue sends a change back to the start of the merge queue.
func (tx *Tx) Requeue(id int64, from ralph.ChangeState) error {
	if err := tx.SetChange(id, from, ralph.Queued); err != nil {
		return err
	}
	return tx.set("changes", id, unmoved)
}

// CompleteChange marks a change as merged and completes its task. run is the run that merged it. 0 means a command: its
// merge counts towards the run in progress, if any. behind is the reason why the person's branch lacks the change; ""
// if it has it.
func (tx *Tx) CompleteChange(c ralph.Change, run int64, into, behind string) error {
	if run == 0 {
		last, ok, err := tx.LastRun()
		if err != nil {
			return err
		}
		if ok && tx.Alive(last) {
			run = last.ID
		}
	}
	if err := tx.SetChange(c.ID, ralph.Moving, ralph.Merged); err != nil {
		return err
	}
	if err := tx.set("changes", c.ID, cells{"merged_run": run, "merged_at": tx.Now()}); err != nil {
		return err
	}
	e := ofChange(c)
	e.RunID = run
	merged := ralph.ChangeMerged{ChangeID: c.ID, Commit: c.To, Into: into, Behind: behind, Undo: c.Undo}
	if c.Undo != "" {
		merged.Commit, merged.Files = cmp.Or(c.Commit, c.To), len(c.Files)
		all, err := changeRows.all(tx, `WHERE c.task_id = $1 AND c.state = 'merged' AND c.own_commit <> '' AND c.id < $2
			ORDER BY c.id DESC`, c.TaskID, c.ID)
		if err != nil {
			return err
		}
		taken, _ := reversed(all)
		for _, t := range taken {
			merged.Reverses = append(merged.Reverses, t.Commit)
		}
	}
	if err := tx.record(e, merged); err != nil {
		return err
	}
	t, err := tx.Task(c.TaskID)
	if err != nil {
		return err
	}
	if err := tx.set("tasks", t.ID, cells{"times_sent_back": 0}); err != nil {
		return err
	}
	if c.Undo != "" {
		return tx.move(t, c.Undo, ralph.Merger, c.Reason)
	}
	why := fmt.Sprintf("merged into %s as %s; %s", into, ralph.ShortID(c.To), t.StatusReason)
	if behind != "" {
		why = fmt.Sprintf("passed as %s, not on %s at once: %s; %s", ralph.ShortID(c.To), into, behind, t.StatusReason)
	}
	return tx.move(t, ralph.Completed, ralph.Merger, why)
}

// SendBack takes a change that cannot be merged out of the queue. Its task is tried again; if blocked is
// not "", only after a person has resolved that blocker.
func (tx *Tx) SendBack(c ralph.Change, reason string, conflicts []string, blocked string) error {
	if c.Undo != "" {
		return tx.notUndone(c, reason, false)
	}
	if err := tx.SetChange(c.ID, c.State, ralph.SentBack); err != nil {
		return err
	}
	if err := tx.set("changes", c.ID, cells{"reason": reason, "conflicts": asJSON(conflicts)}); err != nil {
		return err
	}
	if err := tx.countSentBack(ofChange(c), ralph.ChangeSentBack{
		ChangeID: c.ID, Reason: reason, Conflicts: conflicts,
	}); err != nil {
		return err
	}
	return tx.leaveQueue(c.TaskID, reason, blocked)
}

// leaveQueue makes a merging task pending again, behind a blocker if blocked is not "".
func (tx *Tx) leaveQueue(task int64, reason, blocked string) error {
	if blocked != "" {
		if err := tx.addBlocker(task, blocked); err != nil {
			return err
		}
	}
	if err := tx.Move(task, ralph.Pending, ralph.Merger, reason); err != nil {
		return err
	}
	return tx.Derive(task)
}

// BlockChange holds a change that cannot be merged until a person has acted; its task waits behind a
// blocker.
func (tx *Tx) BlockChange(c ralph.Change, why string) error {
	if c.Undo != "" {
		return tx.notUndone(c, why, false)
	}
	if err := tx.SetChange(c.ID, c.State, ralph.Held); err != nil {
		return err
	}
	if err := tx.set("changes", c.ID, cells{"reason": why}); err != nil {
		return err
	}
	return tx.leaveQueue(c.TaskID, why, why)
}

// RetryChange puts a task's newest change back into the queue as it is, on behalf of a person.
func (tx *Tx) RetryChange(task int64, by string) error {
	t, err := tx.Task(task)
	if err != nil {
		return err
	}
	c, ok, err := tx.ChangeOf(task)
	switch {
	case err != nil:
		return err
	case !ok || c.State == ralph.Merged:
		return ralph.Conflict("TASK-%d has no change that could be merged", task)
	case c.State.Waits():
		return ralph.Conflict("the change of TASK-%d is in the queue already", task)
	}
	accepted, err := value[bool](tx, `SELECT accepted FROM sessions WHERE id = $1`, c.SessionID)
	if err != nil {
		return err
	}
	if !accepted {
		return ralph.Conflict("the last change of TASK-%d is of a session that was not accepted", task)
	}
	if err := tx.dropBlockers(task, "the change is tried again by "+by); err != nil {
		return err
	}
	if err := tx.readmit(t, c); err != nil {
		return err
	}
	return tx.Move(task, ralph.Merging, ralph.Person, "its change is tried again by "+by)
}

// readmit puts a change that has left the queue back into it, behind all others.
func (tx *Tx) readmit(t ralph.Task, c ralph.Change) error {
	place, err := value[int64](tx, nextPlace)
	if err != nil {
		return err
	}
	if err := tx.set("changes", c.ID, cells{
		"state": ralph.Queued, "place": place, "reason": "", "conflicts": "[]", "updated": tx.Now(),
	}); err != nil {
		return err
	}
	if err := tx.set("changes", c.ID, unmoved); err != nil {
		return err
	}
	if err := tx.set("tasks", t.ID, cells{"times_sent_back": 0}); err != nil {
		return err
	}
	return tx.recordQueued(c)
}

// DropChange drops a task's change for good, on behalf of a person. The task is pending again.
func (tx *Tx) DropChange(task int64, by string) error {
	t, err := tx.Task(task)
	if err != nil {
		return err
	}
	c, ok, err := tx.ChangeOf(task)
	if err != nil {
		return err
	}
	if !ok || c.State == ralph.Merged || c.State == ralph.Dropped {
		return ralph.Conflict("TASK-%d has no change to drop", task)
	}
	why := "dropped by " + by
	if c.State == ralph.SentBack { // the next session would start from it
		return tx.SetChange(c.ID, c.State, ralph.Dropped)
	}
	if t.Status != ralph.Merging {
		return tx.dropOpen(task, why)
	}
	if c.Undo != "" && c.State != ralph.Moving {
		return tx.notUndone(c, why, true)
	}
	if err := tx.withdraw(task, false, why); err != nil {
		return err
	}
	if err := tx.Move(task, ralph.Pending, ralph.Person, "its change was "+why); err != nil {
		return err
	}
	return tx.Derive(task)
}

// Merged lists the last merged change of each completed task, newest first.
func (tx *Tx) Merged() ([]ralph.Change, error) { return tx.LastMerged(0, 0) }

// LastMerged is [Tx.Merged] for one task (0 means all), with at most limit changes (0 means all).
func (tx *Tx) LastMerged(task int64, limit int) ([]ralph.Change, error) {
	var by filter
	if task != 0 {
		by.and("c.task_id = ?", task)
	}
	by.and("t.status = 'completed' AND c.state = 'merged' " +
		"AND c.id = (SELECT max(n.id) FROM changes n WHERE n.task_id = c.task_id AND n.state = 'merged')")
	return changeRows.all(tx,
		`JOIN tasks t ON t.id = c.task_id `+by.where()+` ORDER BY c.id DESC`+by.page(limit, 0), by.args...)
}

// tasksOfFeature selects the tasks of a feature.
const tasksOfFeature = `SELECT t.id FROM tasks t JOIN features f ON f.id = t.feature_id WHERE f.name = $1`

// MergedFor lists the changes that the loop merged for the tasks of a feature.
func (tx *Tx) MergedFor(feature string) ([]ralph.Change, error) {
	return changeRows.all(tx, `JOIN sessions s ON s.id = c.session_id
		WHERE c.task_id IN (`+tasksOfFeature+`) AND c.state = 'merged' AND s.origin <> '`+ralph.FromHuman+`'
		ORDER BY c.id`, feature)
}

// provedWithin is how long after its merge a change may still be proved.
const provedWithin = 24 * time.Hour

// Unproved lists the changes merged lately that were not proved yet, oldest first.
func (tx *Tx) Unproved() ([]ralph.Change, error) {
	return changeRows.all(tx, `
		WHERE c.state = 'merged' AND c.proof = '' AND c.undo = '' AND c.updated >= $1 ORDER BY c.id`,
		ralph.At(tx.Now().Add(-provedWithin)))
}

// SetProof stores the proof of a change.
func (tx *Tx) SetProof(c ralph.Change, p ralph.Proof) error {
	if err := tx.set("changes", c.ID, cells{"proof": asJSON(p)}); err != nil || len(p.Proved) == 0 && p.Idle == 0 {
		return err
	}
	return tx.record(ofChange(c), ralph.ChangeProved{ChangeID: c.ID, Proved: p.Proved, Idle: p.Idle})
}

// MergedBefore lists the merged changes of the completed tasks that a task directly depends on.
func (tx *Tx) MergedBefore(task int64) ([]ralph.Change, error) {
	return changeRows.all(tx, `JOIN task_dependencies d ON d.depends_on = c.task_id JOIN tasks t ON t.id = c.task_id
		WHERE d.task_id = $1 AND t.status = 'completed' AND c.state = 'merged'
			AND c.id = (SELECT max(n.id) FROM changes n WHERE n.task_id = c.task_id AND n.state = 'merged')
		ORDER BY c.id`, task)
}

// Restacked records that the branch of c was rebuilt as the commit to, because into now contains on, the change below
// it.
func (tx *Tx) Restacked(c, on ralph.Change, into, to string) error {
	if err := tx.set("changes", c.ID, cells{"to_commit": to}); err != nil {
		return err
	}
	_, err := tx.AddComment(ralph.Comment{
		TaskID: c.TaskID, Author: "ralph", AuthorKind: ralph.ByAgent, Kind: ralph.Note,
		Body: fmt.Sprintf("Its branch was rebuilt as %s, since %s has TASK-%d.", ralph.ShortID(to), into, on.TaskID),
	})
	return err
}

// ChangeBy returns a session's change, and the time when its task ended (zero if it has not). ok is false if the
// session has no change.
func (tx *Tx) ChangeBy(session string) (c ralph.Change, ended ralph.Time, ok bool, err error) {
	c, ok, err = changeRows.first(tx, `JOIN sessions s ON s.task_id = c.task_id
		WHERE s.id = $1 AND c.session_id = s.id ORDER BY c.id DESC`, session)
	if err != nil || !ok {
		return c, ended, ok, err
	}
	t, err := tx.Task(c.TaskID)
	if t.Status.Ended() {
		ended = t.Updated
	}
	return c, ended, true, err
}

// BeginAfter records that the commands for a change's branch are about to run, and reports whether this is the first
// time.
func (tx *Tx) BeginAfter(change int64) (first bool, err error) {
	begun, err := value[bool](tx, `SELECT after_begun FROM changes WHERE id = $1`, change)
	if err != nil || begun {
		return false, err
	}
	return true, tx.set("changes", change, cells{"after_begun": true})
}

// reversed returns, from the merged changes of a task, newest first, the ones that an undo reverses now, and the task's
// next status.
func reversed(merged []ralph.Change) (list []ralph.Change, to ralph.Status) {
	for i, c := range merged {
		switch c.Undo {
		case ralph.Cancelled:
			if i == 0 {
				return merged[:1], ralph.Completed
			}
			return merged[:i], ralph.Cancelled
		case ralph.Completed: // this undo of an undo restored the changes before it
			return merged[:i+1], ralph.Cancelled
		}
	}
	return merged, ralph.Cancelled
}

// notUndone takes the reverse of a task's change out of the queue; the target stays as it is. Unless a person
// dropped the reverse, the inbox says so.
func (tx *Tx) notUndone(c ralph.Change, why string, person bool) error {
	if err := tx.SetChange(c.ID, c.State, ralph.Dropped); err != nil {
		return err
	}
	if err := tx.drop(c, why); err != nil {
		return err
	}
	still, what := ralph.Completed, "its work could not be undone: "+why
	if c.Undo == ralph.Completed {
		still, what = ralph.Cancelled, "its work could not be brought back: "+why
	}
	if !person {
		if _, err := tx.signal(c.TaskID, c.SessionID, "ralph", signals.Flag{
			What: what, Severity: "warning", Category: "incomplete_prior",
		}); err != nil {
			return err
		}
	}
	return tx.Move(c.TaskID, still, ralph.Merger, what)
}
