package loop

import (
	"context"
	"fmt"
	"strings"

	"ralph"
	"ralph/internal/text"
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

// UndoByAgent adds a task by which an agent takes back what a task has merged, where later commits stand in the way.
func (l *Loop) UndoByAgent(ctx context.Context, task int64, conflicts []string, u Undoing) (added int64, err error) {
	err = l.Store.Tx(ctx, func(tx *store.Tx) error {
		t, err := tx.Task(task)
		if err != nil {
			return err
		}
		c, err := tx.Undoable(task)
		if err != nil {
			return err
		}
		why := fmt.Sprintf("Take back what TASK-%d (%s) changed: commit %s. Later commits changed the same lines of %s; "+
			"keep what they did.", t.ID, t.Title, c.Head, strings.Join(conflicts, ", "))
		if u.Why != "" {
			why += "\n\nWhy: " + u.Why
		}
		added, err = tx.AddTask(ralph.Task{
			Title: text.Clip("Undo: "+t.Title, ralph.MaxTitle), Description: why,
			Feature: t.Feature, Priority: t.Priority, Origin: ralph.ByHuman, Status: ralph.Pending, Allow: []string{"tests"},
		}, "human")
		return err
	})
	return added, err
}

// MergeQueued merges what is queued, and returns what the rest waits for; "" if nothing is left.
func (l *Loop) MergeQueued(ctx context.Context) (why string, err error) {
	return l.mergeForWorker(ctx, l.takeCheck, mergeWait)
}
