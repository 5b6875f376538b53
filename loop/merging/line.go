package merging

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"ralph"
	"ralph/loop/check"
	"ralph/store"
)

// Links caches the merges of changes that this process has made, and the time when it saw the remote. The zero Links is
// empty.
type Links struct {
	remote    lookout
	restacked string // the target and the newest change at the last [Merger.restack]

	mu   sync.Mutex
	made map[linkKey]Link
}

// A linkKey identifies the merge of a change onto a commit. People's commits have no session.
type linkKey struct{ onto, session, head string }

// maxLinks bounds the cached merges.
const maxLinks = 1000

// forget drops the cached merges: git may have removed a commit without a ref.
func (n *Links) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.made = nil
}

// A Link is a change merged onto the target, or onto the link before it.
type Link struct {
	Change ralph.Change
	Onto   string // the commit that it is merged onto
	Commit string // the merge; Onto if it has the change already
	Tree   string // tree of the merge
}

// A Stack has changes merged onto a target, one after the other.
type Stack struct {
	Target    Target
	Of        []int64 // ids of the changes that it was built from
	Links     []Link
	Known     int           // number of first links that are known to pass, each on its own
	Left      *ralph.Change // the first change that conflicts with one below it; nil for none
	Conflicts []string      // the conflicting files

	Verified int    // number of links that were verified together, with the result Refused
	Commit   string // commit that was verified
	Refused  string // why it was refused; "" if it passed
}

// stack merges changes with a target, one after the other. It leaves out changes that conflict. No ref keeps the
// result: after a kill it is built again.
func (m *Merger) stack(ctx context.Context, list []ralph.Change, on Target) (*Stack, error) {
	m.Links.mu.Lock()
	defer m.Links.mu.Unlock()
	s := &Stack{Target: on, Of: ids(list)}
	base := Link{Commit: on.Tip}
	var err error
	if base.Tree, err = m.Tree.Whole(ctx, on.Tip); err != nil {
		return nil, err
	}
	if on.Also != "" {
		l, conflicts, err := m.link(ctx, base, ralph.Change{Head: on.Also})
		if err != nil {
			return nil, err
		}
		if len(conflicts) == 0 { // otherwise people's work or merged work conflicts, and the next change may not
			base = l
		}
	}
	for _, c := range list {
		l, conflicts, err := m.link(ctx, base, c)
		switch {
		case err != nil:
			return nil, err
		case len(conflicts) == 0:
			s.Links, base = append(s.Links, l), l
		case s.Left == nil:
			s.Left, s.Conflicts = &c, conflicts
		}
	}
	return s, nil
}

// link merges a change onto a commit. The caller holds the lock.
func (m *Merger) link(ctx context.Context, below Link, c ralph.Change) (l Link, conflicts []string, err error) {
	key := linkKey{below.Commit, c.SessionID, c.Head}
	if l, ok := m.Links.made[key]; ok {
		l.Change = c
		return l, nil, nil
	}
	ours, theirs, parents := below.Commit, c.Head, m.parents(below.Commit, c.Head)
	gone, err := m.baseGone(ctx, below.Commit, c)
	if gone && err == nil {
		parents = parents[:1]
		ours, theirs, err = m.uponBase(ctx, below, c)
	}
	if err != nil {
		return l, nil, err
	}
	merged, err := m.Tree.MergeTree(ctx, ours, theirs)
	if err != nil || len(merged.Conflicts) > 0 {
		return l, merged.Conflicts, err
	}
	l = Link{Change: c, Onto: below.Commit, Commit: below.Commit, Tree: merged.Tree}
	switch {
	case c.SessionID == "":
		l.Commit, err = m.commit(ctx, l.Tree, []string{l.Onto, c.Head}, "Merge people's commits\n")
	case l.Tree != below.Tree:
		message, merr := m.message(ctx, c)
		if merr != nil {
			return l, nil, merr
		}
		l.Commit, err = m.commit(ctx, l.Tree, parents, message)
	}
	if err != nil {
		return l, nil, err
	}
	if m.Links.made == nil || len(m.Links.made) >= maxLinks {
		m.Links.made = map[linkKey]Link{}
	}
	m.Links.made[key] = l
	return l, nil, nil
}

