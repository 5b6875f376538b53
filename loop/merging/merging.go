// Package merging merges the results of sessions in workspaces into the target branch. It merges a change with the
// branch's tip, verifies exactly that tree in a clean checkout, and moves the branch, once.
//
//	checking → queued → moving → merged
//
// [Trial.Next] decides on each next step of a check, [NextStep] on that of the queue. The commit point is a single ref,
// which alone decides whether a change is merged; the database follows. After a kill between two steps, the next look
// does the rest. The target never has a commit whose tree was not verified. People's branches and checkouts only move
// forward.
package merging

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"ralph"
	"ralph/internal/text"
	"ralph/loop/check"
	"ralph/loop/workspace"
	"ralph/signals"
	"ralph/store"
)

// Rules configure how changes are merged.
type Rules struct {
	Into        string        // the target branch
	Branch      bool          // each change gets its own branch, and the target is not moved
	Pulls       bool          // with Branch: the branch is pushed, and a pull request decides; the target is the remote's
	MaxOpen     int           // with Pulls: the number of waiting pull requests at which no task begins
	Squash      bool          // a merge has one parent, the target's tip
	Sign        bool          // commits on the branch have the person's signature
	MaxSentBack int           // how often a task's changes are sent back before it is merged alone
	Wait        time.Duration // how long a session or a passed change waits for changes ahead
	Push        string        // the remote that the target is pushed to; "" for none
	After       []string
	Message     string        // template of the commit message, with {task} and so on; "" is the default
	AfterEnv    []string      // the environment of After, of signatures and of commands that talk to a remote
	Timeout     time.Duration // timeout of each of these commands
	State       string        // the folder for ralph's own files
}

// Integration verifies commits in a workspace in which nobody works.
type Integration interface {
	// Verify checks a commit out and runs commands there. Each result is about exactly that commit.
	Verify(ctx context.Context, commit string, commands []string) ([]check.Outcome, error)
}

// A Merger merges changes into a target. Only one process merges at a time: a run or a worker's server.
type Merger struct {
	Rules
	Store     *store.DB
	Tree      Git
	Check     check.Rules
	Workspace Integration
	Pool      *workspace.Pool // pool of the set-up that the results belong to
	Links     *Links          // shared by all that work on one target
	Run       int64           // the run that merges; 0 for a command
	Log       *slog.Logger

	after func(point string) // tests kill the process here
}

// In returns a Merger that verifies in a workspace, for one check or for the present queue.
func (m *Merger) In(at Integration) *Merger {
	in := *m
	in.Workspace = at
	return &in
}

// mergeLease is the lease for merging with a database that machines share; otherwise a lock of the state folder has
// that role. It only prevents two machines from verifying the same commit: moving the target is safe without it.
const mergeLease = "merge"

// A Wait is the reason why the rest of the queue waits; the zero value is none.
type Wait struct {
	Why       string // for people
	Elsewhere bool   // another machine may be merging, and may be lost without any news
}

// leaseWait is how long to wait for another machine that merges. The next look tries again.
const leaseWait = time.Second

// Ref namespaces of ralph.
const (
	targetRefs = "refs/ralph/target/" // the commit point of a branch
	seenRefs   = "refs/ralph/seen/"   // people's branch at the last look
)

// branchRef returns the full ref name of a branch.
func branchRef(name string) string { return "refs/heads/" + name }

// PointRef returns the ref that is the commit point of a branch without a remote.
func PointRef(branch string) string { return targetRefs + branch }

// Merge takes all steps with the queue that are possible now. It returns the reason why the rest of the queue waits.
func (m *Merger) Merge(ctx context.Context) (waits Wait, err error) {
	var stack *Stack
	most := 0
	mine := func() error { return nil }
	var takes bool
	defer func() {
		if err = errors.Join(err, mine()); err != nil {
			m.Links.forget()
		}
	}()
	refused := 0 // steps in a row
	for ctx.Err() == nil {
		changed := m.Store.Changed()
		q, state, err := m.readQueue(ctx, stack, most)
		if errors.Is(err, ralph.ErrConflict) && refused < mostRefused {
			refused++
			continue // the remote was unreachable, and is not tried for a while
		}
		if err != nil {
			return Wait{}, stuck(err)
		}
		step := NextStep(q)
		switch {
		case step.Do == Await:
			m.pause(ctx, changed, step.Wait)
			continue
		case step.Do == Rest:
			waits, again, err := m.rest(ctx, step, state, takes)
			if again {
				continue
			}
			return waits, err
		case !takes && m.Store.Shared():
			release, holder, err := m.Store.Lease(ctx, mergeLease, leaseWait)
			if err != nil || holder != "" {
				return Wait{Why: "another process is merging: " + holder, Elsewhere: true}, err
			}
			// Another machine may have taken the planned steps.
			mine, takes, stack = release, true, nil
			continue
		}
		most = q.after(step)
		stack, err = m.do(ctx, step, q)
		switch {
		case err == nil:
			refused = 0
		case !errors.Is(err, ralph.ErrConflict) || refused >= mostRefused:
			return Wait{}, stuck(err, step.Changes...)
		default:
			stack = nil // people may have withdrawn the change; the next look will show it
			refused++
		}
	}
	return Wait{}, ctx.Err()
}

