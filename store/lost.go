package store

import (
	"ralph"
	"ralph/signals"
)

// NextLost returns the next pending task to retry after lost sessions, whether it is due yet or
// not; ok is false if there is none.
func (tx *Tx) NextLost() (t ralph.Task, ok bool, err error) {
	return taskRows.first(tx, `WHERE t.status = 'pending' AND t.lost_count > 0 ORDER BY t.not_before, t.id`)
}

// setLost stores how many sessions of a task were lost in a row. Each further loss delays the next
// attempt; otherwise the current delay stays.
func (tx *Tx) setLost(t ralph.Task, d signals.Decision) error {
	until := t.NotBefore
	switch {
	case d.LostCount == 0:
		until = ralph.Time{}
	case d.LostCount > t.LostCount:
		until = ralph.At(tx.Now().Add(signals.LostWait(d.LostCount)))
	}
	return tx.set("tasks", t.ID, cells{"lost_count": d.LostCount, "not_before": until})
}

// NoteUndecided records why a session that has ended could not be decided. It reports whether the
// reason is new.
func (tx *Tx) NoteUndecided(session, why string) (bool, error) {
	n, err := tx.exec(`
		UPDATE sessions SET undecided = $1 WHERE id = $2 AND completed_at = '' AND undecided <> $1`, why, session)
	return n > 0, err
}

// An UndecidedSession is a session that has ended and could not be decided.
type UndecidedSession struct {
	ID   string
	Task int64
	Why  string
}

// Undecided lists the undecided sessions, oldest first, and the tasks in progress without an open session, which only
// another program that writes to the database can cause.
func (tx *Tx) Undecided() ([]UndecidedSession, error) {
	read := func(row scanner) (u UndecidedSession, err error) { return u, row.Scan(&u.ID, &u.Task, &u.Why) }
	list, err := all(tx, read, `
		SELECT id, task_id, undecided FROM sessions WHERE completed_at = '' AND undecided <> '' ORDER BY started_at`)
	if err != nil {
		return nil, err
	}
	gone, err := all(tx, read, `
		SELECT t.claimed_by, t.id, 'its record is gone or ended (changed outside of ralph?)' FROM tasks t WHERE `+adrift)
	return append(list, gone...), err
}

// adrift selects tasks t that are in progress without an open session.
const adrift = `t.status = 'in_progress'
	AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = t.claimed_by AND s.completed_at = '')`

// ReleaseAdrift makes tasks pending again that are in progress without an open session.
func (tx *Tx) ReleaseAdrift() error {
	ids, err := values[int64](tx, `SELECT t.id FROM tasks t WHERE `+adrift)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := tx.set("tasks", id, cells{"claimed_by": "", "claim_expires": ""}); err != nil {
			return err
		}
		const why = "the record of its session is gone or ended (changed outside of ralph?)"
		if err := tx.Move(id, ralph.Pending, ralph.Loop, why); err != nil {
			return err
		}
	}
	return nil
}

// TryNow ends the delay of a task after a lost session.
func (tx *Tx) TryNow(task int64) error {
	return tx.set("tasks", task, cells{"not_before": ""})
}

// addBlocker adds one of ralph's own blockers to a task, which then waits for a person.
func (tx *Tx) addBlocker(task int64, body string) error {
	return tx.ownComment(task, "", ralph.Blocker, cells{
		"body":        body,
		"rationale":   body,
		"released_by": "retry",
	})
}

// ownComment adds one of ralph's own comments, which holds a task.
func (tx *Tx) ownComment(task int64, session string, kind ralph.CommentKind, r cells) error {
	r["task_id"], r["session_id"], r["kind"] = task, null(session), kind
	r["author"], r["author_kind"], r["holding"], r["created"] = "ralph", ralph.ByAgent, true, tx.Now()
	id, err := tx.add("task_comments", r)
	if err != nil {
		return err
	}
	return tx.record(ralph.Event{TaskID: task, SessionID: session},
		ralph.CommentAdded{TaskID: task, CommentID: id, Kind: kind, AuthorKind: ralph.ByAgent, Author: "ralph"})
}

// dropBlockers resolves the blockers of [Tx.addBlocker] on a task.
func (tx *Tx) dropBlockers(task int64, reason string) error {
	blockers, err := commentRows.all(tx, `
		WHERE c.task_id = $1 AND c.holding = 1 AND c.released_by = 'retry' ORDER BY c.id`, task)
	if err != nil {
		return err
	}
	for _, b := range blockers {
		if err := tx.Resolve(b.ID, reason, "ralph task retry"); err != nil {
			return err
		}
	}
	return nil
}
