package loop

import (
	"context"
	"fmt"
	"strings"

	"ralph"
	"ralph/internal/text"
	"ralph/signals"
	"ralph/store"
)

// An Undoing is a person's request to undo a task's merged changes.
type Undoing struct {
	By    string // the person
	Why   string // for the task's next session, if there is one
	Agent bool   // an agent resolves conflicts with later commits
	// The status that the person wants for the task, as of [store.Tx.Undoable]; "" for either.
	To ralph.Status
}

// Undo queues the reverse of a task's merged changes; for an undone task, the reverse of the undo. [Loop.MergeQueued]
// or the run in progress merges it like any change. Conflicts are the files that later commits have changed; then
// nothing is queued. If people have already reversed the changes, the task gets its status at once. The error wraps
// [ralph.ErrConflict] if there is nothing to reverse.
func (l *Loop) Undo(ctx context.Context, task int64, u Undoing) (conflicts []string, err error) {
	if err := l.Attached(); err != nil {
		return nil, err
	}
	var merged []ralph.Change
	var to ralph.Status
	if err := l.Store.View(ctx, func(tx *store.Tx) (err error) {
		if merged, to, err = tx.Undoable(task); err != nil || u.To == "" || to == u.To {
			return err
		}
		t, err := tx.Task(task) // another person was faster, and this would reverse their undo
		if err != nil {
			return err
		}
		return ralph.Conflict("TASK-%d %s meanwhile: %s", task, t.Is(), t.StatusReason)
	}); err != nil {
		return nil, err
	}
	c, conflicts, err := l.Merger.Reverse(ctx, merged)
	if err != nil || len(conflicts) > 0 {
		return conflicts, err
	}
	c.Undo = to
	return nil, l.Store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.SetTarget(l.Merger.Into, l.Merger.Pulls); err != nil {
			return err
		}
		undo := store.Undo{Change: c, By: u.By, Why: u.Why}
		if c.Head == "" {
			how := " has nothing of its change"
			if to == ralph.Completed {
				how = " has its change already"
			}
			return tx.UndoneAlready(undo, l.Merger.Into+how)
		}
		return tx.Undo(undo)
	})
}

// UndoByAgent adds a task in which an agent undoes a task's merged changes that conflict with later
// commits, unless there is one already.
func (l *Loop) UndoByAgent(ctx context.Context, task int64, conflicts []string, u Undoing) (added int64, err error) {
	err = l.Store.Tx(ctx, func(tx *store.Tx) error {
		t, err := tx.Task(task)
		if err != nil {
			return err
		}
		merged, _, err := tx.Undoable(task)
		if err != nil {
			return err
		}
		var commits []string
		for _, c := range merged {
			commits = append(commits, c.Commit)
		}
		why := fmt.Sprintf("Undo the changes of TASK-%d (%s): commit %s. Later commits changed the same lines of %s; "+
			"keep theirs.", t.ID, t.Title, strings.Join(commits, ", "), strings.Join(conflicts, ", "))
		if u.Why != "" {
			why += "\n\nWhy: " + u.Why
		}
		undo := ralph.Task{
			Title: text.Clip("Undo: "+t.Title, ralph.MaxTitle), Description: why,
			Feature: t.Feature, Priority: t.Priority, Origin: ralph.ByHuman, Status: ralph.Pending, Allow: []string{"tests"},
		}
		same, found, err := tx.Same(undo)
		if added = same.ID; err != nil || found {
			return err
		}
		if added, err = tx.AddTask(undo, "human"); err == nil {
			_, err = tx.AddComment(ralph.Comment{
				TaskID: task, Author: u.By, AuthorKind: ralph.ByHuman, Kind: ralph.Reference,
				Body: fmt.Sprintf("TASK-%d has an agent undo this task's merged changes.", added),
			})
		}
		return err
	})
	return added, err
}

// AskUndo undoes or restores a task's merged changes, and describes the result in a sentence. If no run is in progress,
// the caller must merge the reverse.
func (l *Loop) AskUndo(ctx context.Context, task int64, u Undoing) (said string, err error) {
	conflicts, err := l.Undo(ctx, task, u)
	switch {
	case err != nil:
		return "", err
	case len(conflicts) == 0:
		err = l.Store.View(ctx, func(tx *store.Tx) error {
			t, err := tx.Task(task)
			if err != nil {
				return err
			}
			run, ok, err := tx.LastRun()
			switch {
			case t.Status != ralph.Merging:
				said = fmt.Sprintf("TASK-%d %s: %s.", task, t.Is(), t.StatusReason)
			case ok && tx.Alive(run):
				said = fmt.Sprintf("TASK-%d: the run in progress verifies and merges the reverse of its change next.", task)
			default:
				said = fmt.Sprintf("TASK-%d: the reverse of its change is being verified and merged.", task)
			}
			return err
		})
		return said, err
	case u.Agent:
		by, err := l.UndoByAgent(ctx, task, conflicts, u)
		return fmt.Sprintf("TASK-%d is for an agent to undo TASK-%d: later commits changed the same lines of %s.",
			by, task, signals.FileList(conflicts)), err
	}
	return "", ralph.Conflict("TASK-%d is not undone: later commits changed the same lines of %s; undo those first, "+
		"or have an agent do it", task, signals.FileList(conflicts))
}
