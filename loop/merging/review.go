package merging

import (
	"context"
	"fmt"

	"ralph"
	"ralph/store"
)

// Pull fetches the branch of a pull request, on which people may have committed, and has the change's next session
// start from there. It returns the branch's commit and tree; "" if the remote has no such branch.
func (m *Merger) Pull(ctx context.Context, c ralph.Change, branch string) (commit, tree string, err error) {
	if commit, err = m.fetchBranch(ctx, branch); err != nil || commit == "" {
		return "", "", err
	}
	if tree, err = m.Tree.Whole(ctx, commit); err != nil {
		return "", "", err
	}
	return commit, tree, m.Tree.SetRef(ctx, c.Ref(), commit)
}

// fetchBranch sets a branch here to where it is on the remote; "" if the remote has none.
func (m *Merger) fetchBranch(ctx context.Context, branch string) (commit string, err error) {
	remote, err := m.remote(ctx)
	if err != nil {
		return "", err
	}
	if commit, err = remote.Fetch(ctx, branch); err != nil || commit == "" {
		return "", err
	}
	return commit, m.Tree.SetRef(ctx, branchRef(branch), commit)
}

// Landed fetches the target and returns how a commit of it differs from its first parent.
func (m *Merger) Landed(ctx context.Context, commit string) ([]ralph.FileChange, error) {
	m.Links.remote.fetching.Lock()
	defer m.Links.remote.fetching.Unlock()
	tip, err := m.fetch(ctx)
	if err != nil {
		return nil, err
	}
	if has, err := m.below(ctx, commit, tip); err != nil || !has {
		return nil, fmt.Errorf("the forge says that %s is merged, and it is not in %s yet: %w", ralph.ShortID(commit),
			m.Into, err)
	}
	parent, err := m.Tree.Ref(ctx, commit+"^1")
	if err != nil || parent == "" {
		return nil, err
	}
	return m.Tree.Changes(ctx, parent, commit)
}

// Conflicts reports whether a branch of the remote conflicts with the target. A forge says so, too, while it does not
// know yet.
func (m *Merger) Conflicts(ctx context.Context, branch string) (bool, error) {
	head, err := m.fetchBranch(ctx, branch)
	if err != nil || head == "" {
		return false, err
	}
	tip, err := m.Tip(ctx)
	if err != nil {
		return false, err
	}
	merged, err := m.Tree.MergeTree(ctx, tip, head)
	return len(merged.Conflicts) > 0, err
}

// upon reports whether the commit that a branch is to become has all that is on it: people may have pushed there, and
// that is never overwritten. If not, the change is merged with it and verified again, or its task goes on from there.
func (m *Merger) upon(ctx context.Context, c ralph.Change, point, to string) (bool, error) {
	if has, err := m.below(ctx, point, to); point == "" || err != nil || has {
		return err == nil, err
	}
	merged, err := m.Tree.MergeTree(ctx, point, c.Head)
	if err != nil {
		return false, err
	}
	if len(merged.Conflicts) > 0 {
		tree, err := m.Tree.Whole(ctx, point)
		if err != nil {
			return false, err
		}
		reason := fmt.Sprintf("somebody has pushed to its branch, and the work of the last session, commit %s, conflicts "+
			"with that: do it once more on the present branch", ralph.ShortID(c.Head))
		if err := m.Tree.SetRef(ctx, c.Ref(), point); err != nil {
			return false, err
		}
		return false, m.Store.Tx(ctx, func(tx *store.Tx) error {
			if err := tx.SetHead(c, point, tree); err != nil {
				return err
			}
			return tx.SendBack(c, reason, nil, "")
		})
	}
	head, err := m.commit(ctx, merged.Tree, []string{point, c.Head}, "Merge what was pushed to the branch\n\n"+
		ralph.Trailers(c.TaskID, c.SessionID))
	if err != nil {
		return false, err
	}
	if err := m.Tree.SetRef(ctx, c.Ref(), head); err != nil {
		return false, err
	}
	return false, m.Store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.SetHead(c, head, merged.Tree); err != nil {
			return err
		}
		return tx.SetChange(c.ID, c.State, ralph.Queued)
	})
}
