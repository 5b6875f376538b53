package merging

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ralph"
	"ralph/loop/check"
	"ralph/signals"
	"ralph/store"
)

// An Attempt is the result of trying a change while its session can still continue.
type Attempt struct {
	Built
	Conflict string // why it cannot be merged; "" if it can
	Checks   []ralph.Check
	Merged   []ralph.Check // set if it passed but could not be merged with newer work; that is a conflict too
}

// A Built is a commit that merges a change, and the result of its verification.
type Built struct {
	Target    Target
	Onto      string // the commit that the change is merged onto: the target's tip, or the change ahead in the line
	Commit    string // the merge; "" if the change conflicts with the target
	Tree      string
	Conflicts []string      // the conflicting files
	Refused   string        // why it was refused; "" if it passed
	Rewritten []ralph.Touch // protected files that the commands changed, the reason for its refusal
}

// Own returns the change's own merge, onto a target with all changes ahead of it.
func (b Built) Own() Built {
	b.Target.Tip = b.Onto
	return b
}

// trying is the state of [Merger.Try].
type trying struct {
	*Merger
	change ralph.Change
	until  time.Time           // the deadline for waiting; zero before the first wait
	slow   bool                // a verification took too long for another one
	tried  map[string]*Attempt // by tree
	passed *Attempt            // the last attempt that passed
}

// Try checks the work of a claimed done. It gives the change its place in the line, merges it with the target's tip
// and the changes ahead of it, and verifies the result. If it passes, and the changes ahead are merged, no second
// verification follows.
//
// It waits for changes ahead that conflict with this one or fail with it, and verifies again after the target or the
// line ahead has changed, both within [Rules.Wait]. Then the queue goes on with the result.
func (m *Merger) Try(ctx context.Context, c ralph.Change) (a Attempt, err error) {
	defer func() {
		if err != nil || ctx.Err() != nil || a.Refused+a.Conflict != "" {
			m.Leave(ctx, c.SessionID)
		}
		if err != nil {
			m.Links.forget()
		}
	}()
	if err := m.Store.Tx(ctx, func(tx *store.Tx) error { return tx.JoinLine(c) }); err != nil {
		return a, err
	}
	t := &trying{Merger: m, change: c, tried: map[string]*Attempt{}}
	for {
		if a, over, err := t.step(ctx); over || err != nil || ctx.Err() != nil {
			return a, err
		}
	}
}

// step looks at the target and the line, and takes the next step. If over is true, a is the result.
func (t *trying) step(ctx context.Context) (a Attempt, over bool, err error) {
	c := t.change
	on, err := t.target(ctx)
	if err != nil {
		return a, false, err
	}
	at := standing{}
	if on.Gone != "" { // not the session's fault: the queue reports it to people
		if t.passed != nil {
			return *t.passed, true, nil
		}
		on.Tip = c.Base
	} else if at, err = t.ahead(ctx, c); err != nil {
		return a, false, err
	}
	both, err := t.stack(ctx, append(t.near(ctx, at.ahead), c), on)
	if err != nil {
		return a, false, err
	}
	alone := both
	if refused := t.refused(both); len(both.Links) > 0 && (refused != nil || !both.has(c)) {
		below := on
		if refused != nil { // the changes ahead may have been merged just now
			below = refused.Target
		}
		if alone, err = t.stack(ctx, []ralph.Change{c}, below); err != nil {
			return a, false, err
		}
	}
	trial := t.trial(both, alone)
	trial.Lands = at.lands
	var onto *Link
	if trial.Behind {
		onto = &both.Links[len(both.Links)-2]
		if trial.Verdict == Passed {
			if trial.Known, err = t.verified(ctx, c, *onto); err != nil {
				return a, false, err
			}
		}
	}
	switch trial.Next() {
	case Await:
		if t.until.IsZero() {
			t.until = time.Now().Add(t.Wait)
		}
		if trial.Verdict != Passed {
			onto = nil
		}
		err := t.await(ctx, c, at, onto, t.until)
		if t.Travels() {
			t.Links.remote.seen.Store(nil) // another machine may have merged the changes ahead
		}
		return a, false, err
	case Verify:
		s := both
		if trial.Clashes || trial.Verdict == Refused {
			s = alone
		}
		a, err := t.check(ctx, s)
		return a, false, err
	case Pass:
		a = *t.passed
		if trial.Verdict == Passed {
			a = *t.tried[both.tree()]
			a.Target = on
		}
		return a, true, nil
	case SendBack:
		return t.conflicts(ctx, trial, both, alone), true, nil
	}
	return *t.tried[alone.tree()], true, nil
}

// refused returns the attempt of a refused candidate; nil if it was not refused.
func (t *trying) refused(s *Stack) *Attempt {
	if s.has(t.change) {
		if a := t.tried[s.tree()]; a != nil && a.Refused != "" {
			return a
		}
	}
	return nil
}

