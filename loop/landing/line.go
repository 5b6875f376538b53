package landing

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"ralph"
	"ralph/store"
)

// A Line is the changes of one process's sessions that are being checked, or passed and have not landed
// yet. A session that finishes beside others sees in it what is about to land before its own change,
// while it can still tell its agent about a conflict. Without it, each of several that finish
// at the same time would pass on the same tip, and all but one would bounce after their sessions.
//
// It is a hint: what lands is decided by the queue. The zero Line is empty.
type Line struct {
	entering sync.Mutex // of two that conflict one comes first

	mu   sync.Mutex
	list []inLine
	took time.Duration // what the last verification took
}

// An inLine is a change in line.
type inLine struct {
	change ralph.Change
	since  time.Time // when its check began
	passed bool      // it is about to land
	on     Target    // that it passed on
}

// Leave takes a session's change out of the line: its agent goes on working.
func (n *Line) Leave(session string) { n.put(session) }

// check puts a change in line that is being checked.
func (n *Line) check(c ralph.Change) { n.put(c.SessionID, inLine{change: c, since: time.Now()}) }

// pass notes that a change passed its check on a target and waits for no other one.
func (n *Line) pass(c ralph.Change, on Target) {
	n.put(c.SessionID, inLine{change: c, passed: true, on: on})
}

// lasted notes what a verification took.
func (n *Line) lasted(took time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.took = took
}

// put replaces what a session has in line.
func (n *Line) put(session string, by ...inLine) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = slices.DeleteFunc(n.list, func(p inLine) bool { return p.change.SessionID == session })
	n.list = append(n.list, by...)
}

// enter notes that a change passed its check on a target, unless the target has moved, or the change has
// to wait for one that is ahead of it: for any if all is set, else for one with which it conflicts.
func (l *Lander) enter(
	ctx context.Context, c ralph.Change, on Target, all bool,
) (entered bool, ahead []ralph.Change, err error) {
	l.Line.entering.Lock()
	defer l.Line.entering.Unlock()
	if ahead, err = l.ahead(ctx, c); err != nil {
		return false, nil, err
	}
	if now, err := l.target(ctx); err != nil || now != on { // it includes what is no longer in line
		return false, nil, err
	}
	if len(ahead) > 0 && (all || l.clashes(ctx, c, ahead, on)) {
		return false, ahead, nil
	}
	l.Line.pass(c, on)
	return true, nil, nil
}

// ahead returns the changes in line that are to land before another one, and takes those out that have
// landed, or will not. There are none while nothing can land before it.
func (l *Lander) ahead(ctx context.Context, c ralph.Change) (ahead []ralph.Change, err error) {
	n := l.Line
	n.mu.Lock()
	defer n.mu.Unlock()
	err = l.Store.View(ctx, func(tx *store.Tx) error {
		ahead = nil
		queued, err := tx.QueuedChanges()
		if err == nil {
			err = n.tidy(tx, queued)
		}
		if err != nil {
			return err
		}
		state, err := tx.MergeQueue()
		if err != nil || l.Branch || state.Paused != "" || state.WaitUntil.After(tx.Now().Time) {
			return err // with branches of their own, none of them moves the target
		}
		alone, err := tx.LandsAlone(l.Bounces)
		there := false // whether its end can be waited for
		for _, p := range n.list {
			there = there || p.change.TaskID == alone
			if p.change.SessionID != c.SessionID && (p.passed || p.change.TaskID == alone) {
				ahead = append(ahead, p.change)
			}
		}
		if alone == c.TaskID || alone != 0 && !there {
			ahead = nil
		}
		return err
	})
	return ahead, err
}

// tidy takes those out of the line that have landed, or will not.
func (n *Line) tidy(tx *store.Tx, queued []ralph.Change) (err error) {
	n.list = slices.DeleteFunc(n.list, func(p inLine) bool {
		if p.in(queued) {
			return false
		}
		s, serr := tx.Session(p.change.SessionID)
		if errors.Is(serr, ralph.ErrNotFound) {
			return true
		}
		err = errors.Join(err, serr)
		return serr == nil && !s.CompletedAt.IsZero()
	})
	return err
}

