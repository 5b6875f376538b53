package merging

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"ralph"
	"ralph/loop/check"
	"ralph/signals"
	"ralph/store"
)

// An Attempt is the result of trying a change while its session could still go on.
type Attempt struct {
	Built
	Conflict string // why it cannot be merged; "" if it can
	Checks   []ralph.Check
	Merged   []ralph.Check // set if it passed, but not merged with newer merges, which is a conflict too
}

// Try merges the work of a claimed done with the target's tip and verifies it. This is the check
// of the done: if it passes and the target does not move, nothing is verified a second time.
//
// If the target moved meanwhile, Try reports a conflict with its new state, within [Rules.Wait];
// it waits for changes in [Line] with which this one conflicts. If the verification takes at most
// spare, the work is verified with the new state, too, once; else the queue verifies everything together.
func (m *Merger) Try(ctx context.Context, c ralph.Change, spare time.Duration) (a Attempt, err error) {
	defer func() {
		if err != nil || ctx.Err() != nil || a.Refused+a.Conflict != "" {
			m.Line.Leave(c.SessionID)
		}
	}()
	var until time.Time
	again := false // whether the work is verified once more with what is merged
	for {
		on, err := m.target(ctx)
		if err != nil {
			return a, err
		}
		if on.Gone != "" { // not the session's fault: the queue tells people
			if a.Verified {
				return a, nil
			}
			on.Tip = c.Base
		}
		b, same := &a.Built, a.Verified && a.Target == on
		if !same {
			if b, err = m.build(ctx, []ralph.Change{c}, on); err != nil {
				return a, err
			}
		}
		if b.Commit == "" {
			return Attempt{Built: *b, Conflict: m.conflict(ctx, c, b)}, nil
		}
		if a.Verified {
			merges := a.Target.Point != on.Point
			if !time.Now().Before(until) {
				m.Line.pass(c, a.Target)
				return a, nil
			}
			if same || merges && !again {
				entered, ahead, err := m.notePassed(ctx, c, on, again)
				if err != nil || entered {
					return a, err
				}
				if len(ahead) > 0 {
					if err := m.await(ctx, c, ahead, until); err != nil {
						return a, err
					}
				}
				continue
			}
			again = again && !merges
		}
		began := time.Now()
		m.Line.noteChecking(c, on)
		checks, err := m.judge(ctx, []ralph.Change{c}, b, false)
		if ctx.Err() != nil && !a.Verified {
			a.Checks = checks
		}
		if err != nil || ctx.Err() != nil {
			return a, err
		}
		if until.IsZero() {
			until, again = time.Now().Add(m.Wait), time.Since(began) <= spare
		}
		if why := refused(checks, b.Rewritten); a.Verified && why != "" {
			why = fmt.Sprintf("%s has moved, and merged with it the change is refused: %s", m.Into, why)
			b.Rewritten = nil // alone it changes none
			return Attempt{Built: *b, Conflict: why, Checks: a.Checks, Merged: checks}, nil
		}
		a = Attempt{Built: *b, Checks: checks}
		a.Verified, a.Refused = true, refused(a.Checks, a.Rewritten)
		if a.Refused != "" || on.Gone != "" {
			return a, nil
		}
	}
}

// Rejoin puts a change that has passed on a target, and left the line while it was reviewed, back into it. The
// attempt has a conflict instead if it cannot be merged with what was merged meanwhile.
func (m *Merger) Rejoin(ctx context.Context, c ralph.Change, passed Target) (a Attempt, err error) {
	on, err := m.target(ctx)
	if err != nil || on.Gone != "" {
		return a, err // the queue tells people
	}
	if on != passed {
		b, err := m.build(ctx, []ralph.Change{c}, on)
		if err != nil {
			return a, err
		}
		if b.Commit == "" {
			return Attempt{Built: *b, Conflict: m.conflict(ctx, c, b)}, nil
		}
	}
	m.Line.pass(c, passed)
	return a, nil
}