// baseGone reports whether people removed the commit that a session started from, for example by a reset of the branch.
// A merge of the session's commits would bring the removed work back. Branches of tasks may start elsewhere.
func (m *Merger) baseGone(ctx context.Context, onto string, c ralph.Change) (bool, error) {
	if c.SessionID == "" || c.Base == "" || m.Branch {
		return false, nil
	}
	below, err := m.below(ctx, c.Base, onto)
	return !below && err == nil, err
}

// uponBase returns two commits for a merge, the link and the change, whose only common ancestor is the change's base.
// So the merge has only the session's own change.
func (m *Merger) uponBase(ctx context.Context, onto Link, c ralph.Change) (ours, theirs string, err error) {
	tree, err := m.Tree.Whole(ctx, c.Base)
	if err != nil {
		return "", "", err
	}
	base, err := m.commit(ctx, tree, nil, "base\n")
	if err != nil {
		return "", "", err
	}
	if ours, err = m.commit(ctx, onto.Tree, []string{base}, "ours\n"); err != nil {
		return "", "", err
	}
	if tree, err = m.Tree.Whole(ctx, c.Head); err == nil {
		theirs, err = m.commit(ctx, tree, []string{base}, "theirs\n")
	}
	return ours, theirs, err
}

// together returns the commit that merges the first n links of a stack: the last link, or a commit above it.
func (m *Merger) together(ctx context.Context, s *Stack, n int) (string, error) {
	first, last := s.Links[0], s.Links[n-1]
	switch {
	case last.Commit == s.Target.Tip, n == 1 && first.Onto == s.Target.Tip:
		return last.Commit, nil
	}
	var messages []string
	for _, l := range s.Links[:n] {
		message, err := m.message(ctx, l.Change)
		if err != nil {
			return "", err
		}
		messages = append(messages, message)
	}
	return m.commit(ctx, last.Tree, []string{s.Target.Tip, last.Commit}, together(s.changes()[:n], messages))
}

// has reports whether the last link is the change.
func (s *Stack) has(c ralph.Change) bool {
	return len(s.Links) > 0 && s.Links[len(s.Links)-1].Change.SessionID == c.SessionID
}

// tree returns the tree of the last link.
func (s *Stack) tree() string { return s.Links[len(s.Links)-1].Tree }

// changes returns the changes of the links.
func (s *Stack) changes() (list []ralph.Change) {
	for _, l := range s.Links {
		list = append(list, l.Change)
	}
	return list
}

// know counts the first links that are known to pass.
func (m *Merger) know(ctx context.Context, s *Stack) error {
	for _, l := range s.Links {
		commands, _, err := m.commands(ctx, []ralph.Change{l.Change})
		if err != nil {
			return err
		}
		list, all, err := m.stored(ctx, l.Tree, commands.All())
		if err != nil || !all || failed(list) || len(check.Rewritten(list)) > 0 {
			return err
		}
		s.Known++
	}
	return nil
}

// A standing is the part of the line ahead of a change.
type standing struct {
	ahead []ralph.Change
	lands bool // they can be merged before the change
}

// same reports whether the line ahead is unchanged.
func (s standing) same(as standing) bool {
	return s.lands == as.lands && slices.EqualFunc(s.ahead, as.ahead, func(a, b ralph.Change) bool {
		return a.SessionID == b.SessionID && a.Head == b.Head
	})
}

// before returns the part of a line ahead of a session's change. Nothing is merged while merging is paused, or
// while a task that is merged alone is not ahead.
func before(line []ralph.Change, session string, alone int64, rests bool) (s standing) {
	inOrder(line, alone)
	own := slices.IndexFunc(line, func(c ralph.Change) bool { return c.SessionID == session })
	s.ahead = line[:max(own, 0)]
	s.lands = !rests && (alone == 0 || own > 0 && line[0].TaskID == alone)
	return s
}

