package check

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ralph"
	"ralph/internal/testresult"
	"ralph/signals"
	"ralph/store"
)

// An Outcome is what a verification command said: its exit status, and its tests
// by name where it reported them.
type Outcome struct {
	Check ralph.Check         `json:"check"`
	Tests *testresult.Results `json:"tests,omitempty"`

	// Of a baseline that is not of the work tree as the task found it: what a session
	// broke before it and was not accepted.
	Left []string `json:"left,omitempty"`
}

// Baseline has the project's and the feature's commands run before the first
// session of a task, or takes what they said of the same work tree before
// (pipeline, "Verification"). A task that has been worked on gets one for the
// commands that are new. What counts is what people left, or what was accepted last:
// what another session broke is nobody's excuse (trust, 10).
func (v *Verifier) Baseline(ctx context.Context, task ralph.Task) error {
	var shared []string
	var before []Outcome
	err := v.Store.View(ctx, func(tx *store.Tx) error {
		c, err := v.Of(tx, task)
		if err != nil {
			return err
		}
		if _, err := tx.Baseline(task.ID, &before); err != nil {
			return err
		}
		shared = slices.DeleteFunc(c.Shared, func(command string) bool { return knows(before, command) })
		return nil
	})
	if err != nil || len(shared) == 0 {
		return err
	}
	done, now, err := v.suite(ctx, shared, false)
	if err != nil || ctx.Err() != nil {
		return err // a command that was stopped says nothing
	}
	results := make([]Outcome, len(shared))
	var red []ralph.Check
	for i, s := range done {
		results[i] = s.before
		red = append(red, Judge(s.now, results[i:i+1], shared, v.Strict))
	}
	return v.Store.Tx(ctx, func(tx *store.Tx) error {
		if err := v.keepMade(tx, now); err != nil {
			return err
		}
		if red := signals.Refused(red, nil, ralph.Evidence{}, signals.Rules{}); red != "" {
			if err := tx.NoteRed(task.ID, red); err != nil {
				return err
			}
		}
		var stands []Outcome // another process may have been faster
		if _, err := tx.Baseline(task.ID, &stands); err != nil {
			return err
		}
		for _, r := range results {
			if !knows(stands, r.Check.Command) {
				stands = append(stands, r)
			}
		}
		return tx.SetBaseline(task.ID, stands)
	})
}

// knows reports whether a command is among the outcomes.
func knows(outcomes []Outcome, command string) bool {
	return slices.ContainsFunc(outcomes, func(o Outcome) bool { return o.Check.Command == command })
}

// A standing is what a command says of the work tree as it is, and what it said of
// the state that counts: as people left it, or as it was accepted last.
type standing struct {
	now, before Outcome
	fresh       bool // it was run now, and not taken from an earlier time
}

// A making is what the commands that ralph has run have made of a work tree.
type making struct{ found, made store.State }