// verify verifies the commit that would be merged.
func (m *Merger) verify(ctx context.Context, list []ralph.Change, b *Built) error {
	checks, err := m.judge(ctx, list, b, len(list) == 1)
	if err == nil && ctx.Err() == nil {
		b.Verified, b.Refused = true, refused(checks, b.Rewritten)
	}
	return err
}

func refused(checks []ralph.Check, rewritten []ralph.Touch) string {
	return signals.Refused(checks, nil, ralph.Evidence{Rewritten: rewritten}, signals.Rules{}).String()
}

// judge compares the commands' results on the commit that would be merged with those on the tip. If
// a single change in the queue fails, the tip is verified again: if it now fails although it
// passed when it was merged, nobody is at fault, and the queue is paused until a person has looked. If ctx ends, the
// checks are those of the commands that have begun.
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
		for _, o := range now {
			checks = append(checks, o.Check)
		}
		return checks, nil
	}
	var before []check.Outcome
	if b.Commit == b.Target.Tip { // nothing was changed: what fails here fails on the tip
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
		}
		if command := turned(was, before); alone && command != "" {
			reason := fmt.Sprintf("`%s` fails on %s itself (%.10s), where it had passed", command, m.Into, b.Target.Tip)
			err := m.Store.Tx(ctx, func(tx *store.Tx) error { return tx.PauseMerging(reason) })
			return nil, errors.Join(err, ralph.Conflict("%s", reason)) // the next look finds the pause
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

// commands returns the commands that verify changes together, and the tasks of the changes.
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
			if c.Undo == ralph.Cancelled { // the task's own commands ask for what is taken back
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

// turned returns the first command that passed before and fails now.
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

// said returns the results of commands on a commit. If all are known to
// pass on its tree in the integration workspace, they do not run again.
func (m *Merger) said(ctx context.Context, commit, tree string, commands []string) ([]check.Outcome, error) {
	list, all, err := m.stored(ctx, tree, commands)
	if err != nil || all && !failed(list) {
		return list, err
	}
	return m.run(ctx, commit, tree, commands)
}

// run runs the commands and stores their results, unless ctx ends: stopped commands say nothing of the tree.
func (m *Merger) run(ctx context.Context, commit, tree string, commands []string) ([]check.Outcome, error) {
	if len(commands) == 0 {
		return nil, nil
	}
	began := time.Now()
	list, err := m.Workspace.Verify(ctx, commit, commands)
	if err != nil || ctx.Err() != nil {
		return list, err
	}
	m.Line.noteTook(time.Since(began))
	m.outcomes.add(tree, list)
	return list, m.Store.Tx(ctx, func(tx *store.Tx) error {
		for _, r := range list {
			if err := tx.PutVerification(m.Pool.ResultKey(tree), r.Check.Command, r); err != nil {
				return err
			}
		}
		return nil
	})
}

// stored returns the stored results of commands on a tree; all reports whether every command has one.
func (m *Merger) stored(
	ctx context.Context, tree string, commands []string,
) (list []check.Outcome, all bool, err error) {
	if list, all = m.outcomes.all(tree, commands); all {
		return list, true, nil
	}
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
	if err == nil {
		m.outcomes.add(tree, list)
	}
	return list, all, err
}

// outcomes are results of commands by tree that were read or stored while a change is checked, or what is queued is
// merged: none is asked for twice.
type outcomes struct {
	mu sync.Mutex
	of map[string][]check.Outcome
}

// all returns the results of commands on a tree; ok is false if they are not all known.
func (k *outcomes) all(tree string, commands []string) (list []check.Outcome, ok bool) {
	if k == nil {
		return nil, len(commands) == 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, command := range commands {
		o := of(k.of[tree], command)
		if o == nil {
			return nil, false
		}
		list = append(list, *o)
	}
	return list, true
}

// add adds results, in place of those of the same commands.
func (k *outcomes) add(tree string, list []check.Outcome) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, o := range list {
		others := slices.DeleteFunc(k.of[tree], func(p check.Outcome) bool { return p.Check.Command == o.Check.Command })
		k.of[tree] = append(others, o)
	}
}