// trial returns the known results of a candidate, and of the change alone.
func (t *trying) trial(both, alone *Stack) Trial {
	now := time.Now()
	trial := Trial{
		Clashes: !both.has(t.change), Conflicts: len(alone.Links) == 0, Behind: len(both.Links) > 1 && both.has(t.change),
		Late: t.Wait <= 0 || t.slow || !t.until.IsZero() && !now.Before(t.until),
	}
	verdict := func(s *Stack) Verdict {
		switch a := t.tried[s.tree()]; {
		case a == nil:
			return ""
		case a.Refused != "":
			return Refused
		}
		return Passed
	}
	if !trial.Clashes {
		trial.Verdict = verdict(both)
	}
	if !trial.Conflicts && alone != both {
		trial.Alone = verdict(alone)
	}
	if t.passed != nil {
		trial.Passed, trial.Moved = true, t.passed.Target.Tip != both.Target.Tip
	}
	return trial
}

// check verifies the change as the last one of a stack.
func (t *trying) check(ctx context.Context, s *Stack) (Attempt, error) {
	l := s.Links[len(s.Links)-1]
	a := &Attempt{Built: Built{Target: s.Target, Onto: l.Onto, Commit: l.Commit, Tree: l.Tree}}
	began := time.Now()
	work, stop := context.WithCancel(ctx)
	defer stop()
	if ahead := s.changes()[:len(s.Links)-1]; len(ahead) > 0 {
		go t.abandon(work, ahead, stop)
	}
	var err error
	a.Checks, err = t.judge(work, []ralph.Change{t.change}, &a.Built, false)
	if work.Err() != nil && ctx.Err() == nil {
		return *a, nil
	}
	if err != nil || ctx.Err() != nil {
		return *a, err
	}
	a.Refused = refused(a.Checks, a.Rewritten)
	t.tried[l.Tree] = a
	if t.until.IsZero() {
		t.until = time.Now().Add(t.Wait)
	}
	t.slow = t.slow || time.Since(began) > t.Wait
	if a.Refused == "" {
		t.passed = a
	}
	return *a, nil
}

// conflicts returns the attempt of a change that conflicts with merged work or fails on it.
func (t *trying) conflicts(ctx context.Context, trial Trial, both, alone *Stack) Attempt {
	if trial.Conflicts {
		b := Built{Target: alone.Target, Conflicts: alone.Conflicts}
		return Attempt{Built: b, Conflict: t.conflict(ctx, t.change, b)}
	}
	a := t.tried[both.tree()]
	b := a.Built
	b.Target, b.Refused, b.Rewritten = both.Target, "", nil // alone it changed no protected file
	return Attempt{
		Built: b, Checks: t.passed.Checks, Merged: a.Checks,
		Conflict: fmt.Sprintf("%s has moved, and merged with it the change is refused: %s", t.Into, a.Refused),
	}
}

// Rejoin puts a change back into the line, after it has passed on a target and left the line for its review. The
// attempt has a conflict instead if it cannot be merged with newly merged work.
func (m *Merger) Rejoin(ctx context.Context, c ralph.Change, passed Target) (a Attempt, err error) {
	on, err := m.target(ctx)
	if err != nil || on.Gone != "" {
		return a, err // the queue will report it to people
	}
	if on != passed {
		s, err := m.stack(ctx, []ralph.Change{c}, on)
		if err != nil {
			return a, err
		}
		if len(s.Links) == 0 {
			b := Built{Target: on, Conflicts: s.Conflicts}
			return Attempt{Built: b, Conflict: m.conflict(ctx, c, b)}, nil
		}
	}
	return a, m.Store.Tx(ctx, func(tx *store.Tx) error { return tx.JoinLine(c) })
}

// verify verifies the first links of a stack together.
func (m *Merger) verify(ctx context.Context, s *Stack, n int) error {
	commit, err := m.together(ctx, s, n)
	if err != nil {
		return err
	}
	b := &Built{Target: s.Target, Commit: commit, Tree: s.Links[n-1].Tree}
	list := s.changes()[:n]
	checks, err := m.judge(ctx, list, b, n == 1)
	if err == nil && ctx.Err() == nil {
		err = m.noteFlaky(ctx, list[0], checks)
		s.Verified, s.Commit, s.Refused = n, commit, refused(checks, b.Rewritten)
	}
	return err
}

func refused(checks []ralph.Check, rewritten []ralph.Touch) string {
	return signals.Refused(checks, nil, ralph.Evidence{Rewritten: rewritten}, signals.Rules{}).String()
}

