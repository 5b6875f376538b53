package merging

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"ralph"
	"ralph/internal/worktree"
	"ralph/store"
)

// Pull fetches the branch of a pull request, which may have people's commits, and makes the change's next session
// start from there. It returns the branch's commit and tree, or those of the change if people have deleted the branch,
// which the next push makes again; "" if its commit is not here.
func (m *Merger) Pull(ctx context.Context, c ralph.Change, branch string) (commit, tree string, err error) {
	if commit, err = m.fetchBranch(ctx, branch); err != nil {
		return "", "", err
	}
	if commit = cmp.Or(commit, c.To); !m.Tree.Has(ctx, commit) {
		return "", "", nil
	}
	if tree, err = m.Tree.Whole(ctx, commit); err != nil {
		return "", "", err
	}
	return commit, tree, m.Tree.SetRef(ctx, c.Ref(), commit)
}

// fetchBranch sets a local branch to its place on the remote; "" if the remote has none.
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

// stray looks for the branch of a change in review, which is not where this queue has left it. If people have pushed,
// the next look continues from there. If they have deleted it, the next push makes it again. If this queue has never
// pushed it, it is somebody else's, such as another queue's, and the change gets a branch of another name.
func (m *Merger) stray(ctx context.Context, c ralph.Change) error {
	remote, err := m.remote(ctx)
	if err != nil {
		return err
	}
	tip, err := remote.Fetch(ctx, c.Branch)
	if err != nil {
		return err
	}
	if own, err := m.below(ctx, c.To, tip); err != nil {
		return err
	} else if c.From == "" && tip != "" && !own {
		name := c.Branch + "-" + ralph.ShortID(c.SessionID)
		return m.Store.Tx(ctx, func(tx *store.Tx) error { return tx.SetBranch(c.ID, name) })
	}
	return m.Tree.SetRef(ctx, branchRef(c.Branch), tip)
}

// Landed fetches the branch that a pull request was merged into, which people may have changed, and returns the effect
// of the merge: the commit below its changes ("" for the first parent of commit) and the files. commit is the last
// commit of the merge, head the tip of the merged branch.
func (m *Merger) Landed(
	ctx context.Context, into, branch, commit, head string,
) (base string, files []ralph.FileChange, err error) {
	if !m.Tree.Has(ctx, head) { // people have pushed
		if _, err := m.fetchBranch(ctx, branch); err != nil {
			return "", nil, err
		}
	}
	seen, tip, err := m.fetchInto(ctx, into)
	if err != nil {
		return "", nil, err
	}
	if has, err := m.below(ctx, commit, tip); err != nil || !has {
		return "", nil, fmt.Errorf("the forge says that %s is merged, and it is not in %s yet: %w", ralph.ShortID(commit),
			into, err)
	}
	if m.Tree.Has(ctx, head) {
		if base, err = m.beneath(ctx, seen, commit, head); err != nil {
			return "", nil, err
		}
	}
	parent, err := m.Tree.Ref(ctx, cmp.Or(base, commit+"^1"))
	if err != nil || parent == "" {
		return "", nil, err
	}
	files, err = m.Tree.Changes(ctx, parent, commit)
	return base, files, err
}

// fetchInto fetches a branch that was merged into. It returns its tip and, if it is the target, the one of the last
// look.
func (m *Merger) fetchInto(ctx context.Context, into string) (seen, tip string, err error) {
	m.Links.remote.fetching.Lock()
	defer m.Links.remote.fetching.Unlock()
	if into != m.Into {
		remote, err := m.remote(ctx)
		if err != nil {
			return "", "", err
		}
		tip, err = remote.Fetch(ctx, into)
		return "", tip, err
	}
	if seen, err = m.Tree.Ref(ctx, m.remoteRef()); err != nil {
		return "", "", err
	}
	tip, err = m.fetch(ctx)
	return seen, tip, err
}

// beneath returns the commit below the changes of a pull request: the old target after a fast-forward, the commit below
// the first rebased one, or "" for the first parent of commit.
func (m *Merger) beneath(ctx context.Context, seen, commit, head string) (string, error) {
	forwarded, err := m.below(ctx, commit, head)
	if err != nil || !forwarded {
		if err == nil {
			return m.Tree.Replayed(ctx, head, commit)
		}
		return "", err
	}
	if is, err := m.below(ctx, seen, commit); err != nil || !is || seen == commit {
		return "", err
	}
	return seen, nil
}

// Conflicts reports whether a branch conflicts with the target, both as on the remote, or as last fetched.
func (m *Merger) Conflicts(ctx context.Context, branch string, fetch bool) (bool, error) {
	head, err := m.Tree.Ref(ctx, branchRef(branch))
	if fetch && err == nil {
		head, err = m.fetchBranch(ctx, branch)
	}
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

// DropBranch deletes the branch of a merged pull request here and on the remote, unless it has commits beyond head or
// is checked out.
func (m *Merger) DropBranch(ctx context.Context, branch, head string) error {
	remote, err := m.remote(ctx)
	if err != nil {
		return err
	}
	if _, err := remote.Push(ctx, branch, head, ""); err != nil {
		return err
	}
	local, err := m.Tree.Ref(ctx, branchRef(branch))
	if err != nil || local == "" {
		return err
	}
	if has, err := m.below(ctx, local, head); err != nil || !has {
		return err
	}
	in, err := m.Tree.Checkouts(ctx)
	if err != nil || slices.ContainsFunc(in, func(c worktree.Checkout) bool { return c.Branch == branchRef(branch) }) {
		return err
	}
	return m.Tree.SetRef(ctx, branchRef(branch), "")
}

// follows reports whether a branch is at the result of an earlier change of the task, or at the start of a session that
// was sent on: then the later change replaces its content. The session began there, with the conflicts with the target
// marked.
func (m *Merger) follows(ctx context.Context, c ralph.Change, point string) (bool, error) {
	list, err := store.Read(ctx, m.Store, func(tx *store.Tx) ([]ralph.Change, error) {
		return tx.Changes(c.TaskID, 0)
	})
	return slices.ContainsFunc(list, func(o ralph.Change) bool {
		return o.ID < c.ID && (o.Head == point || o.To == point)
	}), err
}

// upon reports whether the new commit of a branch contains everything on the branch: people may have pushed there,
// and ralph never overwrites that. If not, the change is merged with it and verified again, or its task continues
// from there.
func (m *Merger) upon(ctx context.Context, c ralph.Change, point, to string) (bool, error) {
	if has, err := m.below(ctx, point, to); point == "" || err != nil || has {
		return err == nil, err
	}
	merged := worktree.Merge{Tree: c.Tree}
	known, err := m.follows(ctx, c, point)
	if err == nil && !known {
		merged, err = m.Tree.MergeTree(ctx, point, c.Head)
	}
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
	head, err := m.commit(ctx, merged.Tree, []string{point, c.Head}, "Continue the branch\n\n"+
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
