package merging

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"ralph"
	"ralph/loop/check"
	"ralph/store"
)

// A Line is the changes of one process's sessions that are being checked, or passed and have not been merged
// yet. A session that finishes beside others sees in it what is about to be merged before its own change,
// while it can still tell its agent about a conflict. Without it, each of several that finish
// at the same time would pass on the same tip, and all but one would be sent back after their sessions.
//
// It is a hint: what is merged is decided by the queue. The zero Line is empty.
type Line struct {
	entering sync.Mutex // of two that conflict one comes first
	remote   lookout

	mu     sync.Mutex
	list   []inLine
	coming map[string]time.Time // sessions whose checks are about to begin, since when
	took   time.Duration        // what the last verification took
	news   bool                 // something may be verified early that was not considered yet
	tell   func()               // called when there are news; nil for nobody
	moved  chan struct{}        // closed when something joins or leaves; nil if nobody waits for that
	early  *early               // what is being verified; nil for nothing
}

// An inLine is a change in line.
type inLine struct {
	change ralph.Change
	since  time.Time // when its check began, or when it passed
	passed bool      // it is about to be merged
	on     Target    // of its check
}

// Leave takes a session's change out of the line: its agent goes on working.
func (n *Line) Leave(session string) { n.put(session) }

// Enter notes that a session's change is about to be in line: its done is looked at.
func (n *Line) Enter(session string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.coming == nil {
		n.coming = map[string]time.Time{}
	}
	n.coming[session] = time.Now()
}

// noteChecking puts a change in line that is being checked on a target.
func (n *Line) noteChecking(c ralph.Change, on Target) {
	n.put(c.SessionID, inLine{change: c, since: time.Now(), on: on})
	n.changed()
}

// pass notes that a change passed its check on a target and waits for no other one.
func (n *Line) pass(c ralph.Change, on Target) {
	n.put(c.SessionID, inLine{change: c, since: time.Now(), passed: true, on: on})
}

// Tell has a function called whenever there are [Line.News]; nil for none.
func (n *Line) Tell(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tell = f
}

// News reports whether [Merger.Merge] may verify something early that it has not considered yet.
func (n *Line) News() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.news
}

// changed notes that those in line can be verified with others than before.
func (n *Line) changed() {
	n.mu.Lock()
	n.news = len(n.list) > 0 && n.took > 0
	news, tell := n.news, n.tell
	n.mu.Unlock()
	if news && tell != nil {
		tell()
	}
}

// noteEarly notes what is being verified early; nil for nothing.
func (n *Line) noteEarly(e *early) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.early = e
}

// takeNews notes that there are no news, and returns what the last verification took.
func (n *Line) takeNews() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.news = false
	return n.took
}

// noteTook notes what a verification took.
func (n *Line) noteTook(took time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.took = took
}

// put replaces what a session has in line. What is verified early with what it had before is of no use
// unless that has passed.
func (n *Line) put(session string, by ...inLine) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = slices.DeleteFunc(n.list, func(p inLine) bool { return p.change.SessionID == session })
	n.list = append(n.list, by...)
	delete(n.coming, session)
	if n.moved != nil {
		close(n.moved)
		n.moved = nil
	}
	if n.early.has(session) && (len(by) == 0 || !by[0].passed) {
		n.early.stop()
	}
}

// notePassed notes that a change passed its check on a target, unless the target has moved, or the change has
// to wait for one that is ahead of it: for any if all is set, else for one with which it conflicts.
func (m *Merger) notePassed(
	ctx context.Context, c ralph.Change, on Target, all bool,
) (entered bool, ahead []ralph.Change, err error) {
	m.Line.entering.Lock()
	defer m.Line.entering.Unlock()
	if ahead, err = m.ahead(ctx, c); err != nil {
		return false, nil, err
	}
	if now, err := m.target(ctx); err != nil || now != on { // it includes what is no longer in line
		return false, nil, err
	}
	if len(ahead) > 0 && (all || m.clashes(ctx, c, ahead, on)) {
		return false, ahead, nil
	}
	m.Line.pass(c, on)
	return true, nil, nil
}

