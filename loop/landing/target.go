package landing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"ralph"
	"ralph/internal/worktree"
	"ralph/loop/place"
	"ralph/store"
)

// target returns where the next change would land.
func (l *Lander) target(ctx context.Context) (Target, error) {
	s, err := l.stand(ctx)
	return s.Target, err
}

// Name returns the target's name for people.
func (l *Lander) Name() string { return l.Into }

// Tip returns the commit that sessions start from.
func (l *Lander) Tip(ctx context.Context) (string, error) {
	s, err := l.stand(ctx)
	if err == nil && s.Gone != "" {
		err = fmt.Errorf("%s: %w", s.Gone, ErrGone)
	}
	return s.Tip, err
}

// Base returns the commit that a session of a task starts from: the tip
// and, if each task gets a branch of its own, the branches of the tasks
// that it depends on. Branches that conflict are left out.
func (l *Lander) Base(ctx context.Context, task int64) (string, error) {
	base, err := l.Tip(ctx)
	if err != nil || !l.Branch {
		return base, err
	}
	before, err := store.Read(ctx, l.Store, func(tx *store.Tx) ([]ralph.Change, error) { return tx.LandedBefore(task) })
	if err != nil {
		return "", err
	}
	for _, c := range before {
		if has, err := l.below(ctx, c.To, base); err != nil || has {
			if err != nil && l.Tree.Has(ctx, c.To) {
				return "", err
			}
			continue
		}
		m, err := l.Tree.MergeTree(ctx, base, c.To)
		switch {
		case err != nil:
			return "", err
		case len(m.Conflicts) > 0:
			l.Log.Warn("left out a dependency's branch that conflicts", "task", task, "on", c.TaskID,
				"files", m.Conflicts)
			continue
		}
		if upon, err := l.below(ctx, base, c.To); err != nil {
			return "", err
		} else if upon {
			base = c.To
			continue
		}
		if base, err = l.commit(ctx, m.Tree, []string{base, c.To}, fmt.Sprintf("Merge TASK-%d\n", c.TaskID)); err != nil {
			return "", err
		}
	}
	return base, nil
}

// ErrGone says that the target branch does not exist.
var ErrGone = errors.New("nothing can land")

// moving protects moves of refs that others must see completely or not at all: sessions
// read the target while another change lands, and must not take that for people's doing.
// It does not hold other processes: they read the commit point first and people's branch last,
// and a landing moves the refs so that none of its moments looks like that then.
var moving sync.Mutex

// stand reads the state of the target, and records what people did to their branch.
func (l *Lander) stand(ctx context.Context) (s Stand, err error) {
	var r Refs
	switch {
	case l.Branch: // the branch is people's alone
	case l.Push != "":
		r.Point, err = l.known(ctx)
	default:
		moving.Lock()
		defer moving.Unlock()
		if r.Point, err = l.Tree.Ref(ctx, PointRef(l.Into)); err == nil {
			r.Seen, err = l.Tree.Ref(ctx, seenRefs+l.Into)
		}
	}
	if err == nil {
		r.Local, err = l.Tree.Ref(ctx, branchRef(l.Into))
	}
	if err != nil {
		return s, err
	}
	s, err = Standing(r, l.Into, l.Push != "" && !l.Branch, func(commit, of string) (bool, error) {
		return l.Tree.Ancestor(ctx, commit, of)
	})
	if err != nil || s.Gone != "" || l.Branch || l.Push != "" {
		return s, err
	}
	if s.Rewritten {
		err = l.rewritten(ctx, r)
	}
	if err != nil {
		return s, err
	}
	if s.Rewritten { // first, so that after a kill this does not look like a landing
		if _, err := l.Tree.Move(ctx, PointRef(l.Into), r.Point, r.Local, "people moved "+l.Into); err != nil {
			return s, err
		}
	}
	if r.Seen != r.Local {
		err = l.Tree.SetRef(ctx, seenRefs+l.Into, r.Local)
	}
	return s, err
}

// rewritten keeps and reports landed commits that people's branch did not
// have yet when they reset it to before them.
func (l *Lander) rewritten(ctx context.Context, r Refs) error {
	seen, err := l.below(ctx, r.Point, r.Seen)
	if err != nil || seen {
		return err // they had it, and git still has it
	}
	kept := fmt.Sprintf("refs/ralph/lost/%s-%.12s", l.Into, r.Point)
	if err := l.Tree.SetRef(ctx, kept, r.Point); err != nil {
		return err
	}
	return l.Store.Tx(ctx, func(tx *store.Tx) error {
		return tx.NoteRewritten(ralph.TargetRewritten{Branch: l.Into, From: r.Point, To: r.Local, Kept: kept})
	})
}

