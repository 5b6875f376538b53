package merging

import (
	"context"
	"fmt"
	"slices"

	"ralph"
	"ralph/internal/text"
	"ralph/internal/worktree"
	"ralph/signals"
	"ralph/store"
)

// mostLanded bounds the commits of the target that are compared with a branch.
const mostLanded = 200

// landed returns the first commit of the target that contains all of a branch that people have merged, squashed or
// rebased there; "" if there is none.
func (m *Merger) landed(ctx context.Context, branch, tip string) (string, error) {
	list, err := m.Tree.Commits(ctx, tip, branch)
	if err != nil {
		return "", err
	}
	for _, k := range slices.Backward(list[:min(len(list), mostLanded)]) {
		if has, err := m.has(ctx, k.ID, branch); err != nil || has {
			return k.ID, err
		}
	}
	return "", nil
}

// has reports whether a commit has all of a branch, so that a merge would not change it.
func (m *Merger) has(ctx context.Context, commit, branch string) (bool, error) {
	merged, err := m.Tree.MergeTree(ctx, commit, branch)
	if err != nil || len(merged.Conflicts) > 0 {
		return false, err
	}
	tree, err := m.Tree.Whole(ctx, commit)
	return tree == merged.Tree, err
}

// restack rebuilds the branches of completed tasks on the target, if people have merged, squashed or rebased the branch
// of a dependency there. It adds a verified merge commit: no push is forced. It looks once at each tip of the target.
func (m *Merger) restack(ctx context.Context) error {
	if !m.Branch || m.Pulls {
		return nil
	}
	tip, err := m.Tip(ctx)
	if err != nil {
		return err
	}
	own, err := m.Tree.Refs(ctx, branchRef("ralph"))
	if err != nil || len(own) == 0 {
		return err // the branches are on another machine
	}
	list, err := store.Read(ctx, m.Store, (*store.Tx).Merged)
	if err != nil || len(list) == 0 {
		return err
	}
	seen := fmt.Sprint(tip, list[0].ID)
	if m.Links.restacked == seen {
		return nil
	}
	var left []string
	for _, c := range slices.Backward(list) { // the oldest first: others may depend on it
		why, err := m.rebuild(ctx, c, tip)
		if err != nil {
			return err
		}
		if why != "" {
			left = append(left, fmt.Sprintf("TASK-%d: %s", c.TaskID, why))
		}
	}
	m.Links.restacked = seen
	return m.Store.Tx(ctx, func(tx *store.Tx) error {
		if len(left) == 0 {
			return tx.ClearTrouble(store.TroubleRestack)
		}
		return tx.SetTrouble(store.Trouble{
			Kind: store.TroubleRestack, Command: "git merge " + m.Into,
			What: "branches whose dependency was merged into " + m.Into + " are not rebuilt: " + signals.FileList(left),
		})
	})
}

// rebuild rebuilds the branch of a change on the target, if a dependency has been merged there. why
// explains a failure.
func (m *Merger) rebuild(ctx context.Context, c ralph.Change, tip string) (why string, err error) {
	name, err := m.branchOf(ctx, c)
	if err != nil {
		return "", err
	}
	head, err := m.Tree.Ref(ctx, branchRef(name))
	if err != nil || head == "" {
		return "", err
	}
	before, err := store.Read(ctx, m.Store, func(tx *store.Tx) ([]ralph.Change, error) {
		return tx.MergedBefore(c.TaskID)
	})
	if err != nil {
		return "", err
	}
	for _, d := range before {
		if !m.Tree.Has(ctx, d.To) {
			continue // another machine merged it
		}
		stands, err := m.below(ctx, d.To, head)
		if err != nil {
			return "", err
		}
		if merged, err := m.below(ctx, d.To, tip); err != nil || merged || !stands {
			if err != nil {
				return "", err
			}
			continue
		}
		landed, err := m.landed(ctx, d.To, tip)
		if err != nil {
			return "", err
		}
		if landed == "" {
			continue
		}
		if has, err := m.below(ctx, landed, head); err != nil || has {
			return "", err
		}
		return m.upgrade(ctx, c, d, name, head)
	}
	return "", nil
}

// upgrade merges the target, which has the change d, into the branch of a change based on d.
func (m *Merger) upgrade(ctx context.Context, c, d ralph.Change, name, head string) (why string, err error) {
	onto, err := m.Base(ctx, c.TaskID)
	if err != nil {
		return "", err
	}
	tree, conflicts, err := m.between(ctx, d.To, onto, head)
	if err != nil || len(conflicts) > 0 {
		return "it conflicts in " + signals.FileList(conflicts), err
	}
	in, err := m.Tree.Checkouts(ctx)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(in, func(o worktree.Checkout) bool { return o.Branch == branchRef(name) }) {
		return name + " is checked out", nil
	}
	message := fmt.Sprintf("Merge %s, which has TASK-%d\n\n%s", m.Into, d.TaskID, ralph.Trailers(c.TaskID, c.SessionID))
	to, err := m.signedCommit(ctx, tree, []string{head, onto}, message)
	if err != nil {
		return "", err
	}
	b := &Built{Target: Target{Tip: onto}, Commit: to, Tree: tree}
	checks, err := m.judge(ctx, []ralph.Change{c}, b, false)
	if err != nil || ctx.Err() != nil {
		return "", err
	}
	if why := refused(checks, b.Rewritten); why != "" {
		return text.Line(why, 300), nil
	}
	if m.Push != "" {
		remote, err := m.remote(ctx)
		if err != nil {
			return "", err
		}
		if said, err := remote.Push(ctx, name, head, to); err != nil || said != (worktree.Pushed{}) {
			return fmt.Sprintf("%s does not take %s", m.Push, name), err
		}
	}
	why = fmt.Sprintf("TASK-%d is on %s", d.TaskID, m.Into)
	if _, err := m.Tree.Move(ctx, branchRef(name), head, to, why); err != nil {
		return "", err
	}
	return "", m.Store.Tx(ctx, func(tx *store.Tx) error { return tx.Restacked(c, d, m.Into, to) })
}

// between merges two commits with base as their only common ancestor.
func (m *Merger) between(ctx context.Context, base, ours, theirs string) (tree string, conflicts []string, err error) {
	made := [3]string{}
	for i, commit := range []string{base, ours, theirs} {
		is, err := m.Tree.Whole(ctx, commit)
		if err != nil {
			return "", nil, err
		}
		var parents []string
		if i > 0 {
			parents = made[:1]
		}
		if made[i], err = m.Tree.CommitTree(ctx, is, parents, "a side\n", [2]string{}); err != nil {
			return "", nil, err
		}
	}
	merged, err := m.Tree.MergeTree(ctx, made[1], made[2])
	return merged.Tree, merged.Conflicts, err
}
