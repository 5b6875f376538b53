package store

import (
	"math"
	"time"

	"ralph"
	"ralph/internal/machine"
)

// A MergeQueue is the state of the merge queue.
type MergeQueue struct {
	Target    string     `json:"target"`     // the branch that changes are merged into; "" before the first
	Paused    string     `json:"paused"`     // why merging is paused; "" if it is not
	WaitUntil ralph.Time `json:"wait_until"` // next try of the remote; zero for at once
	Waits     string     `json:"waits"`      // the machine that could not reach the remote; only it waits
	Failures  int        `json:"failures"`   // consecutive failures to reach the remote
	Behind    string     `json:"behind"`     // why the person's branch could not follow; "" if it did
	Ahead     int        `json:"ahead"`      // number of merges that the branch lacks
	Command   string     `json:"command"`    // to update the branch
	Pulls     bool       `json:"-"`          // changes become pull requests
}

// MergeQueue returns the state of the merge queue.
func (tx *Tx) MergeQueue() (q MergeQueue, err error) {
	return q, tx.row(`SELECT target, paused, wait_until, waits, failures, behind, ahead, command, pulls
		FROM merge_queue WHERE id = 1`).
		Scan(&q.Target, &q.Paused, &q.WaitUntil, &q.Waits, &q.Failures, &q.Behind, &q.Ahead, &q.Command, &q.Pulls)
}

// RemoteAway reports whether this machine waits before it tries the remote again.
func (tx *Tx) RemoteAway() (bool, error) {
	q, err := tx.MergeQueue()
	return q.away(tx), err
}

func (q MergeQueue) away(tx *Tx) bool {
	return q.Waits == machine.Name() && q.WaitUntil.After(tx.Now().Time)
}

// QueueState returns the state of the merge queue with [Tx.RemoteAway] and [Tx.MergesAlone].
func (tx *Tx) QueueState(timesSentBack int) (q MergeQueue, away bool, alone int64, err error) {
	err = tx.row(`SELECT (`+mergesAlone+`), target, paused, wait_until, waits, failures, behind, ahead, command, pulls
		FROM merge_queue WHERE id = 1`, timesSentBack).
		Scan(&alone, &q.Target, &q.Paused, &q.WaitUntil, &q.Waits, &q.Failures, &q.Behind, &q.Ahead, &q.Command, &q.Pulls)
	return q, q.away(tx), alone, err
}

// Target returns the branch that queued changes are merged into: wanted, unless the queue holds changes for
// another branch.
func (tx *Tx) Target(wanted string) (string, error) {
	q, err := tx.MergeQueue()
	if err != nil || q.Target == "" {
		return wanted, err
	}
	waiting, err := value[bool](tx, `SELECT EXISTS (SELECT 1 FROM changes c WHERE `+inQueue+`)`)
	if waiting {
		wanted = q.Target
	}
	return wanted, err
}

// SetTarget records the branch that queued changes are merged into, and whether they become pull requests.
func (tx *Tx) SetTarget(branch string, pulls bool) error {
	q, err := tx.MergeQueue()
	if err != nil || q.Target == branch && q.Pulls == pulls {
		return err
	}
	return tx.set("merge_queue", 1, cells{"target": branch, "pulls": pulls})
}

// PauseMerging stops all merging until a person resumes it.
func (tx *Tx) PauseMerging(reason string) error {
	q, err := tx.MergeQueue()
	if err != nil || q.Paused == reason {
		return err
	}
	if err := tx.set("merge_queue", 1, cells{"paused": reason}); err != nil {
		return err
	}
	return tx.record(ralph.Event{}, ralph.QueuePaused{Reason: reason})
}

// ResumeMerging resumes merging and clears the wait for the remote.
func (tx *Tx) ResumeMerging(by string) error {
	q, err := tx.MergeQueue()
	if err != nil || q.Paused == "" && q.WaitUntil.IsZero() {
		return err
	}
	if err := tx.set("merge_queue", 1, cells{"paused": "", "wait_until": "", "waits": "", "failures": 0}); err != nil {
		return err
	}
	return tx.record(ralph.Event{}, ralph.QueueResumed{By: by})
}