// point returns the commit point of a change that was landing.
func (l *Lander) point(ctx context.Context, c ralph.Change) (string, error) {
	switch {
	case l.Branch:
		return l.branchPoint(ctx, c)
	case l.Push != "":
		return l.fetch(ctx)
	}
	return l.Tree.Ref(ctx, PointRef(l.Into))
}

// pointRef returns the ref that is moved for a change.
func (l *Lander) pointRef(ctx context.Context, c ralph.Change) (string, error) {
	if l.Branch {
		name, err := l.branchOf(ctx, c)
		return branchRef(name), err
	}
	return PointRef(l.Into), nil
}

// move stores the new value of the commit point, and then moves it: steps one and
// two of a landing. For a change that was landing already, it repeats the same move.
func (l *Lander) move(ctx context.Context, list []ralph.Change, b *Built) error {
	c := list[0]
	if c.State != ralph.Landing {
		point, err := b.Target.Point, error(nil)
		if l.Branch {
			point, err = l.branchPoint(ctx, c)
		}
		if err == nil {
			err = l.Store.Tx(ctx, func(tx *store.Tx) error {
				for _, c := range list {
					if err := tx.BeginLanding(c.ID, c.State, point, b.Commit); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err != nil {
			return err
		}
		c.From, c.To = point, b.Commit
		l.killed("stored")
	}
	// From here on the ref decides: even a run that is stopped now moves it.
	ctx = context.WithoutCancel(ctx)
	why := strings.Join(tasks(list), ", ")
	if l.Push != "" {
		if pushed, err := l.push(ctx, c); err != nil || !pushed {
			return err
		}
	}
	if l.Push == "" || l.Branch { // for a pushed branch, too, this is the commit point
		ref, err := l.pointRef(ctx, c)
		if err != nil {
			return err
		}
		// The next look finds out whether it moved.
		moving.Lock()
		_, err = l.Tree.Move(ctx, ref, c.From, c.To, why)
		moving.Unlock()
		if err != nil {
			return err
		}
	}
	l.killed("moved")
	return nil
}

// tasks names the tasks of changes.
func tasks(list []ralph.Change) []string {
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = fmt.Sprintf("TASK-%d", c.TaskID)
	}
	return names
}

// complete records that changes have landed, the third step, and updates people's branch.
func (l *Lander) complete(ctx context.Context, list []ralph.Change) error {
	ctx, c := context.WithoutCancel(ctx), list[0]
	into := l.Into
	if l.Branch {
		var err error
		if into, err = l.branchOf(ctx, c); err != nil {
			return err
		}
		if err := l.runAfter(ctx, c, into); err != nil {
			// The branch exists, as promised; people see the warning.
			l.Log.Warn("merge.after failed", "task", c.TaskID, "branch", into, "error", err)
		}
	}
	left, err := l.left(ctx, c)
	if err != nil {
		return err
	}
	if err := l.Store.Tx(ctx, func(tx *store.Tx) error {
		for _, c := range list {
			if err := tx.CompleteChange(c, into); err != nil {
				return err
			}
		}
		return tx.NoteLanded(left)
	}); err != nil {
		return err
	}
	l.killed("completed")
	for i := range list {
		list[i].To = c.To
	}
	if err := l.forget(ctx, list); err != nil { // [Lander.Forget] tries again
		l.Log.Warn("cannot delete the ref of a change that landed", "task", c.TaskID, "error", err)
	}
	if l.Branch {
		return nil
	}
	return l.FastForward(ctx)
}

// left returns the files that a landing on the target changed.
func (l *Lander) left(ctx context.Context, c ralph.Change) (list []store.LandedFile, err error) {
	if l.Branch || c.To == c.From {
		return nil, nil
	}
	touched, err := l.Tree.Touched(ctx, []string{c.To})
	for _, name := range touched[c.To] {
		list = append(list, store.LandedFile{
			Path: name, Commit: c.To, Session: c.SessionID, Steers: place.Matches(l.Steering, name),
		})
	}
	return list, err
}

// Missing returns the changes of completed tasks that are no longer where they landed,
// in the target or on a branch of their own. Branches that were pushed are not
// checked: the remote has them, and a squashed pull request contains no such commit.
func (l *Lander) Missing(ctx context.Context) (missing []ralph.Change, err error) {
	list, err := store.Read(ctx, l.Store, (*store.Tx).Landed)
	if err != nil || len(list) == 0 || l.Branch && l.Push != "" {
		return nil, err
	}
	var tips []string
	for _, ref := range []string{branchRef(l.Into), PointRef(l.Into), l.remoteRef()} {
		tip, err := l.Tree.Ref(ctx, ref)
		if err != nil {
			return nil, err
		}
		if tip != "" {
			tips = append(tips, tip)
		}
	}
	there, err := l.Tree.History(ctx, tips)
	if err != nil {
		return nil, err
	}
	own, err := l.Tree.Refs(ctx, branchRef("ralph"))
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
	return slices.DeleteFunc(list, func(c ralph.Change) bool { return there[c.To] || kept[c.TaskID] }), nil
}

// killed is a hook for tests.
func (l *Lander) killed(point string) {
	if l.after != nil {
		l.after(point)
	}
}

// FastForward fast-forwards people's branch to what has landed, if that touches nothing of
// theirs. If not, it tells people once why and how to do it, and the next call tries again.
func (l *Lander) FastForward(ctx context.Context) error {
	if l.Branch {
		return nil
	}
	if l.Push == "" { // commits that people removed from their branch must not come back
		if _, err := l.stand(ctx); err != nil {
			return err
		}
	}
	var r Refs
	var err error
	if r.Local, err = l.Tree.Ref(ctx, branchRef(l.Into)); err != nil {
		return err
	}
	ref := PointRef(l.Into)
	if l.Push != "" {
		ref = l.remoteRef()
	}
	if r.Point, err = l.Tree.Ref(ctx, ref); err != nil || r.Point == "" || r.Local == "" {
		return err
	}
	behind := ralph.TargetBehind{Branch: l.Into, Commit: r.Point, Command: "git merge --ff-only " + ref}
	below, err := l.below(ctx, r.Local, r.Point)
	switch {
	case err != nil:
		return err
	case r.Local == r.Point:
	case !below:
		// Its own commits go into the next landing, or it lacks nothing.
		if has, err := l.below(ctx, r.Point, r.Local); err != nil || !has && l.Push != "" {
			behind.Reason, behind.Command = "it has commits that the remote has not", "git pull"
			return errors.Join(err, l.note(ctx, behind))
		}
	case l.Leave:
		behind.Reason = "merge.checkout is leave"
	default:
		moving.Lock()
		behind.Reason, err = l.moveLocal(ctx, r.Local, r.Point)
		if err == nil && behind.Reason == "" && l.Push == "" {
			err = l.Tree.SetRef(ctx, seenRefs+l.Into, r.Point)
		}
		moving.Unlock()
		if err != nil {
			return err
		}
	}
	return errors.Join(err, l.note(ctx, behind))
}

func (l *Lander) note(ctx context.Context, b ralph.TargetBehind) (err error) {
	if b.Reason != "" {
		if b.Ahead, err = l.Tree.Count(ctx, branchRef(l.Into), b.Commit); err != nil {
			return err
		}
	}
	return l.Store.Tx(ctx, func(tx *store.Tx) error { return tx.NoteBehind(b) })
}

// moveLocal moves people's branch. If it is refused, refused says why, and nothing has changed.
func (l *Lander) moveLocal(ctx context.Context, from, to string) (refused string, err error) {
	list, err := l.Tree.Checkouts(ctx)
	if err != nil {
		return "", err
	}
	list = slices.DeleteFunc(list, func(c worktree.Checkout) bool { return c.Branch != branchRef(l.Into) })
	switch {
	case len(list) == 0:
		_, err = l.Tree.Move(ctx, branchRef(l.Into), from, to, "follow "+PointRef(l.Into))
		return "", err
	case len(list) > 1:
		return "it is checked out in several work trees", nil
	case list[0].Busy != "":
		return list[0].Busy, nil
	}
	return worktree.FastForward(ctx, list[0].Dir, to)
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

// maxSlug keeps branch names short.
const maxSlug = 50

// branchOf returns the name of the branch for a change.
func (l *Lander) branchOf(ctx context.Context, c ralph.Change) (string, error) {
	t, err := store.Read(ctx, l.Store, func(tx *store.Tx) (ralph.Task, error) { return tx.Task(c.TaskID) })
	return fmt.Sprintf("%s%d%s", ownBranch, t.ID, slug(t.Title)), err
}

// branchPoint returns the commit of a change's branch.
func (l *Lander) branchPoint(ctx context.Context, c ralph.Change) (string, error) {
	name, err := l.branchOf(ctx, c)
	if err != nil {
		return "", err
	}
	return l.Tree.Ref(ctx, branchRef(name))
}