// ahead returns the changes in line that are to be merged before another one, and takes those out that have
// merged, or will not. There are none while nothing can be merged before it.
func (m *Merger) ahead(ctx context.Context, c ralph.Change) (ahead []ralph.Change, err error) {
	n := m.Line
	n.mu.Lock()
	defer n.mu.Unlock()
	err = m.Store.View(ctx, func(tx *store.Tx) error {
		ahead = nil
		queued, err := tx.QueuedChanges()
		if err != nil {
			return err
		}
		state, away, alone, err := tx.Merging(m.MaxSentBack)
		if err == nil {
			err = n.tidy(tx, queued)
		}
		if err != nil || m.Branch || away || state.Paused != "" {
			return err // with branches of their own, none of them moves the target
		}
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

// tidy takes those out of the line that have been merged, or will not.
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

// An early is the merge of what is queued with what is being checked. It is verified before all of it has
// passed: what has passed when that ends is merged at once.
type early struct {
	sessions []string // that made it
	stop     func()   // ends its verification
}

// has reports whether a session's change is in the merge.
func (e *early) has(session string) bool { return e != nil && slices.Contains(e.sessions, session) }

// A gathering is what a [Crowd] depends on from one look to the next, until something is done with the queue.
type gathering struct {
	since  time.Time     // when it began; zero before that
	most   time.Duration // [Crowd.Most]
	tried  bool          // something was verified early
	early  *early        // what was, if it passed
	until  time.Time     // how long it waits for the rest of that
	others []inLine      // what may be verified early

	changed, moved <-chan struct{} // closed when another look may find something else
}

// earlyTimes is how many times as long as the last verification an early one may last: a check that hangs must
// not hold up the others, whose own verification has no such limit.
const earlyTimes = 2

// crowd returns what is known of those in line that are not queued.
func (m *Merger) crowd(q Queue, g *gathering) *Crowd {
	n := m.Line
	n.mu.Lock()
	defer n.mu.Unlock()
	if g.since.IsZero() {
		g.since, g.most = time.Now(), min(n.took, m.Wait)
	}
	g.others = n.soon(q.Changes, g.most/earlyShare)
	enters := false
	for session, since := range n.coming {
		if time.Since(since) >= g.most/enterShare {
			delete(n.coming, session) // it does not come soon
			continue
		}
		enters = true
	}
	if n.moved == nil {
		n.moved = make(chan struct{})
	}
	g.moved = n.moved
	return &Crowd{
		Since: time.Since(g.since), Most: g.most, Enters: enters, Others: len(g.others), Tried: g.tried,
		Known: len(q.Changes) == 1 && slices.ContainsFunc(n.list, func(p inLine) bool {
			return p.passed && p.on == q.Target && p.in(q.Changes)
		}),
		Missing: slices.ContainsFunc(g.others, func(p inLine) bool { return g.early.has(p.change.SessionID) }),
		Left:    time.Until(g.until),
	}
}

// gather takes a step that waits for a crowd, or verifies it early.
func (m *Merger) gather(ctx context.Context, s Step, q Queue, g *gathering) (err error) {
	if s.Do == Early {
		g.tried = true
		if g.early, err = m.verifyEarly(ctx, q, g.others); err != nil { // what is merged is verified all the same
			m.Log.Warn("cannot verify what is being checked together with what waits", "error", err)
		}
		g.until = time.Now().Add(g.most / earlyShare)
		return ctx.Err()
	}
	m.reached("gathers")
	select {
	case <-g.changed:
	case <-g.moved:
	case <-time.After(s.Wait):
	case <-ctx.Done():
		return ctx.Err()
	}
	m.reached("woken")
	return nil
}

// soon returns the changes in line that are not queued, but for those that take longer than expected.
func (n *Line) soon(queued []ralph.Change, late time.Duration) (list []inLine) {
	for _, p := range n.list {
		due := p.since
		if !p.passed {
			due = due.Add(n.took)
		}
		if !p.in(queued) && time.Since(due) < late {
			list = append(list, p)
		}
	}
	return list
}

// verifyEarly merges queued changes with others in line and verifies that. It returns nil if that does not pass,
// takes far longer than the last verification, or is the same as the check of a single one, and if one of the
// others comes to nothing meanwhile.
func (m *Merger) verifyEarly(ctx context.Context, q Queue, others []inLine) (*early, error) {
	most := earlyTimes * m.Line.takeNews()
	on, err := q.Target, error(nil)
	if len(q.Changes) == 0 {
		on, err = m.target(ctx)
	}
	if err != nil || on.Gone != "" || len(q.Changes) == 0 && len(others) == 1 && others[0].on == on {
		return nil, err
	}
	for _, c := range q.Changes { // another machine may have made them
		if err := m.have(ctx, c); err != nil {
			return nil, err
		}
	}
	work, stop := context.WithTimeout(ctx, most)
	defer stop()
	all := slices.Clone(q.Changes)
	for _, p := range others {
		all = append(all, p.change)
	}
	e := newEarly(all, stop)
	m.Line.noteEarly(e)
	defer m.Line.noteEarly(nil)
	b, merged, err := m.trial(work, all, on)
	passed := false
	if err == nil && len(merged) > 0 {
		e = newEarly(merged, stop)
		m.Line.noteEarly(e)
		passed, err = m.passes(work, merged, b)
	}
	switch {
	case work.Err() != nil: // what was stopped says nothing
		return nil, ctx.Err()
	case err != nil || !passed:
		return nil, err
	}
	return e, nil
}

func newEarly(changes []ralph.Change, stop func()) *early {
	e := &early{stop: stop}
	for _, c := range changes {
		e.sessions = append(e.sessions, c.SessionID)
	}
	return e
}

// passes reports whether the commands of changes pass on their merge.
func (m *Merger) passes(ctx context.Context, changes []ralph.Change, b *Built) (bool, error) {
	commands, _, err := m.commands(ctx, changes)
	if err != nil {
		return false, err
	}
	said, err := m.said(ctx, b.Commit, b.Tree, commands.All())
	return err == nil && !failed(said) && len(check.Rewritten(said)) == 0, err
}

// trial merges changes that may have no ids yet with a target. Nothing of that is merged.
func (m *Merger) trial(
	ctx context.Context, changes []ralph.Change, on Target,
) (b *Built, merged []ralph.Change, err error) {
	changes = slices.Clone(changes)
	for i := range changes {
		changes[i].ID = int64(i + 1) // they get theirs when their sessions are decided
	}
	if b, err = m.build(ctx, changes, on); err != nil || b.Commit == "" {
		return b, nil, err
	}
	return b, slices.DeleteFunc(changes, func(c ralph.Change) bool { return !b.has(c.ID) }), nil
}

// await waits until one of those ahead of a change is not any more, or it is too late.
func (m *Merger) await(ctx context.Context, c ralph.Change, ahead []ralph.Change, until time.Time) error {
	late := time.After(time.Until(until))
	for {
		changed := m.Store.Changed()
		now, err := m.ahead(ctx, c)
		gone := func(c ralph.Change) bool {
			return !slices.ContainsFunc(now, func(o ralph.Change) bool { return o.SessionID == c.SessionID })
		}
		if err != nil || slices.ContainsFunc(ahead, gone) {
			return err
		}
		m.reached("waits")
		select {
		case <-changed:
		case <-late:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
		m.reached("woken")
	}
}

// clashes reports whether a change conflicts with those ahead of it.
func (m *Merger) clashes(ctx context.Context, c ralph.Change, ahead []ralph.Change, on Target) bool {
	stack, err := m.alike(ctx, c, ahead)
	if err != nil || len(stack) == 0 {
		m.unsure(c, err)
		return false
	}
	_, merged, err := m.trial(ctx, append(stack, c), on)
	m.unsure(c, err)
	return err == nil && !inLine{change: c}.in(merged)
}

// alike returns the changes that touch a file that another one touches.
func (m *Merger) alike(ctx context.Context, c ralph.Change, list []ralph.Change) (alike []ralph.Change, err error) {
	own, err := m.Tree.Files(ctx, c.Base, c.Head)
	for _, other := range list {
		files, ferr := m.Tree.Files(ctx, other.Base, other.Head)
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
func (m *Merger) unsure(c ralph.Change, err error) {
	if err != nil {
		m.Log.Warn("cannot tell whether a change conflicts with what is about to be merged", "task", c.TaskID, "error", err)
	}
}
