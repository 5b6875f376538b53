package session

import (
	"context"
	"slices"

	"ralph"
	"ralph/internal/worktree"
	"ralph/store"
)

// loosest is the most unfinished tasks whose files are told apart from people's.
const loosest = 100

// Strangers returns the uncommitted files that are not an agent's to commit, and the branch.
// These are the files that no session of the task created; task 0 means all unfinished tasks.
func (n Needs) Strangers(ctx context.Context, task int64) (files []worktree.Loose, branch string, err error) {
	if files, branch, err = n.Place.Tree.Loose(ctx); err != nil || len(files) == 0 {
		return files, branch, err
	}
	own, err := n.made(ctx, task)
	return slices.DeleteFunc(files, func(f worktree.Loose) bool { return own[f.Path] }), branch, err
}

// strange returns those of the uncommitted files that are not an agent's to commit.
func (n Needs) strange(ctx context.Context, task int64, uncommitted []string) ([]string, error) {
	if len(uncommitted) == 0 {
		return nil, nil
	}
	own, err := n.made(ctx, task)
	return slices.DeleteFunc(slices.Clone(uncommitted), func(f string) bool { return own[f] }), err
}

// made returns the files that the sessions of a task changed. The value is true if people
// had no uncommitted changes in the file before. Task 0 means all unfinished tasks.
func (n Needs) made(ctx context.Context, task int64) (own map[string]bool, err error) {
	own = map[string]bool{}
	err = n.Store.View(ctx, func(tx *store.Tx) error {
		ids := []int64{task}
		if task == 0 {
			unwanted := func(s ralph.Status) bool { return !s.Wanted() }
			wanted := slices.DeleteFunc(slices.Clone(ralph.Statuses), unwanted)
			tasks, err := tx.Tasks(store.TaskFilter{Statuses: wanted, Limit: loosest})
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
	return own, err
}
