package loop

import (
	"context"
	"slices"

	"ralph"
	"ralph/internal/worktree"
	"ralph/store"
)

// loosest is of how many tasks that have been worked on the files are told from
// people's.
const loosest = 100

// Strangers are the uncommitted files that are not an agent's to commit: those that
// the sessions of a task did not make, or with 0 those of all tasks that wait to go
// on; and the branch.
func (l *Loop) Strangers(ctx context.Context, task int64) (files []worktree.Loose, branch string, err error) {
	if files, branch, err = l.Tree.Loose(ctx); err != nil || len(files) == 0 {
		return files, branch, err
	}
	own := map[string]bool{}
	err = l.Store.View(ctx, func(tx *store.Tx) error {
		ids := []int64{task}
		if task == 0 {
			tasks, err := tx.Tasks(store.TaskFilter{Statuses: []ralph.Status{ralph.Pending, ralph.InProgress, ralph.NeedsInput, ralph.Blocked}, Limit: loosest})
			if err != nil {
				return err
			}
			ids = ids[:0]
			for _, t := range tasks {
				ids = append(ids, t.ID)
			}
		}
		for _, id := range ids {
			sessions, err := tx.Sessions(store.SessionFilter{Task: id})
			if err != nil {
				return err
			}
			if len(sessions) == 0 {
				continue
			}
			people, err := tx.Uncommitted(sessions[len(sessions)-1].ID)
			if err != nil {
				return err
			}
			for _, s := range sessions {
				for _, f := range s.Files {
					own[f.Path] = own[f.Path] || !slices.Contains(people.Files, f.Path)
				}
			}
		}
		return nil
	})
	return slices.DeleteFunc(files, func(f worktree.Loose) bool { return own[f.Path] }), branch, err
}

// strange are the paths of [Loop.Strangers] for a prompt. Where they cannot be seen a
// warning says so, and the prompt says nothing of them.
func (l *Loop) strange(ctx context.Context, task int64) []string {
	files, _, err := l.Strangers(ctx, task)
	if err != nil {
		l.Log.Warn("the prompt does not say which files are uncommitted", "task", task, "error", err)
		return nil
	}
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.Path
	}
	return paths
}