// pause waits for a change, at most for most.
func (m *Merger) pause(ctx context.Context, changed <-chan struct{}, most time.Duration) {
	m.reached("waits")
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-changed:
	case <-late.C:
	case <-ctx.Done():
		return
	}
	m.reached("woken")
}

// rest uses the time while nothing can be merged. again is set if it stopped for a new change.
func (m *Merger) rest(
	ctx context.Context, s Step, state store.MergeQueue, takes bool,
) (waits Wait, again bool, err error) {
	if err := m.Tree.Pack(ctx); err != nil && ctx.Err() == nil {
		m.Log.Warn("cannot pack refs", "error", err)
	}
	waits = Wait{Why: s.Reason, Elsewhere: s.Working && m.Store.Shared()}
	if err := m.fastForward(ctx, state); err != nil {
		return waits, false, err
	}
	if s.Reason != "" {
		return waits, false, nil
	}
	if err := m.restack(ctx); err != nil {
		return waits, false, err
	}
	if m.Store.Shared() && !takes { // the machine that merged does it, and has the commits
		return waits, false, nil
	}
	again, err = m.prove(ctx)
	return waits, again, err
}

// mostRefused is how many steps in a row are retried after the database refused them. A change that people withdraw
// causes one refusal; more refusals have a cause that a retry does not remove.
const mostRefused = 20

// stuck turns an error that wraps [ralph.ErrConflict] into one that says that the step was retried. The result does
// not wrap it, so that callers do not retry too. Other errors stay as they are.
func stuck(err error, changes ...ralph.Change) error {
	if !errors.Is(err, ralph.ErrConflict) {
		return err
	}
	of := "the queue"
	if len(changes) > 0 {
		of = strings.Join(tasks(changes), ", ")
	}
	return fmt.Errorf("cannot merge %s, tried %d times: %v; `ralph task show` gives the reason, and "+
		"`ralph task cancel` takes it out of the queue", of, mostRefused+1, err)
}

// readQueue reads everything that the next step depends on, and records the branch that changes are merged into.
func (m *Merger) readQueue(ctx context.Context, stack *Stack, most int) (q Queue, state store.MergeQueue, err error) {
	q = Queue{
		Stack: stack, Most: most, Branch: m.Branch, Now: m.Store.Now(), Wait: m.Wait,
		Single: m.Squash || m.Branch, // each squashed change needs its own verified commit
	}
	err = m.Store.View(ctx, func(tx *store.Tx) (err error) {
		if q.Line, err = tx.Line(); err != nil {
			return err
		}
		if state, q.Waits, q.Alone, err = tx.QueueState(m.MaxSentBack); err != nil {
			return err
		}
		q.Paused = state.Paused
		inOrder(q.Line, q.Alone)
		return nil
	})
	if err == nil && (state.Target != m.Into || state.Pulls != m.Pulls) {
		err = m.Store.Tx(ctx, func(tx *store.Tx) error { return tx.SetTarget(m.Into, m.Pulls) })
	}
	if err != nil || q.Waits {
		return q, state, err
	}
	if moving := q.moving(); len(moving) > 0 {
		last := moving[len(moving)-1]
		// Read the point before the target is updated: its old position counts.
		if q.Target.Point, err = m.point(ctx, last); err == nil {
			// A merge that another machine built but did not push is lost, and is built again.
			if q.Elsewhere = m.Travels() && !m.Tree.Has(ctx, last.To); !q.Elsewhere {
				q.Reached, err = m.below(ctx, last.To, q.Target.Point)
			}
		}
		return q, state, err
	}
	if len(q.queued()) == 0 || q.Paused != "" {
		return q, state, nil
	}
	q.Target, err = m.target(ctx)
	return q, state, err
}

