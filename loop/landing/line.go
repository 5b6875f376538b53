package landing

import (
	"context"
	"slices"
	"sync"

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
	mu      sync.Mutex
	list    []inLine
	changed chan struct{} // closed when one left or was settled; nil if nobody waits for that
}

// An inLine is a change in line.
type inLine struct {
	change  ralph.Change
	passed  bool // it is about to land
	settled bool // from now on the database says whether it is queued
}

// Leave takes a session's change out of the line: its agent goes on working.
func (n *Line) Leave(session string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leave(session)
	n.moves()
}

func (n *Line) leave(session string) {
	n.list = slices.DeleteFunc(n.list, func(p inLine) bool { return p.change.SessionID == session })
}

// check puts a change in line that is being checked.
func (n *Line) check(c ralph.Change) { n.put(inLine{change: c}) }

// pass notes that a change passed its check and waits for no other one.
func (n *Line) pass(c ralph.Change) { n.put(inLine{change: c, passed: true}) }

func (n *Line) put(p inLine) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leave(p.change.SessionID)
	n.list = append(n.list, p)
}

// moves wakes those who wait.
func (n *Line) moves() {
	if n.changed != nil {
		close(n.changed)
		n.changed = nil
	}
}

// Settled is to be called once a session has been settled.
func (n *Line) Settled(session string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, p := range n.list {
		n.list[i].settled = p.settled || p.change.SessionID == session
	}
	n.moves()
}

// enter notes that a change passed its check on a target, unless the target has moved, or the change has
// to wait for another one that is about to land: for any if all is set, else for one with which it
// conflicts. It waits for none that cannot land before it. What it waits for may be over once one
// of waits is closed.
func (l *Lander) enter(
	ctx context.Context, c ralph.Change, on Target, all bool,
) (entered bool, waits [2]<-chan struct{}, err error) {
	n := l.Line
	n.mu.Lock()
	defer n.mu.Unlock()
	changed := l.Store.Changed()
	ahead, err := l.ahead(ctx, c)
	if err != nil {
		return false, waits, err
	}
	if now, err := l.target(ctx); err != nil || now != on { // it includes what is no longer in line
		return false, waits, err
	}
	clash := all && len(ahead) > 0
	if !clash {
		clash, err = l.clashes(ctx, c, ahead, on)
	}
	if clash || err != nil {
		if n.changed == nil {
			n.changed = make(chan struct{})
		}
		return false, [2]<-chan struct{}{changed, n.changed}, err
	}
	n.leave(c.SessionID)
	n.list = append(n.list, inLine{change: c, passed: true})
	return true, waits, nil
}

// ahead returns the changes in line that are to land before another one, and takes those out that have
// landed, or will not.
func (l *Lander) ahead(ctx context.Context, c ralph.Change) (ahead []ralph.Change, err error) {
	err = l.Store.View(ctx, func(tx *store.Tx) error {
		queued, err := tx.QueuedChanges()
		if err != nil {
			return err
		}
		l.Line.list = slices.DeleteFunc(l.Line.list, func(p inLine) bool {
			same := func(q ralph.Change) bool { return q.SessionID == p.change.SessionID }
			return p.settled && !slices.ContainsFunc(queued, same)
		})
		state, err := tx.MergeQueue()
		if err != nil || l.Branch || state.Paused != "" || state.WaitUntil.After(tx.Now().Time) {
			return err // with branches of their own, none of them moves the target
		}
		alone, err := tx.LandsAlone(l.Bounces)
		there := false // whether its end can be waited for
		for _, p := range l.Line.list {
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

// clashes reports whether a change conflicts with those ahead of it.
func (l *Lander) clashes(ctx context.Context, c ralph.Change, ahead []ralph.Change, on Target) (bool, error) {
	if len(ahead) == 0 {
		return false, nil
	}
	own, err := l.Tree.Files(ctx, c.Base, c.Head)
	if err != nil {
		return false, err
	}
	var stack []ralph.Change
	for _, other := range ahead {
		files, err := l.Tree.Files(ctx, other.Base, other.Head)
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(files, func(f string) bool { return slices.Contains(own, f) }) {
			stack = append(stack, other)
		}
	}
	if len(stack) == 0 {
		return false, nil
	}
	stack = append(stack, c)
	for i := range stack {
		stack[i].ID = int64(i + 1) // they get theirs when their sessions are settled
	}
	unsigned := *l // nothing of it is kept
	unsigned.Sign = false
	b, err := unsigned.build(ctx, stack, on)
	return err == nil && (b.Commit == "" || !b.has(int64(len(stack)))), err
}
