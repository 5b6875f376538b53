package merging

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"ralph"
	"ralph/internal/text"
	"ralph/internal/worktree"
	"ralph/signals"
	"ralph/store"
)

// target returns the target of the next merge.
func (m *Merger) target(ctx context.Context) (Target, error) {
	s, err := m.stand(ctx)
	return s.Target, err
}

// Name returns the target's name for people.
func (m *Merger) Name() string { return m.Into }

// Tip returns the commit that sessions start from.
func (m *Merger) Tip(ctx context.Context) (string, error) {
	s, err := m.stand(ctx)
	if err == nil && s.Gone != "" {
		err = errors.New(s.Gone)
	}
	return s.Tip, err
}

// Begin returns the commit to compare unmerged work that ends at head with; see [worktree.Tree.Begin].
func (m *Merger) Begin(ctx context.Context, base, head string) (string, error) {
	return m.Tree.Begin(ctx, base, head, PointRef(m.Into), branchRef(m.Into), m.remoteRef())
}

// Base returns the commit that a session of a task starts from: the tip and, if each task
// gets its own branch, the branches of its dependencies. Branches that conflict are left
// out.
func (m *Merger) Base(ctx context.Context, task int64) (string, error) {
	base, err := m.Tip(ctx)
	if err != nil || !m.Branch || m.Pulls { // the merge of a pull request is in the target
		return base, err
	}
	before, err := store.Read(ctx, m.Store, func(tx *store.Tx) ([]ralph.Change, error) { return tx.MergedBefore(task) })
	if err != nil {
		return "", err
	}
	for _, c := range before {
		if has, err := m.below(ctx, c.To, base); err != nil || has {
			if err != nil && m.Tree.Has(ctx, c.To) {
				return "", err
			}
			continue
		}
		if landed, err := m.landed(ctx, c.To, base); err == nil && landed != "" { // it was squashed or rebased
			continue
		}
		merged, err := m.Tree.MergeTree(ctx, base, c.To)
		switch {
		case err != nil:
			return "", err
		case len(merged.Conflicts) > 0:
			m.Log.Warn("left out a dependency's branch that conflicts", "task", task, "on", c.TaskID,
				"files", merged.Conflicts)
			continue
		}
		if upon, err := m.below(ctx, base, c.To); err != nil {
			return "", err
		} else if upon {
			base = c.To
			continue
		}
		message := fmt.Sprintf("Merge TASK-%d\n", c.TaskID)
		if base, err = m.signedCommit(ctx, merged.Tree, []string{base, c.To}, message); err != nil {
			return "", err
		}
	}
	return base, nil
}

// moving protects moves of refs that others must see completely or not at all: sessions read
// the target while another change is merged, and must not mistake that for people's work. It
// does not block other processes. They read the commit point first and people's branch last,
// and refs move in an order in which no intermediate state looks like a rewrite.
var moving sync.Mutex

// stand reads the state of the target, and records people's changes of their branch.
func (m *Merger) stand(ctx context.Context) (s Stand, err error) {
	var r Refs
	switch {
	case m.Branch && !m.Pulls: // only people move the branch
	case m.Push != "":
		r.Point, err = m.known(ctx)
	default:
		moving.Lock()
		defer moving.Unlock()
		if r.Point, err = m.Tree.Ref(ctx, PointRef(m.Into)); err == nil {
			r.Seen, err = m.Tree.Ref(ctx, seenRefs+m.Into)
		}
	}
	if err == nil {
		r.Local, err = m.Tree.Ref(ctx, branchRef(m.Into))
	}
	if err != nil {
		return s, err
	}
	s, err = Standing(r, m.Into, m.Push != "" && (!m.Branch || m.Pulls), func(commit, of string) (bool, error) {
		return m.Tree.Ancestor(ctx, commit, of)
	})
	if err != nil || s.Gone != "" || m.Branch || m.Push != "" {
		return s, err
	}
	if s.Rewritten {
		err = m.rewritten(ctx, r)
	}
	if err != nil {
		return s, err
	}
	if s.Rewritten { // first, so that a kill does not make it look like a merge
		if _, err := m.Tree.Move(ctx, PointRef(m.Into), r.Point, r.Local, "people moved "+m.Into); err != nil {
			return s, err
		}
	}
	if r.Seen != r.Local {
		err = m.Tree.SetRef(ctx, seenRefs+m.Into, r.Local)
	}
	return s, err
}

