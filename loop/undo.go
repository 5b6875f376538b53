package loop

import (
	"context"

	"ralph"
	"ralph/store"
)

// An Undoing is a person's wish to take back what of a task was merged.
type Undoing struct {
	By     string // the person
	Why    string // for the task's next session
	Cancel bool   // the task is called off, instead of being done again
}

// Undo queues the reverse of what a task has merged. It is merged like any change, with [Loop.MergeQueued] or the run
// in progress. Conflicts are the files in which later commits stand in its way; nothing is queued then. The error wraps
// [ralph.ErrConflict] if there is nothing to undo.
func (l *Loop) Undo(ctx context.Context, task int64, u Undoing) (conflicts []string, err error) {
	merged, err := store.Read(ctx, l.Store, func(tx *store.Tx) (ralph.Change, error) { return tx.Undoable(task) })
	if err != nil {
		return nil, err
	}
	c, conflicts, err := l.Merger.Reverse(ctx, merged)
	if err != nil || len(conflicts) > 0 {
		return conflicts, err
	}
	if c.Undo = ralph.Pending; u.Cancel {
		c.Undo = ralph.Cancelled
	}
	return nil, l.Store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.SetTarget(l.Merger.Into); err != nil {
			return err
		}
		return tx.Undo(store.Undo{Change: c, By: u.By, Why: u.Why})
	})
}

// MergeQueued merges what is queued, and returns what the rest waits for; "" if nothing is left.
func (l *Loop) MergeQueued(ctx context.Context) (why string, err error) {
	return l.mergeForWorker(ctx, l.takeCheck, mergeWait)
}