// below reports whether a commit equals another one or is its ancestor. It
// is false if either is "".
func (m *Merger) below(ctx context.Context, commit, of string) (bool, error) {
	if commit == "" || of == "" {
		return false, nil
	}
	return m.Tree.Ancestor(ctx, commit, of)
}

// ids returns the ids of changes.
func ids(list []ralph.Change) []int64 {
	out := make([]int64, len(list))
	for i, c := range list {
		out[i] = c.ID
	}
	return out
}

// do takes one step. It returns the stack built so far, for the next step.
func (m *Merger) do(ctx context.Context, s Step, q Queue) (*Stack, error) {
	// each calls f for all of the changes, in one transaction.
	each := func(f func(tx *store.Tx, c ralph.Change) error) error {
		return m.Store.Tx(context.WithoutCancel(ctx), func(tx *store.Tx) error {
			for _, c := range s.Changes {
				if err := f(tx, c); err != nil {
					return err
				}
			}
			return nil
		})
	}
	switch s.Do {
	case Requeue:
		return nil, each(func(tx *store.Tx, c ralph.Change) error { return tx.Requeue(c.ID, c.State) })
	case Block:
		return nil, each(func(tx *store.Tx, c ralph.Change) error { return tx.BlockChange(c, s.Reason) })
	case Build:
		for _, c := range s.Changes {
			if err := m.have(ctx, c); err != nil {
				return nil, err
			}
		}
		stack, err := m.stack(ctx, s.Changes, q.Target)
		if err == nil {
			err = m.know(ctx, stack)
		}
		return stack, err
	case Verify:
		if err := m.noteVerifying(ctx, s, q); err != nil {
			return nil, err
		}
		return q.Stack, m.verify(ctx, q.Stack, len(s.Changes))
	case Move:
		return nil, m.move(ctx, s.Changes, q.Stack)
	case Complete:
		return nil, m.complete(ctx, s.Changes)
	case SendBack:
		c, reason, conflicts := s.Changes[0], s.Reason, q.Stack.Conflicts
		if len(q.Stack.Links) == 0 {
			reason = m.conflict(ctx, c, Built{Target: q.Target, Conflicts: conflicts})
		}
		since, err := m.mergedSince(ctx, c, q.Target.Tip)
		if err != nil {
			return nil, err
		}
		return nil, each(func(tx *store.Tx, c ralph.Change) error {
			return m.sendBack(tx, c, reason, conflicts, len(since) > 0)
		})
	}
	return nil, nil
}

// noteVerifying records which changes are verified now.
func (m *Merger) noteVerifying(ctx context.Context, s Step, q Queue) error {
	return m.Store.Tx(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		for _, c := range q.queued() {
			to := ralph.Queued
			if slices.ContainsFunc(s.Changes, func(o ralph.Change) bool { return o.ID == c.ID }) {
				to = ralph.Verifying
			}
			if to == c.State {
				continue
			}
			if err := tx.SetChange(c.ID, c.State, to); err != nil {
				return err
			}
		}
		return nil
	})
}

// sendBack sends a change back to its task. After several times the task is merged alone;
// if it is sent back even then, a person has to look. If others were merged since its
// session looked, it was not sent back alone.
func (m *Merger) sendBack(tx *store.Tx, c ralph.Change, reason string, conflicts []string, others bool) error {
	t, err := tx.Task(c.TaskID)
	if err != nil {
		return err
	}
	blocked := ""
	if !others {
		blocked = signals.SentBackAlone(t.TimesSentBack, m.MaxSentBack, reason)
	}
	return tx.SendBack(c, reason, conflicts, blocked)
}

// SetChangeRef sets the change's ref to its head.
func (m *Merger) SetChangeRef(ctx context.Context, c ralph.Change) error {
	return m.Tree.SetRef(ctx, c.Ref(), c.Head)
}