// rewritten keeps and reports merged commits that people's branch never had when they reset it to an earlier commit.
func (m *Merger) rewritten(ctx context.Context, r Refs) error {
	seen, err := m.below(ctx, r.Point, r.Seen)
	if err != nil || seen {
		return err // their branch had the commit, and git still has it
	}
	kept := fmt.Sprintf("refs/ralph/lost/%s-%.12s", m.Into, r.Point)
	if err := m.Tree.SetRef(ctx, kept, r.Point); err != nil {
		return err
	}
	return m.Store.Tx(ctx, func(tx *store.Tx) error {
		return tx.NoteRewritten(ralph.TargetRewritten{Branch: m.Into, From: r.Point, To: r.Local, Kept: kept})
	})
}

// point returns the commit point of a change that was being merged.
func (m *Merger) point(ctx context.Context, c ralph.Change) (string, error) {
	switch {
	case m.Branch:
		return m.branchPoint(ctx, c)
	case m.Push != "":
		m.Links.remote.fetching.Lock()
		defer m.Links.remote.fetching.Unlock()
		return m.latest(ctx)
	}
	return m.Tree.Ref(ctx, PointRef(m.Into))
}

// pointRef returns the ref that a change's merge moves.
func (m *Merger) pointRef(ctx context.Context, c ralph.Change) (string, error) {
	if m.Branch {
		name, err := m.branchOf(ctx, c)
		return branchRef(name), err
	}
	return PointRef(m.Into), nil
}