// in reports whether the change is on a list.
func (p inLine) in(list []ralph.Change) bool {
	return slices.ContainsFunc(list, func(c ralph.Change) bool { return c.SessionID == p.change.SessionID })
}

// gatherShare says what is soon: within 1/gatherShare of the time that a verification takes. Those that wait
// lose at most as much as those that come gain, and one verification is saved.
const gatherShare = 2

// gather waits for changes that the queue still lacks and that pass their check soon: they are verified
// with the others, rather than after them. since is when the others could have been verified. From then
// on it waits while another change comes soon, for as long as a verification takes and at most
// [Rules.Wait]. It returns false at once if there is nothing to wait for, and true if the queue has changed.
func (l *Lander) gather(ctx context.Context, q Queue, since time.Time) (waited bool, err error) {
	n := l.Line
	changed := l.Store.Changed()
	n.mu.Lock()
	most := min(n.took, l.Wait)
	near := most / gatherShare
	joined := false
	err = l.Store.View(ctx, func(tx *store.Tx) error {
		queued, err := tx.QueuedChanges()
		joined = !slices.Equal(ids(queued), ids(q.Changes))
		return cmp.Or(err, n.tidy(tx, queued))
	})
	soon := slices.ContainsFunc(n.list, func(p inLine) bool {
		ends := time.Until(p.since.Add(n.took))
		return !p.in(q.Changes) && (p.passed || ends.Abs() < near)
	})
	known := len(q.Changes) == 1 && slices.ContainsFunc(n.list, func(p inLine) bool {
		return p.passed && p.on == q.Target && p.in(q.Changes)
	})
	n.mu.Unlock()
	if err != nil || known || time.Since(since) >= most {
		return false, err
	}
	if joined || !soon {
		return joined, nil
	}
	l.killed("gathers")
	select {
	case <-changed:
	case <-time.After(near):
	case <-ctx.Done():
		return false, ctx.Err()
	}
	l.killed("woken")
	return true, nil
}

// await waits until one of those ahead of a change is not any more, or it is too late.
func (l *Lander) await(ctx context.Context, c ralph.Change, ahead []ralph.Change, until time.Time) error {
	late := time.After(time.Until(until))
	for {
		changed := l.Store.Changed()
		now, err := l.ahead(ctx, c)
		gone := func(c ralph.Change) bool {
			return !slices.ContainsFunc(now, func(o ralph.Change) bool { return o.SessionID == c.SessionID })
		}
		if err != nil || slices.ContainsFunc(ahead, gone) {
			return err
		}
		l.killed("waits")
		select {
		case <-changed:
		case <-late:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
		l.killed("woken")
	}
}

// clashes reports whether a change conflicts with those ahead of it.
func (l *Lander) clashes(ctx context.Context, c ralph.Change, ahead []ralph.Change, on Target) bool {
	stack, err := l.alike(ctx, c, ahead)
	if err != nil || len(stack) == 0 {
		l.unsure(c, err)
		return false
	}
	stack = append(stack, c)
	for i := range stack {
		stack[i].ID = int64(i + 1) // they get theirs when their sessions are settled
	}
	unsigned := *l // nothing of it is kept
	unsigned.Sign = false
	b, err := unsigned.build(ctx, stack, on)
	l.unsure(c, err)
	return err == nil && (b.Commit == "" || !b.has(int64(len(stack))))
}

// alike returns the changes that touch a file that another one touches.
func (l *Lander) alike(ctx context.Context, c ralph.Change, list []ralph.Change) (alike []ralph.Change, err error) {
	own, err := l.Tree.Files(ctx, c.Base, c.Head)
	for _, other := range list {
		files, ferr := l.Tree.Files(ctx, other.Base, other.Head)
		if err = cmp.Or(err, ferr); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(files, func(f string) bool { return slices.Contains(own, f) }) {
			alike = append(alike, other)
		}
	}
	return alike, err
}

// unsure logs that a conflict cannot be looked for; the queue finds it.
func (l *Lander) unsure(c ralph.Change, err error) {
	if err != nil {
		l.Log.Warn("cannot tell whether a change conflicts with what is about to land", "task", c.TaskID, "error", err)
	}
}