// Forget deletes the refs of changes that nobody needs any more: merged ones, and changes of tasks that ended before
// a moment.
func (m *Merger) Forget(ctx context.Context, before time.Time) error {
	refs, err := m.Tree.Refs(ctx, ralph.ChangeRefs)
	if err != nil || len(refs) == 0 {
		return err
	}
	var merged []ralph.Change
	var old []string
	if err := m.Store.View(ctx, func(tx *store.Tx) error {
		for ref := range refs {
			c, ended, ok, err := tx.ChangeBy(strings.TrimPrefix(ref, ralph.ChangeRefs))
			switch {
			case err != nil:
				return err
			case !ok:
			case !ended.IsZero() && ended.Before(before):
				old = append(old, ref)
			case c.State == ralph.Merged:
				merged = append(merged, c)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return errors.Join(m.drop(ctx, old), m.forget(ctx, merged))
}

// forget deletes the refs of merged changes whose commits the merge contains. No branch contains the commits of a
// squashed change, so its ref is kept.
func (m *Merger) forget(ctx context.Context, merged []ralph.Change) (err error) {
	var refs []string
	for _, c := range merged {
		if m.Squash || m.Travels() && !m.Tree.Has(ctx, c.To) { // another machine merged it
			continue
		}
		has, aerr := m.below(ctx, c.Head, c.To)
		if aerr == nil && has {
			refs = append(refs, c.Ref())
		}
		err = errors.Join(err, aerr)
	}
	return errors.Join(err, m.drop(ctx, refs))
}

// parents returns the parents of the commit that merges one change.
func (m *Merger) parents(onto, head string) []string {
	if m.Squash {
		return []string{onto}
	}
	return []string{onto, head}
}

// commit creates a commit in people's name.
func (m *Merger) commit(ctx context.Context, tree string, parents []string, message string) (string, error) {
	return m.Tree.CommitTree(ctx, tree, parents, message, m.Tree.User(ctx))
}

// together returns the message of the commit that merges a batch. Each change's own commit is below it.
func together(list []ralph.Change, messages []string) string {
	var titles, trailers []string
	for i, c := range list {
		title, _, _ := strings.Cut(messages[i], "\n")
		titles, trailers = append(titles, "- "+title), append(trailers, ralph.Trailers(c.TaskID, c.SessionID))
	}
	return fmt.Sprintf("Merge %s\n\n%s\n\n%s",
		strings.Join(tasks(list), ", "), strings.Join(titles, "\n"), strings.Join(trailers, ""))
}

// message returns the commit message of a change.
func (m *Merger) message(ctx context.Context, c ralph.Change) (string, error) {
	var t ralph.Task
	var summary string
	err := m.Store.View(ctx, func(tx *store.Tx) (err error) {
		if t, err = tx.Task(c.TaskID); err != nil {
			return err
		}
		said, err := tx.SessionSignals(c.SessionID)
		if done, ok := signals.Closing(said).Payload.(signals.Done); ok {
			summary = done.Summary
		}
		return err
	})
	title, summary := text.Flat(t.Title), text.Clean(summary)
	switch c.Undo {
	case ralph.Cancelled:
		title, summary = "undo "+title, c.Reason
	case ralph.Completed:
		title, summary = "bring back "+title, c.Reason
	}
	body := strings.NewReplacer("{task}", fmt.Sprintf("TASK-%d", t.ID), "{title}", title, "{summary}", summary,
		"{session}", c.SessionID).Replace(m.Message)
	return strings.TrimSpace(body) + "\n\n" + ralph.Trailers(c.TaskID, c.SessionID), err
}

// conflict names the files of a change that conflict, and the tasks that changed them since its session looked.
func (m *Merger) conflict(ctx context.Context, c ralph.Change, b Built) string {
	what := signals.FileList(b.Conflicts)
	var with []string
	since, err := m.mergedSince(ctx, c, b.Target.Tip)
	if err != nil {
		m.Log.Warn("a conflict is reported without the tasks that it is with", "task", c.TaskID, "error", err)
	}
	for _, other := range since {
		if other.Commit == "" {
			continue
		}
		var files []string
		before, err := m.Tree.Ref(ctx, other.Before())
		if err == nil {
			files, err = m.Tree.Files(ctx, before, other.Commit)
		}
		if err == nil && slices.ContainsFunc(files, func(f string) bool { return slices.Contains(b.Conflicts, f) }) {
			with = append(with, fmt.Sprintf("TASK-%d", other.TaskID))
		}
	}
	if len(with) == 0 {
		return fmt.Sprintf("%s has moved, and the change conflicts with it in %s", m.Into, what)
	}
	return fmt.Sprintf("%s has moved, and the change conflicts in %s with %s", m.Into, what, strings.Join(with, ", "))
}

// namedMerges is the maximum number of merges that a conflict is compared with.
const namedMerges = 20

// mergedSince returns the merges in a target that a change does not contain, the newest first.
func (m *Merger) mergedSince(ctx context.Context, c ralph.Change, tip string) ([]ralph.Change, error) {
	list, err := store.Read(ctx, m.Store, (*store.Tx).Merged)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	since, err := m.Tree.History(ctx, []string{tip, "^" + c.Head})
	list = slices.DeleteFunc(list, func(o ralph.Change) bool { return !since[o.To] })
	return list[:min(len(list), namedMerges)], err
}