// suite has commands run on the work tree as it is, or takes what they said of it;
// anew is for failures of an earlier time, which are not taken.
func (v *Verifier) suite(ctx context.Context, commands []string, anew bool) (list []standing, made making, err error) {
	dir, err := v.folder()
	if err != nil {
		return nil, made, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if made.found, err = v.Place.Now(ctx, dir); err != nil {
		return nil, made, err
	}
	made.made = made.found
	ran := false
	for _, command := range commands {
		s := standing{}
		if s.now, s.fresh, err = v.known(ctx, made.found.Content, command, dir, anew); err != nil || ctx.Err() != nil {
			return nil, made, err
		}
		ran = ran || s.fresh
		s.before = s.now
		base, err := v.base(ctx, made.found, command)
		if err != nil {
			return nil, made, err
		}
		if base != made.found {
			if s.before, err = v.beforeSessions(ctx, base, s.now); err != nil {
				return nil, made, err
			}
		}
		list = append(list, s)
	}
	if !ran {
		return list, made, nil
	}
	if made.made, err = v.Place.Now(ctx, dir); err != nil || made.made == made.found {
		return list, made, err
	}
	// What they wrote themselves is no reason to run them again.
	results := make([]Outcome, len(list))
	for i, s := range list {
		results[i] = s.now
	}
	return list, made, v.Keep(ctx, made.made.Content, results)
}

// beforeSessions is what a command said of an earlier state, and what has failed
// since. If that is not known, nothing is excused.
func (v *Verifier) beforeSessions(ctx context.Context, base store.State, now Outcome) (before Outcome, err error) {
	before, ok, err := v.verification(ctx, base.Content, now.Check.Command)
	if !ok {
		before = Outcome{Check: now.Check}
		before.Check.Tail = ""
	}
	before.Left = broken(before, now)
	return before, err
}

// verification is what a command said of a state of the work tree; ok is false if that is
// not known.
func (v *Verifier) verification(ctx context.Context, content, command string) (said Outcome, ok bool, err error) {
	ok, err = store.Read(ctx, v.Store, func(tx *store.Tx) (bool, error) {
		return tx.Verification(content, command, &said)
	})
	return said, ok, err
}

// broken names what fails now and did not before: tests, or the command where they
// have no names.
func broken(before, now Outcome) []string {
	switch {
	case now.Check.Passed:
		return nil
	case now.Tests == nil || before.Tests == nil:
		if before.Check.Passed {
			return []string{now.Check.Command}
		}
		return nil
	}
	return testresult.Compare(before.Tests, now.Tests).New
}

// base is the state of the work tree whose failures of a command are no task's: the
// one that is there, unless a session left it whose done was not accepted; then the one
// that this session found, and so on. A done that was accepted without this command
// says nothing of it, as far as it is known what the command said before.
func (v *Verifier) base(ctx context.Context, now store.State, command string) (store.State, error) {
	return store.Read(ctx, v.Store, func(tx *store.Tx) (store.State, error) {
		var accepted store.State // the one that was accepted last without this command
		at, last := now, int64(0)
		for {
			left, ok, err := tx.LeftBy(at, last)
			if err != nil {
				return at, err
			}
			if !ok || left.Accepted && checked(left.Checks, command) {
				break
			}
			if left.Accepted {
				accepted = cmp.Or(accepted, at)
			}
			at, last = left.Found, left.ID
		}
		if accepted == (store.State{}) {
			return at, nil
		}
		var said Outcome
		known, err := tx.Verification(at.Content, command, &said)
		if err == nil && !known {
			at = accepted
		}
		return at, err
	})
}

// checked reports whether a command was among the checks of a done.
func checked(checks []ralph.Check, command string) bool {
	return slices.ContainsFunc(checks, func(c ralph.Check) bool { return c.Command == command })
}

// keepMade notes that commands which ralph ran have changed the work tree: what
// they write makes nobody's leftovers people's.
func (v *Verifier) keepMade(tx *store.Tx, m making) error {
	if m.made == m.found {
		return nil
	}
	return tx.KeepLeft(store.Left{State: m.made, Found: m.found})
}

// staleBaseline is how old a baseline's folder must be to be taken for one that a
// killed process left; each command has a time limit.
const staleBaseline = 24 * time.Hour

// folder is a new folder for one baseline: workers take theirs while the
// loop does. What killed processes left is removed.
func (v *Verifier) folder() (string, error) {
	parent := filepath.Join(v.Place.State, "baseline")
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(parent)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > staleBaseline {
			if err := os.RemoveAll(filepath.Join(parent, e.Name())); err != nil {
				return "", err
			}
		}
	}
	return os.MkdirTemp(parent, "")
}

// known is what a command says of a state of the work tree; anew is for a failure
// that is not to be taken from an earlier time. It tells whether the command was run.
func (v *Verifier) known(
	ctx context.Context, content, command, dir string, anew bool,
) (result Outcome, ran bool, err error) {
	result, ok, err := v.verification(ctx, content, command)
	if err != nil || ok && (!anew || v.excusable(result)) {
		return result, false, err
	}
	v.Takes(v.Timeout)
	results, err := v.Run(ctx, v.baselineRound(dir), []string{command})
	if err != nil || ctx.Err() != nil {
		return result, true, err
	}
	return results[0], true, v.Keep(ctx, content, results)
}

// baselineRound runs commands for no session.
func (v *Verifier) baselineRound(dir string) Round {
	return Round{
		Dir: v.Place.Dir, Session: "baseline-" + filepath.Base(dir) + "-" + v.Place.State,
		Log: filepath.Join(dir, "verify.log"),
	}
}

// Keep remembers what commands said of a state of the work tree.
func (v *Verifier) Keep(ctx context.Context, content string, results []Outcome) error {
	return v.Store.Tx(ctx, func(tx *store.Tx) error {
		for _, r := range results {
			if err := tx.KeepVerification(content, r.Check.Command, r); err != nil {
				return err
			}
		}
		return nil
	})
}

// Judge compares what a command says now with the baseline. Only a command of the
// project or the feature that reports its tests by name is ever excused, and only
// for tests that failed before (decision 1).
func Judge(now Outcome, before []Outcome, shared []string, strict bool) ralph.Check {
	c := now.Check
	if now.Tests == nil || c.Passed {
		return c
	}
	c.Failures = now.Tests.Failed()
	if strict || c.Error != "" {
		return c
	}
	for _, command := range shared {
		if command != c.Command {
			continue
		}
		for _, b := range before {
			if b.Check.Command == command && b.Tests != nil {
				d := testresult.Compare(b.Tests, now.Tests)
				c.Failures, c.Excused, c.Passed = d.New, d.Known, d.Excused
			}
		}
	}
	return c
}