// judge compares the commands' results on the commit to merge with those on the tip. If a single change in the queue
// fails, the tip is verified again. If the tip now fails although it passed before, no change is at fault, and the
// queue is paused for a person. If ctx ends, only the commands that have begun have checks.
func (m *Merger) judge(
	ctx context.Context, list []ralph.Change, b *Built, alone bool,
) (checks []ralph.Check, err error) {
	commands, _, err := m.commands(ctx, list)
	if err != nil {
		return nil, err
	}
	now, err := m.said(ctx, b.Commit, b.Tree, commands.All())
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return asChecks(now), nil
	}
	var before []check.Outcome
	if b.Commit == b.Target.Tip { // without changes, a failure is one of the tip
		before = now
	}
	if failed(now) && b.Commit != b.Target.Tip && len(commands.Shared) > 0 {
		tree, err := m.Tree.Whole(ctx, b.Target.Tip)
		if err != nil {
			return nil, err
		}
		was, _, err := m.stored(ctx, tree, commands.All())
		if err != nil {
			return nil, err
		}
		says := m.said
		if alone {
			says = m.run
		}
		if before, err = says(ctx, b.Target.Tip, tree, commands.Shared); err != nil || ctx.Err() != nil {
			return nil, err
		}
		if alone && turned(was, before) != "" {
			if before, err = m.again(ctx, b.Target.Tip, tree, before, asIs); err != nil || ctx.Err() != nil {
				return nil, err
			}
			if err := m.noteFlaky(ctx, list[0], asChecks(before)); err != nil {
				return nil, err
			}
		}
		if command := turned(was, before); alone && command != "" {
			reason := fmt.Sprintf("`%s` fails on %s itself (%.10s), where it had passed", command, m.Into, b.Target.Tip)
			err := m.Store.Tx(ctx, func(tx *store.Tx) error { return tx.PauseMerging(reason) })
			return nil, errors.Join(err, ralph.Conflict("%s", reason)) // the next look will find the pause
		}
	}
	compare := func(o check.Outcome) ralph.Check { return check.Compare(o, before, commands, m.Check.Strict) }
	now, err = m.again(ctx, b.Commit, b.Tree, now, compare)
	b.Rewritten = check.Rewritten(now)
	for _, r := range now {
		checks = append(checks, compare(r))
	}
	return checks, err
}

// commands returns the commands to verify changes together, and the tasks of the changes.
func (m *Merger) commands(
	ctx context.Context, list []ralph.Change,
) (all check.Commands, tasks []ralph.Task, err error) {
	err = m.Store.View(ctx, func(tx *store.Tx) error {
		all, tasks = check.Commands{}, nil
		for _, c := range list {
			t, err := tx.Task(c.TaskID)
			if err != nil {
				return err
			}
			tasks = append(tasks, t)
			if c.Undo == ralph.Cancelled { // the task's own commands test the undone work
				t.Verify = nil
			}
			of, err := m.Check.Of(tx, t)
			if err != nil {
				return err
			}
			all.Shared = of.Shared
			for _, own := range of.Own {
				if !slices.Contains(all.Own, own) {
					all.Own = append(all.Own, own)
				}
			}
		}
		return nil
	})
	return all, tasks, err
}

func failed(list []check.Outcome) bool {
	return slices.ContainsFunc(list, func(o check.Outcome) bool { return !o.Check.Passed })
}

// turned returns the first command that passed in was and fails now.
func turned(was, now []check.Outcome) string {
	passed := map[string]bool{}
	for _, o := range was {
		passed[o.Check.Command] = o.Check.Passed
	}
	for _, o := range now {
		if passed[o.Check.Command] && !o.Check.Passed {
			return o.Check.Command
		}
	}
	return ""
}

// said returns the results of commands on a commit. If all are known to pass on its tree in the integration workspace,
// they do not run again.
func (m *Merger) said(ctx context.Context, commit, tree string, commands []string) ([]check.Outcome, error) {
	list, all, err := m.stored(ctx, tree, commands)
	if err != nil || all && !failed(list) {
		return list, err
	}
	return m.run(ctx, commit, tree, commands)
}

// run runs the commands and stores their results, unless ctx ends: a stopped command has no result. Earlier results on
// the tree show flaky tests.
func (m *Merger) run(ctx context.Context, commit, tree string, commands []string) ([]check.Outcome, error) {
	if len(commands) == 0 {
		return nil, nil
	}
	before, _, err := m.stored(ctx, tree, commands)
	if err != nil {
		return nil, err
	}
	list, err := m.Workspace.Verify(ctx, commit, commands)
	if err != nil || ctx.Err() != nil {
		return list, err
	}
	if m.Check.Retry {
		check.Flips(before, list)
	}
	return list, m.put(ctx, tree, list)
}

// stored returns the stored results of commands on a tree; all reports whether every command has one.
func (m *Merger) stored(
	ctx context.Context, tree string, commands []string,
) (list []check.Outcome, all bool, err error) {
	err = m.Store.View(ctx, func(tx *store.Tx) error {
		list, all = nil, true
		for _, command := range commands {
			var o check.Outcome
			ok, err := tx.Verification(m.Pool.ResultKey(tree), command, &o)
			if err != nil {
				return err
			}
			if all = all && ok; ok {
				list = append(list, o)
			}
		}
		return nil
	})
	return list, all, err
}