// ahead returns the changes ahead of one that is being checked.
func (m *Merger) ahead(ctx context.Context, c ralph.Change) (s standing, err error) {
	if m.Branch { // none of them moves the target
		return s, nil
	}
	return store.Read(ctx, m.Store, func(tx *store.Tx) (s standing, err error) {
		line, err := tx.Line()
		if err != nil {
			return s, err
		}
		state, away, alone, err := tx.QueueState(m.MaxSentBack)
		return before(line, c.SessionID, alone, away || state.Paused != ""), err
	})
}

// near returns the changes that are in the repository, after fetching the work of other machines.
func (m *Merger) near(ctx context.Context, list []ralph.Change) []ralph.Change {
	if !m.Store.Shared() {
		return slices.Clone(list)
	}
	var near []ralph.Change
	for _, c := range list {
		if c.State != ralph.Checking && !m.Tree.Has(ctx, c.Head) {
			if _, err := m.Obtain(ctx, c); err != nil {
				m.Log.Warn("a check goes without a change ahead of it, which is on another machine", "task", c.TaskID, "error", err)
			}
		}
		if m.Tree.Has(ctx, c.Head) {
			near = append(near, c)
		}
	}
	return near
}

// inOrder sorts a line, which is by place, in the order of merging: a task that is merged alone
// comes first.
func inOrder(line []ralph.Change, alone int64) {
	behind := func(c ralph.Change) int {
		if c.TaskID == alone {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(line, func(a, b ralph.Change) int { return behind(a) - behind(b) })
}

// Leave takes a session's change out of the line, because its agent continues or a review begins.
func (m *Merger) Leave(ctx context.Context, session string) {
	err := m.Store.Tx(context.WithoutCancel(ctx), func(tx *store.Tx) error { return tx.LeaveLine(session) })
	if err != nil { // the session's decision will take it out
		m.Log.Warn("cannot take a change out of the line", "session", session, "error", err)
	}
}

// watch calls over now and after each change of the database, until it returns true, late fires, or ctx ends.
func (m *Merger) watch(ctx context.Context, late <-chan time.Time, over func() bool) {
	for {
		changed := m.Store.Changed()
		if over() {
			return
		}
		select {
		case <-changed:
		case <-late:
			return
		case <-ctx.Done():
			return
		}
	}
}

// await waits for a change in the line ahead, for the verification of onto (unless it is nil), or until the time is up.
func (m *Merger) await(ctx context.Context, c ralph.Change, was standing, onto *Link, until time.Time) (err error) {
	late := time.NewTimer(time.Until(until))
	defer late.Stop()
	waited := false
	m.watch(ctx, late.C, func() bool {
		if waited {
			m.reached("woken")
		}
		var now standing
		if now, err = m.ahead(ctx, c); err != nil || !now.same(was) {
			return true
		}
		if onto != nil {
			var over bool
			if over, err = m.verified(ctx, c, *onto); over || err != nil {
				return true
			}
		}
		m.reached("waits")
		waited = true
		return false
	})
	return cmp.Or(err, ctx.Err())
}

// abandon calls stop once a change of was has left the line unmerged, because a check with it has become useless.
func (m *Merger) abandon(ctx context.Context, was []ralph.Change, stop func()) {
	m.watch(ctx, nil, func() bool {
		left, err := store.Read(ctx, m.Store, func(tx *store.Tx) (bool, error) {
			for _, o := range was {
				c, _, _, err := tx.ChangeBy(o.SessionID)
				stays := c.State == ralph.Checking || c.State.Waits() || c.State == ralph.Merged
				if err != nil || !stays || c.Head != o.Head {
					return err == nil, err
				}
			}
			return false, nil
		})
		if left {
			stop()
		}
		return left || err != nil // without an answer the check continues, and its result counts as usual
	})
}

// verified reports whether the shared commands of a change have results on the commit that it is
// merged onto.
func (m *Merger) verified(ctx context.Context, c ralph.Change, onto Link) (bool, error) {
	commands, _, err := m.commands(ctx, []ralph.Change{c})
	if err != nil {
		return false, err
	}
	_, all, err := m.stored(ctx, onto.Tree, commands.Shared)
	return all, err
}