// WaitForRemote records that this machine could not reach the remote, and delays its next try by wait. Each further
// failure in a row doubles the delay, up to most.
func (tx *Tx) WaitForRemote(wait, most time.Duration) error {
	q, err := tx.MergeQueue()
	if err != nil {
		return err
	}
	if q.Waits != machine.Name() {
		q.Failures = 0
	}
	until := tx.Now().Add(min(wait<<min(q.Failures, 10), most))
	return tx.set("merge_queue", 1, cells{
		"waits": machine.Name(), "failures": q.Failures + 1, "wait_until": ralph.At(until),
	})
}

// ReachedRemote records that this machine has reached the remote.
func (tx *Tx) ReachedRemote() error {
	return tx.do(`UPDATE merge_queue SET waits = '', failures = 0, wait_until = '' WHERE waits = $1`, machine.Name())
}

// Says reports whether q has the values of b already, so that [Tx.NoteBehind] would change nothing.
func (q MergeQueue) Says(b ralph.TargetBehind) bool {
	return q.Behind == b.Reason && q.Ahead == b.Ahead && q.Command == b.Command
}

// NoteBehind records why the person's branch could not be fast-forwarded; the zero value means that
// it was. It records an event only when the reason changes.
func (tx *Tx) NoteBehind(b ralph.TargetBehind) error {
	q, err := tx.MergeQueue()
	if b.Reason == "" {
		b = ralph.TargetBehind{}
	}
	if err != nil || q.Says(b) {
		return err
	}
	changed := cells{"behind": b.Reason, "ahead": b.Ahead, "command": b.Command}
	if err := tx.set("merge_queue", 1, changed); err != nil || b.Reason == q.Behind {
		return err
	}
	if b.Reason == "" {
		b.Branch = q.Target
	}
	return tx.record(ralph.Event{}, b)
}

// NoteRewritten records that people moved their branch back behind a merged commit.
func (tx *Tx) NoteRewritten(e ralph.TargetRewritten) error { return tx.record(ralph.Event{}, e) }

// MergedInto returns the merge events of the tasks whose sessions a filter selects, by change id. Behind is set only if
// the person's branch still lacks the change.
func (tx *Tx) MergedInto(f SessionFilter) (map[int64]ralph.ChangeMerged, error) {
	caught, err := tx.caughtUp()
	if err != nil {
		return nil, err
	}
	by := f.matching()
	list, err := all(tx, func(row scanner) (merged ralph.ChangeMerged, err error) {
		var id int64
		if err = row.Scan(&id, column(&merged)); id < caught {
			merged.Behind = ""
		}
		return merged, err
	}, `
		SELECT e.id, e.payload FROM events e
		WHERE e.type = '`+ralph.EventType(ralph.ChangeMerged{})+`'
			AND e.task_id IN (SELECT s.task_id FROM sessions s `+by.where()+`)`, by.args...)
	on := map[int64]ralph.ChangeMerged{}
	for _, merged := range list {
		on[merged.ChangeID] = merged
	}
	return on, err
}

// caughtUp returns the id of the last event at which the person's branch caught up with the target.
func (tx *Tx) caughtUp() (int64, error) {
	queue, err := tx.MergeQueue()
	if err != nil || queue.Behind == "" {
		return math.MaxInt64, err // it lacks nothing, so no merge is later
	}
	type behind struct {
		id int64
		at ralph.TargetBehind
	}
	list, err := all(tx, func(row scanner) (b behind, err error) {
		err = row.Scan(&b.id, column(&b.at))
		return b, err
	}, `
		SELECT e.id, e.payload FROM events e
		WHERE e.task_id IS NULL AND e.type = '`+ralph.EventType(ralph.TargetBehind{})+`' ORDER BY e.id DESC`)
	for _, b := range list {
		if b.at.Reason == "" {
			return b.id, err
		}
	}
	return 0, err
}