// move stores the new value of the commit point, and then moves it: steps one and two of
// a merge. If a merge was interrupted, it repeats the same move.
func (m *Merger) move(ctx context.Context, list []ralph.Change, s *Stack) error {
	if list[0].State != ralph.Moving {
		point, err := s.Target.Point, error(nil)
		if m.Branch {
			if list[0].Branch, err = m.branchOf(ctx, list[0]); err == nil {
				point, err = m.Tree.Ref(ctx, branchRef(list[0].Branch))
			}
		}
		if err == nil && m.Pulls {
			if is, err := m.upon(ctx, list[0], point, s.Links[0].Commit); err != nil || !is {
				return err
			}
		}
		if err == nil {
			err = m.describe(ctx, list, point, s)
		}
		if err == nil {
			err = m.Store.Tx(ctx, func(tx *store.Tx) error {
				for _, c := range list {
					if err := tx.BeginMove(c); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err != nil {
			return err
		}
		m.reached("stored")
	}
	c := list[len(list)-1]
	c.From = list[0].From
	// From here on the ref decides: even a stopped run moves it.
	ctx = context.WithoutCancel(ctx)
	why := strings.Join(tasks(list), ", ")
	if m.Push != "" {
		if pushed, err := m.push(ctx, c); err != nil || !pushed {
			return err
		}
	}
	if m.Push == "" || m.Branch { // this is the commit point of a pushed branch, too
		ref, err := m.pointRef(ctx, c)
		if err != nil {
			return err
		}
		// The next look checks whether the point moved.
		moving.Lock()
		_, err = m.Tree.Move(ctx, ref, c.From, c.To, why)
		moving.Unlock()
		if err != nil {
			return err
		}
	}
	m.reached("moved")
	return nil
}

// describe fills in the results of the changes, the first links of a stack, before the commit point moves from point.
// Changes that were verified one by one become single commits of the target, others one commit together.
func (m *Merger) describe(ctx context.Context, list []ralph.Change, point string, s *Stack) (err error) {
	together := s.Commit
	if s.Verified == 0 && s.Links[0].Onto != s.Target.Tip {
		if together, err = m.together(ctx, s, len(list)); err != nil {
			return err
		}
	}
	if m.Sign {
		if together, err = m.sign(ctx, s, len(list), together); err != nil {
			return err
		}
	}
	for i := range list {
		c, l := &list[i], s.Links[i]
		c.From, c.To, c.Commit = point, cmp.Or(together, l.Commit), ""
		if together == "" {
			point = c.To
		}
		if l.Commit == l.Onto {
			continue
		}
		c.Commit = l.Commit
		if c.Files, err = m.Tree.Changes(ctx, l.Onto, l.Commit); err != nil {
			return err
		}
	}
	return nil
}

// ErrUnsigned means that a commit cannot be signed until a person unlocks the key.
var ErrUnsigned = errors.New("cannot be signed")

// signed makes a copy of a commit, on onto, with the person's signature. The error wraps
// [ErrUnsigned].
func (m *Merger) signed(ctx context.Context, commit, onto string) (string, error) {
	made, err := m.Tree.Signed(ctx, commit, onto, m.AfterEnv)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("the merge %w: %s (unlock your key, or set merge.sign: false)",
			ErrUnsigned, text.Line(err.Error(), 300))
	}
	return made, err
}

// signedCommit creates a merge commit in people's name, signed if merges are signed.
func (m *Merger) signedCommit(ctx context.Context, tree string, parents []string, message string) (string, error) {
	commit, err := m.commit(ctx, tree, parents, message)
	if err == nil && m.Sign {
		commit, err = m.signed(ctx, commit, parents[0])
	}
	return commit, err
}

// sign replaces the commits that the branch gets from the first n links of a stack with signed ones: the commit that
// merges all of them, if there is one, or else the commits of the links.
func (m *Merger) sign(ctx context.Context, s *Stack, n int, together string) (commit string, err error) {
	commit = together
	if together != "" && together != s.Target.Tip {
		commit, err = m.signed(ctx, together, s.Target.Tip)
		for i := range s.Links[:n] { // the commit of a single link is the link's own
			if s.Links[i].Commit == together {
				s.Links[i].Commit = commit
			}
		}
	}
	onto := s.Target.Tip
	for i := 0; i < n && together == "" && err == nil; i++ {
		l := &s.Links[i]
		if l.Commit != l.Onto {
			l.Commit, err = m.signed(ctx, l.Commit, onto)
		} else {
			l.Commit = onto
		}
		l.Onto, onto = onto, l.Commit
	}
	return commit, err
}

// tasks names the tasks of changes.
func tasks(list []ralph.Change) []string {
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = fmt.Sprintf("TASK-%d", c.TaskID)
	}
	return names
}

// complete records changes as merged, which is the third step, and updates people's branch.
func (m *Merger) complete(ctx context.Context, list []ralph.Change) error {
	ctx, c := context.WithoutCancel(ctx), list[0]
	into := m.Into
	if m.Branch {
		if into = c.Branch; m.Pulls {
			return m.Store.Tx(ctx, func(tx *store.Tx) error { return tx.BeginReview(c) })
		}
		if err := m.runAfter(ctx, c, into); err != nil {
			// The branch exists, so the task is complete anyway.
			m.Log.Warn("merge.after failed", "task", c.TaskID, "branch", into, "error", err)
			what := fmt.Sprintf("merge.after failed for TASK-%d on branch %s: %s", c.TaskID, into, text.Line(err.Error(), 500))
			err = m.Store.Tx(ctx, func(tx *store.Tx) error {
				command := fmt.Sprintf("ralph show %d", c.TaskID)
				return tx.SetTrouble(store.Trouble{Kind: store.TroubleAfter, What: what, Command: command})
			})
			if err != nil {
				return err
			}
		}
	}
	var behind ralph.TargetBehind
	if !m.Branch {
		behind = m.follow(ctx)
	}
	if err := m.Store.Tx(ctx, func(tx *store.Tx) error {
		for _, c := range list {
			if err := tx.CompleteChange(c, m.Run, into, behind.Reason); err != nil {
				return err
			}
		}
		if m.Branch {
			return nil
		}
		return tx.NoteBehind(behind)
	}); err != nil {
		return err
	}
	m.reached("completed")
	if err := m.forget(ctx, list); err != nil { // [Merger.Forget] tries again
		m.Log.Warn("cannot delete the ref of a change that was merged", "task", c.TaskID, "error", err)
	}
	return nil
}

// Missing returns the changes of completed tasks that are no longer where they were merged,
// in the target or on a separate branch. It does not check pushed branches: the remote has
// them, and a squashed pull request contains no such commit.
func (m *Merger) Missing(ctx context.Context) (missing []ralph.Change, err error) {
	list, err := store.Read(ctx, m.Store, (*store.Tx).Merged)
	if err != nil {
		return nil, err
	}
	if missing, err = m.missing(ctx, list); err != nil || len(missing) == 0 || !m.Travels() {
		return missing, err
	}
	// Another machine may have merged them, without a fetch here since.
	remote, err := m.remote(ctx)
	if err != nil {
		return nil, err
	}
	commit, err := remote.Fetch(ctx, m.Into)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil: // the remote is unreachable: changes of other machines are unknown
		return slices.DeleteFunc(missing, func(c ralph.Change) bool { return !m.Tree.Has(ctx, c.To) }), nil
	case commit != "":
		err = m.sawRemote(ctx, commit)
	}
	if err != nil {
		return nil, err
	}
	return m.missing(ctx, list)
}

// missing is [Merger.Missing] for some changes, newest first, as far as this machine knows.
func (m *Merger) missing(ctx context.Context, list []ralph.Change) (missing []ralph.Change, err error) {
	if len(list) == 0 || m.Branch && m.Push != "" {
		return nil, nil
	}
	tips, err := m.tips(ctx)
	if err != nil {
		return nil, err
	}
	newer := slices.Clone(tips)
	if since := list[len(list)-1].From; since != "" && m.Tree.Has(ctx, since) {
		newer = append(newer, "^"+since)
	}
	there, err := m.Tree.History(ctx, newer)
	if err != nil {
		return nil, err
	}
	for _, c := range list { // an older change may be above a newer one
		for i := 0; i < len(tips) && !there[c.To] && err == nil; i++ {
			there[c.To], err = m.below(ctx, c.To, tips[i])
		}
	}
	if err != nil {
		return nil, err
	}
	own, err := m.Tree.Refs(ctx, branchRef("ralph"))
	if err != nil {
		return nil, err
	}
	kept := map[int64]bool{}
	for ref := range own {
		var task int64
		if _, err := fmt.Sscanf(ref, branchRef(ownBranch)+"%d", &task); err == nil {
			kept[task] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(list), func(c ralph.Change) bool { return there[c.To] || kept[c.TaskID] }), nil
}

// tips returns the positions of the target: the local branch, ralph's ref, the remote.
func (m *Merger) tips(ctx context.Context) (tips []string, err error) {
	for _, ref := range []string{branchRef(m.Into), PointRef(m.Into), m.remoteRef()} {
		tip, err := m.Tree.Ref(ctx, ref)
		if err != nil {
			return nil, err
		}
		if tip != "" {
			tips = append(tips, tip)
		}
	}
	return tips, nil
}

// Reverted returns the changes that people have reverted, newest first, as far as this machine knows. With a remote, a
// missing commit may be another machine's.
func (m *Merger) Reverted(ctx context.Context, list []ralph.Change) (reverted []ralph.Reverted, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	tips, err := m.tips(ctx)
	if err != nil || len(tips) == 0 {
		return nil, err
	}
	var missing []ralph.Change
	if !m.Travels() {
		if missing, err = m.missing(ctx, list); err != nil {
			return nil, err
		}
	}
	for _, c := range missing {
		reverted = append(reverted, ralph.Reverted{TaskID: c.TaskID, Commit: c.To, Branch: m.Into})
	}
	all, err := m.Tree.Reverts(ctx, tips, list[len(list)-1].From)
	for _, c := range list {
		by, ok := takenBack(all, c.Commit)
		if !ok {
			by, ok = takenBack(all, c.To)
		}
		if !ok {
			if by, ok = takenBack(all, c.Head); ok { // only this commit has the work
				before, err := m.Tree.Ref(ctx, c.Head+"^1")
				ok = err == nil && before == c.Base
			}
		}
		if ok {
			reverted = append(reverted, ralph.Reverted{TaskID: c.TaskID, By: by, Branch: m.Into})
		}
	}
	return reverted, err
}

// takenBack returns the last revert of a commit that is not itself reverted. Reverts are listed oldest first.
func takenBack(all []worktree.Revert, commit string) (by ralph.Commit, ok bool) {
	for i, r := range all {
		if !slices.Contains(r.Of, commit) {
			continue
		}
		if _, again := takenBack(all[i+1:], r.ID); !again {
			by, ok = r.Commit, true
		}
	}
	return by, ok
}

// reached is a hook for tests.
func (m *Merger) reached(point string) {
	if m.after != nil {
		m.after(point)
	}
}

// fastForward fast-forwards people's branch to the commit point, if that touches none of their work. Otherwise it tells
// people once why, and how to do it; the next call tries again. recorded has the records of earlier tries.
func (m *Merger) fastForward(ctx context.Context, recorded store.MergeQueue) error {
	if m.Branch {
		return nil
	}
	behind := m.follow(ctx)
	if ctx.Err() != nil || recorded.Says(behind) {
		return ctx.Err()
	}
	return m.Store.Tx(ctx, func(tx *store.Tx) error { return tx.NoteBehind(behind) })
}

// CaughtUp checks again why people's branch lacks merged work: they may have merged it, made a commit, or removed the
// obstacle. It moves nothing.
func (m *Merger) CaughtUp(ctx context.Context) error {
	at, err := m.look(ctx)
	if err != nil {
		return err
	}
	if at.forward {
		at.Reason, err = m.inTheWay(ctx, at)
	}
	if err != nil {
		return err
	}
	return m.Store.Tx(ctx, func(tx *store.Tx) error {
		q, err := tx.MergeQueue()
		if err != nil || q.Behind == "" {
			return err // a run has just moved it
		}
		if at.Reason == "" {
			at.TargetBehind = ralph.TargetBehind{}
		}
		at.Ahead = q.Ahead
		return tx.NoteBehind(at.TargetBehind)
	})
}

// follow moves people's branch to the commit point. It returns the obstacle; the zero value if the branch has all
// merged work.
func (m *Merger) follow(ctx context.Context) ralph.TargetBehind {
	behind, err := m.tryFollow(ctx)
	if err != nil { // nothing is lost: the commit point has the work
		behind.Branch, behind.Command = m.Into, cmp.Or(behind.Command, "ralph doctor")
		behind.Reason = fmt.Sprintf("%s could not be moved: %v", m.Into, err)
	}
	if behind.Reason == "" {
		return ralph.TargetBehind{}
	}
	if behind.Commit == "" { // the reason is unknown
		return behind
	}
	if behind.Ahead, err = m.Tree.Count(ctx, branchRef(m.Into), behind.Commit); err != nil {
		m.Log.Warn("cannot count the commits that the branch lacks", "branch", m.Into, "error", err)
	}
	return behind
}

func (m *Merger) tryFollow(ctx context.Context) (behind ralph.TargetBehind, err error) {
	if m.Push == "" { // commits that people removed from their branch must not come back
		if _, err := m.stand(ctx); err != nil {
			return behind, err
		}
	}
	at, err := m.look(ctx)
	if err != nil || !at.forward {
		return at.TargetBehind, err
	}
	moving.Lock()
	defer moving.Unlock()
	at.Reason, err = m.moveLocal(ctx, at.in, at.local, at.Commit)
	if err == nil && at.Reason == "" && m.Push == "" {
		err = m.Tree.SetRef(ctx, seenRefs+m.Into, at.Commit)
	}
	return at.TargetBehind, err
}

// A lag compares people's branch with the commit point. Its reason is "" if the branch has all merged work, or can be
// moved.
type lag struct {
	ralph.TargetBehind
	forward bool   // the commit graph allows a fast-forward to the commit
	local   string // the branch's own commit
	in      []worktree.Checkout
}

// look compares people's branch with the commit point.
func (m *Merger) look(ctx context.Context) (at lag, err error) {
	ref := PointRef(m.Into)
	if m.Push != "" {
		ref = m.remoteRef()
	}
	at.TargetBehind = ralph.TargetBehind{Branch: m.Into, Command: "git merge " + ref}
	at.local, err = m.Tree.Ref(ctx, branchRef(m.Into))
	if err == nil {
		at.Commit, err = m.Tree.Ref(ctx, ref)
	}
	if err != nil || at.Commit == "" || at.local == "" || at.local == at.Commit {
		return at, err
	}
	if has, err := m.below(ctx, at.Commit, at.local); err != nil || has {
		return at, err
	}
	if at.forward, err = m.below(ctx, at.local, at.Commit); err != nil {
		return at, err
	}
	all, err := m.Tree.Checkouts(ctx)
	if err != nil {
		return at, err
	}
	at.in = slices.DeleteFunc(all, func(c worktree.Checkout) bool { return c.Branch != branchRef(m.Into) })
	git := "git"
	switch {
	case len(at.in) == 0:
		at.Command = fmt.Sprintf("git fetch . %s:%s", ref, branchRef(m.Into))
	case at.in[0].Dir != m.Tree.Top():
		git = "git -C " + quoted(at.in[0].Dir)
		at.Command = git + " merge " + ref
	}
	if len(at.in) == 1 && at.in[0].Busy != "" {
		at.forward, at.Reason = false, fmt.Sprintf("a %s is under way (finish it first)", at.in[0].Busy)
		at.Command = fmt.Sprintf("%s %s --continue", git, at.in[0].Busy)
	} else if !at.forward {
		at.TargetBehind, err = m.diverged(ctx, at.TargetBehind, at.local, git)
	}
	return at, err
}

// inTheWay names people's uncommitted files that prevent their branch from moving.
func (m *Merger) inTheWay(ctx context.Context, at lag) (string, error) {
	const nothing = "nothing is in its way any more"
	if len(at.in) == 0 {
		return nothing, nil
	}
	t, err := m.Tree.In(ctx, at.in[0].Dir)
	if err != nil {
		return "", err
	}
	uncommitted, err := t.Uncommitted(ctx)
	if err != nil {
		return "", err
	}
	files, err := t.Files(ctx, at.local, at.Commit)
	if err != nil {
		return "", err
	}
	had, err := t.Names(ctx, at.local)
	if err != nil {
		return "", err
	}
	var edits, others []string
	for _, f := range files {
		if _, err := os.Lstat(filepath.Join(at.in[0].Dir, f)); !slices.Contains(had, f) && err == nil {
			others = append(others, f) // including ignored files
		} else if slices.Contains(uncommitted, f) {
			edits = append(edits, f)
		}
	}
	switch {
	case len(edits) > 0:
		return worktree.Edits(edits), nil
	case len(others) > 0:
		return worktree.Untracked(others), nil
	}
	filtered, err := t.Filtered(ctx, at.Commit, files)
	return cmp.Or(filtered, nothing), err
}

// diverged reports commits of people's branch that the commit point lacks. Mergeable ones become part of the next
// merge.
func (m *Merger) diverged(ctx context.Context, b ralph.TargetBehind, local, git string) (ralph.TargetBehind, error) {
	if m.Push != "" {
		b.Reason, b.Command = "it has commits that the remote has not", git+" pull"
		return b, nil
	}
	merged, err := m.Tree.MergeTree(ctx, b.Commit, local)
	if len(merged.Conflicts) > 0 {
		b.Reason = fmt.Sprintf("you have commits that conflict with it in %s", signals.FileList(merged.Conflicts))
	} else if err == nil {
		b.Reason = "you have made other commits meanwhile, with which it was not verified"
	}
	if !strings.HasPrefix(b.Command, git+" merge") {
		b.Command = fmt.Sprintf("git checkout %s && %s", m.Into, "git merge "+PointRef(m.Into))
	}
	return b, err
}

// quoted quotes a path for a shell if necessary.
func quoted(path string) string {
	plain := func(r rune) bool {
		return strings.ContainsRune("/._-+,@%", r) || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	}
	if strings.IndexFunc(path, func(r rune) bool { return !plain(r) }) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// moveLocal moves people's branch, which is checked out in the given work trees. If git refuses, refused
// explains why, and nothing has changed.
func (m *Merger) moveLocal(ctx context.Context, in []worktree.Checkout, from, to string) (refused string, err error) {
	switch {
	case len(in) == 0:
		_, err = m.Tree.Move(ctx, branchRef(m.Into), from, to, "follow "+PointRef(m.Into))
		return "", err
	case len(in) > 1:
		return "it is checked out in several work trees", nil
	}
	t, err := m.Tree.In(ctx, in[0].Dir)
	if err != nil {
		return "", err
	}
	return t.FastForward(ctx, to)
}

// ownBranch is the prefix of the branches of tasks.
const ownBranch = "ralph/TASK-"

// slug turns a title into a part of a branch name.
func slug(title string) string {
	words := strings.FieldsFunc(strings.ToLower(title), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	name := ""
	for _, w := range words {
		if len(name)+len(w) >= maxSlug {
			break
		}
		name += "-" + w
	}
	return name
}

// maxSlug is the maximum length of a slug in bytes.
const maxSlug = 50

// branchOf returns the name of the branch for a change, which stays when the task's title changes: a session for a
// review continues that of the open pull request. An undo and the next try after a closed one get new branches, because
// no push is forced.
func (m *Merger) branchOf(ctx context.Context, c ralph.Change) (name string, err error) {
	if c.Branch != "" {
		return c.Branch, nil
	}
	return name, m.Store.View(ctx, func(tx *store.Tx) error {
		t, err := tx.Task(c.TaskID)
		if err != nil {
			return err
		}
		name = fmt.Sprintf("%s%d", ownBranch, t.ID)
		if m.Pulls {
			open, ended, err := tx.PullsOf(t.ID)
			if err != nil {
				return err
			}
			switch {
			case c.Undo != "":
				name += fmt.Sprintf("-undo-%d", c.ID)
			case open != "":
				name = open
				return nil
			case ended > 0:
				name += fmt.Sprintf("-%d", ended+1)
			}
		}
		name += slug(t.Title)
		return nil
	})
}

// branchPoint returns the commit of a change's branch.
func (m *Merger) branchPoint(ctx context.Context, c ralph.Change) (string, error) {
	name, err := m.branchOf(ctx, c)
	if err != nil {
		return "", err
	}
	return m.Tree.Ref(ctx, branchRef(name))
}
