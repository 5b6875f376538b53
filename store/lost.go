package store

import (
	"ralph"
	"ralph/signals"
)

// NextLost is the first pending task to be tried again after lost sessions, whether
// its time has come or not; ok is false if there is none.
func (tx *Tx) NextLost() (t ralph.Task, ok bool, err error) {
	return tasks.first(tx, `WHERE t.status = 'pending' AND t.lost_count > 0 ORDER BY t.not_before, t.id`)
}

// setLost keeps how many sessions of a task were lost in a row. After another one it
// is left alone for a while; what was already waiting waits as it did.
func (tx *Tx) setLost(t ralph.Task, d signals.Decision) error {
	until := t.NotBefore
	switch {
	case d.LostCount == 0:
		until = ralph.Time{}
	case d.LostCount > t.LostCount:
		until = ralph.At(tx.now.Add(signals.LostWait(d.LostCount)))
	}
	return tx.set("tasks", t.ID, cells{"lost_count": d.LostCount, "not_before": until})
}

// NoteUnsettled keeps why a session that is over could not be settled. It reports
// whether that is news.
func (tx *Tx) NoteUnsettled(session, why string) (bool, error) {
	n, err := tx.exec(`
		UPDATE sessions SET unsettled = $1 WHERE id = $2 AND completed_at = '' AND unsettled <> $1`, why, session)
	return n > 0, err
}

// An UnsettledSession is one that is over and could not be settled.
type UnsettledSession struct {
	ID   string
	Task int64
	Why  string
}

// Unsettled lists them, oldest first.
func (tx *Tx) Unsettled() ([]UnsettledSession, error) {
	return all(tx, func(row scanner) (u UnsettledSession, err error) { return u, row.Scan(&u.ID, &u.Task, &u.Why) },
		`SELECT id, task_id, unsettled FROM sessions WHERE completed_at = '' AND unsettled <> '' ORDER BY started_at`)
}

// A Basis is a mark of what a task asks for and of what was said and done about it: if
// two are equal, a prompt that was built at the one moment holds at the other.
type Basis struct {
	Definitions string // see [Tx.Definitions]
	Event       int64  // the task's newest
}

// Basis is that of a task now.
func (tx *Tx) Basis(t ralph.Task) (b Basis, err error) {
	if b.Definitions, err = tx.definitions(t); err != nil {
		return b, err
	}
	b.Event, err = tx.LastEventOf(t.ID)
	return b, err
}

// TryNow takes off the time for which a task is left alone after a lost session.
func (tx *Tx) TryNow(task int64) error {
	return tx.set("tasks", task, cells{"not_before": ""})
}

// addBlocker has a task wait for a person for a reason of ralph's own.
func (tx *Tx) addBlocker(task int64, body string) error {
	return tx.ownComment(task, "", ralph.Blocker, cells{
		"body":        body,
		"rationale":   "no further session is paid for until somebody has looked",
		"hold_reason": retryHint,
	})
}

// ownComment adds a comment of ralph's own that holds a task back.
func (tx *Tx) ownComment(task int64, session string, kind ralph.CommentKind, r cells) error {
	r["task_id"], r["session_id"], r["kind"] = task, null(session), kind
	r["author"], r["author_kind"], r["holding"], r["created"] = "ralph", ralph.ByAgent, true, tx.now
	id, err := tx.add("task_comments", r)
	if err != nil {
		return err
	}
	return tx.record(ralph.Event{TaskID: task, SessionID: session},
		ralph.CommentAdded{TaskID: task, CommentID: id, Kind: kind, AuthorKind: ralph.ByAgent, Author: "ralph"})
}

// retryHint is the hold reason of ralph's own blockers. No other blocker that is no
// signal has one.
const retryHint = "resolving it, or `ralph task retry`, has the task tried again"

// dropBlockers settles what [Tx.addBlocker] has a task wait for.
func (tx *Tx) dropBlockers(task int64, reason string) error {
	blockers, err := tx.Blockers(task)
	if err != nil {
		return err
	}
	for _, b := range blockers {
		if b.HoldReason != retryHint {
			continue
		}
		if err := tx.Resolve(b.ID, reason, "ralph task retry"); err != nil {
			return err
		}
	}
	return nil
}
