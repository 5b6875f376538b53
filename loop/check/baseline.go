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

// An Outcome is the result of a verification command: its exit status, and
// its tests by name if it reported them.
type Outcome struct {
	Check ralph.Check         `json:"check"`
	Tests *testresult.Results `json:"tests,omitempty"`
	Text  *testresult.Results `json:"text,omitempty"` // what its output for people says, if it has no such report

	// For a baseline of an earlier state than the one that the task found:
	// what a session whose done was not accepted has broken since.
	Left []string `json:"left,omitempty"`
}

// Names returns what is known of the command's tests by name or number; nil if that is nothing.
func (o Outcome) Names() *testresult.Results {
	if o.Tests != nil {
		return o.Tests
	}
	return o.Text
}

// Baseline runs the project's and the feature's commands before the first session of a task,
// or reuses their results for the same work tree (pipeline, "Verification"). For a task that
// was worked on before, it runs only new commands. The baseline is the state that people
// left or that was accepted last: what another session broke is no excuse (trust, 10).
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
		return err // a stopped command says nothing
	}
	results := make([]Outcome, len(shared))
	var red []ralph.Check
	for i, s := range done {
		results[i] = s.before
		red = append(red, Judge(s.now, results[i:i+1], shared, v.Strict))
	}
	return v.Store.Tx(ctx, func(tx *store.Tx) error {
		if err := v.addMade(tx, now); err != nil {
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

// knows reports whether the outcomes include a command.
func knows(outcomes []Outcome, command string) bool {
	return slices.ContainsFunc(outcomes, func(o Outcome) bool { return o.Check.Command == command })
}

// ErrUnknown says that a command has no result yet for a state.
var ErrUnknown = errors.New("the command has not been run on this state")

// A standing is a command's result on the present work tree, and its result on
// the state that counts: the last one that people left or that was accepted.
type standing struct {
	now, before Outcome
	fresh       bool // it ran now; no earlier result was reused
}

// A making is the state of a work tree before and after commands that ralph ran.
type making struct{ found, made store.State }

// suite runs commands on the work tree or reuses their results. If anew is
// set, earlier failures are not reused.
func (v *Verifier) suite(ctx context.Context, commands []string, anew bool) (list []standing, made making, err error) {
	dir, err := Folder(v.Place.State)
	if err != nil {
		return nil, made, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if v.At != nil {
		made.found = *v.At
	} else if made.found, err = v.Place.Now(ctx, dir); err != nil {
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
	return list, made, v.PutResults(ctx, made.made.Content, results)
}

// beforeSessions returns a command's result on an earlier state, with what
// was broken since. If that result is unknown, nothing is excused.
func (v *Verifier) beforeSessions(ctx context.Context, base store.State, now Outcome) (before Outcome, err error) {
	before, ok, err := v.verification(ctx, base.Content, now.Check.Command)
	if !ok {
		before = Outcome{Check: now.Check}
		before.Check.Tail = ""
	}
	before.Left = broken(before, now)
	return before, err
}

// verification returns a command's result on a state of the work tree; ok
// is false if it is unknown.
func (v *Verifier) verification(ctx context.Context, content, command string) (said Outcome, ok bool, err error) {
	ok, err = store.Read(ctx, v.Store, func(tx *store.Tx) (bool, error) {
		return tx.Verification(content, command, &said)
	})
	return said, ok, err
}

// broken names what fails now and did not before: tests, or the command if it names no tests.
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

// base returns the state whose failures of a command are no task's fault. It is the
// present state or, if that was left by a session whose done was not accepted, the
// state that this session found, and so on. A done that was accepted without this
// command says nothing about it, provided that the command's earlier result is known.
func (v *Verifier) base(ctx context.Context, now store.State, command string) (store.State, error) {
	return store.Read(ctx, v.Store, func(tx *store.Tx) (store.State, error) {
		var accepted store.State // the last state that was accepted without this command
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

// checked reports whether a done's checks include a command.
func checked(checks []ralph.Check, command string) bool {
	return slices.ContainsFunc(checks, func(c ralph.Check) bool { return c.Command == command })
}

// addMade records that commands of ralph's changed the work tree, so that
// the changes of a session are not mistaken for people's.
func (v *Verifier) addMade(tx *store.Tx, m making) error {
	if m.made == m.found {
		return nil
	}
	return tx.AddLeft(store.Left{State: m.made, Found: m.found})
}

// staleBaseline is the age from which a baseline's folder must be left
// over from a killed process, as each command has a time limit.
const staleBaseline = 24 * time.Hour

// Folder creates a folder in the project's state for a verification
// outside of a session, and removes those of killed processes.
func Folder(state string) (string, error) {
	parent := filepath.Join(state, "baseline")
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

// known returns a command's result on a state of the work tree, and whether
// the command had to run. If anew is set, an earlier failure is not reused.
func (v *Verifier) known(
	ctx context.Context, content, command, dir string, anew bool,
) (result Outcome, ran bool, err error) {
	result, ok, err := v.verification(ctx, content, command)
	if err != nil || ok && (!anew || v.excusable(result)) {
		return result, false, err
	}
	if v.At != nil {
		return result, false, ErrUnknown
	}
	v.Takes(v.Timeout)
	results, err := v.Run(ctx, v.baselineRound(dir), []string{command})
	if err != nil || ctx.Err() != nil {
		return result, true, err
	}
	return results[0], true, v.PutResults(ctx, content, results)
}

// baselineRound returns the round for commands outside of a session.
func (v *Verifier) baselineRound(dir string) Round {
	return Round{
		Dir: v.Place.Dir, Made: v.Place.Made(), Env: v.Place.Environ(), Session: "baseline-" + filepath.Base(dir) + "-" + v.Place.State,
		Log: filepath.Join(dir, "verify.log"), Slow: v.Slow,
	}
}

// PutResults stores the results of commands on a state of the work tree.
func (v *Verifier) PutResults(ctx context.Context, content string, results []Outcome) error {
	return v.Store.Tx(ctx, func(tx *store.Tx) error {
		for _, r := range results {
			if err := tx.PutVerification(content, r.Check.Command, r); err != nil {
				return err
			}
		}
		return nil
	})
}

// Judge compares a command's result with the baseline. It only ever
// excuses a command of the project or the feature that reports its tests
// by name, and only for tests that failed before (decision 1).
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
