package check

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ralph"
	"ralph/internal/testresult"
	"ralph/loop/workspace"
	"ralph/signals"
	"ralph/store"
)

// An Outcome is the result of a verification command: its exit status, and
// its tests by name if it reported them.
type Outcome struct {
	Check ralph.Check         `json:"check"`
	Tests *testresult.Results `json:"tests,omitempty"`
	Text  *testresult.Results `json:"text,omitempty"`  // counts in its printed output, if it has no such report
	Wrote []string            `json:"wrote,omitempty"` // protected files that it changed there, at most [MaxWrote]
}

// MaxWrote is the maximum number of protected files, changed by commands, that are named.
const MaxWrote = 100

// Rewritten returns the protected files that commands changed, at most [MaxWrote].
func Rewritten(list []Outcome) (touches []ralph.Touch) {
	for _, o := range list {
		for _, file := range o.Wrote[:min(len(o.Wrote), MaxWrote-len(touches))] {
			touches = append(touches, ralph.Touch{File: file, Command: o.Check.Command})
		}
	}
	return touches
}

// A Verifier runs commands on a commit that is checked out in a workspace.
type Verifier struct {
	Rules
	Store     *store.DB
	Workspace *workspace.Workspace // nil if only stored results count: a command without one is then [ErrUnknown]
	Key       string               // key of results on the commit, see [workspace.Pool.ResultKey]
	State     string               // the folder for ralph's own files
	Busy      func(time.Duration)  // called with the maximum time of the next step; may be nil
	Slow      func(command string) // called with a command outside of sessions that runs longer than a second
}

// takes announces how long the next step may take.
func (v *Verifier) takes(d time.Duration) {
	if v.Busy != nil {
		v.Busy(d)
	}
}

// Names returns the results of the command's tests by name or number; nil if there are none.
func (o Outcome) Names() *testresult.Results {
	if o.Tests != nil {
		return o.Tests
	}
	return o.Text
}

// Baseline runs the commands of a task before its first session, or reuses their results for the same commit
// (pipeline, "Verification"). For a task with earlier sessions, it runs only new commands. If the task's own commands
// already pass, they prove nothing, and an event reports that.
func (v *Verifier) Baseline(ctx context.Context, task ralph.Task) error {
	var c Commands
	var before []Outcome
	err := v.Store.View(ctx, func(tx *store.Tx) (err error) {
		if c, err = v.Of(tx, task); err != nil {
			return err
		}
		_, err = tx.Baseline(task.ID, &before)
		return err
	})
	known := func(command string) bool { return knows(before, command) }
	if err != nil || !slices.ContainsFunc(c.All(), func(command string) bool { return !known(command) }) {
		return err
	}
	results, err := v.suite(ctx, c, false)
	if err != nil || ctx.Err() != nil {
		return err // a stopped command has no result
	}
	var red []ralph.Check
	var idle []string
	for i, r := range results {
		switch {
		case known(r.Check.Command):
		case i < len(c.Shared):
			red = append(red, Compare(r, []Outcome{r}, c, v.Strict))
		case r.Check.Passed:
			idle = append(idle, r.Check.Command)
		}
	}
	return v.Store.Tx(ctx, func(tx *store.Tx) error {
		if red := signals.Refused(red, nil, ralph.Evidence{}, signals.Rules{}).String(); red != "" {
			if err := tx.NoteRed(0, task.ID, ralph.BaselineRed{Reason: red}); err != nil {
				return err
			}
		}
		if len(idle) > 0 {
			if err := tx.NoteIdle(task.ID, idle); err != nil {
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

// ErrUnknown means that a command has no result yet for a state.
var ErrUnknown = errors.New("the command has not been run on this state")

// suite runs commands, or reuses their results. If anew is set, earlier failures are not reused. A command that runs
// may need files that those before it build, so they run again, unless they passed and take a minute. Shared commands
// that fail run once more. The task's own are expected to fail.
func (v *Verifier) suite(ctx context.Context, c Commands, anew bool) (list []Outcome, err error) {
	commands, last, before := c.All(), -1, 0.0
	due := make([]bool, len(commands))
	list = make([]Outcome, len(commands))
	err = v.Store.View(ctx, func(tx *store.Tx) error {
		for i, command := range commands {
			ok, err := tx.Verification(v.Key, command, &list[i])
			if err != nil {
				return err
			}
			if due[i] = !ok || anew && !v.excusable(list[i]); due[i] {
				last = i
			}
		}
		return nil
	})
	if err != nil || last < 0 {
		return list, err
	}
	if v.Workspace == nil {
		return nil, ErrUnknown
	}
	for i, o := range list[:last] {
		if !due[i] {
			before += o.Check.Seconds
		}
	}
	dir, err := Folder(v.State)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for i, command := range commands[:last+1] {
		if !due[i] && !anew && before >= soon {
			continue
		}
		v.takes(v.Longest(1))
		round, err := v.round(dir)
		if err != nil {
			return nil, err
		}
		run := func(commands []string) ([]Outcome, error) { return v.Run(ctx, round, commands) }
		results, err := run([]string{command})
		if err == nil && ctx.Err() == nil && due[i] && i < len(c.Shared) {
			results, err = v.Again(results, v.judged, run)
		}
		if err != nil || ctx.Err() != nil {
			return nil, err
		}
		if due[i] {
			if err := v.put(ctx, results); err != nil {
				return nil, err
			}
			list[i] = results[0]
		}
	}
	return list, nil
}

// judged returns a check that passes if its failure is excused.
func (v *Verifier) judged(o Outcome) ralph.Check {
	o.Check.Passed = v.excusable(o)
	return o.Check
}

// staleBaseline is the age from which a baseline's folder must be left
// over from a killed process, as each command has a time limit.
const staleBaseline = 24 * time.Hour

// Folder creates a folder in the project's state for a verification outside of a session,
// and removes folders of killed processes.
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

// round returns the round for commands outside of a session.
func (v *Verifier) round(dir string) (Round, error) {
	copied, err := v.Workspace.Copied()
	return Round{
		Dir: v.Workspace.Dir, Made: v.Workspace.Made(), Env: v.Workspace.Environ(),
		Session: "baseline-" + filepath.Base(dir) + "-" + v.State,
		Log:     filepath.Join(dir, "verify.log"), Slow: v.Slow, copied: copied, at: v.Workspace,
	}, err
}

// put stores the results of commands.
func (v *Verifier) put(ctx context.Context, results []Outcome) error {
	return v.Store.Tx(ctx, func(tx *store.Tx) error {
		for _, r := range results {
			if err := tx.PutVerification(v.Key, r.Check.Command, r); err != nil {
				return err
			}
		}
		return nil
	})
}

// Compare compares a command's result with the baseline. It only ever excuses a command of the project or the feature
// that reports its tests by name, and only for tests that failed before (decision 1). It never excuses a task's own
// command.
func Compare(now Outcome, before []Outcome, commands Commands, strict bool) ralph.Check {
	c := now.Check
	if now.Tests == nil || c.Passed {
		return c
	}
	c.Failures = now.Tests.Failed()
	if strict || c.Error != "" {
		return c
	}
	for _, command := range commands.Shared {
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
