package loop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"ralph"
	"ralph/internal/testresult"
	"ralph/signals"
	"ralph/store"
)

// An outcome is what a verification command said: its exit status, and its tests
// by name where it reported them.
type outcome struct {
	Check ralph.Check         `json:"check"`
	Tests *testresult.Results `json:"tests,omitempty"`

	// Of a baseline that is not of the work tree as the task found it: what a session
	// broke before it and was not accepted.
	Left []string `json:"left,omitempty"`
}

// baseline has the project's and the feature's commands run before the first
// session of a task, or takes what they said of the same work tree before
// (pipeline, "Verification"). A task that has been worked on gets one for the
// commands that are new. What counts is what people left, or what was accepted last:
// what another session broke is nobody's excuse (trust, 10).
func (l *Loop) baseline(ctx context.Context, task ralph.Task) (err error) {
	var shared []string
	var before []outcome
	err = l.Store.View(ctx, func(tx *store.Tx) error {
		c, err := l.verifyCommands(tx, task)
		if err != nil {
			return err
		}
		if _, err := tx.Baseline(task.ID, &before); err != nil {
			return err
		}
		shared = slices.DeleteFunc(c.shared, func(command string) bool { return knows(before, command) })
		return nil
	})
	if err != nil || len(shared) == 0 {
		return err
	}
	done, now, err := l.suite(ctx, shared, false)
	if err != nil || ctx.Err() != nil {
		return err // a command that was stopped says nothing
	}
	results := make([]outcome, len(shared))
	var red []ralph.Check
	for i, s := range done {
		results[i] = s.before
		red = append(red, judge(s.now, results[i:i+1], shared, l.Verification.Strict))
	}
	return l.Store.Tx(ctx, func(tx *store.Tx) error {
		if err := l.keepMade(tx, now); err != nil {
			return err
		}
		if red := signals.Refused(red, nil, ralph.Evidence{}, l.Rules); red != "" {
			if err := tx.NoteRed(task.ID, red); err != nil {
				return err
			}
		}
		var stands []outcome // another process may have been faster
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
func knows(outcomes []outcome, command string) bool {
	return slices.ContainsFunc(outcomes, func(o outcome) bool { return o.Check.Command == command })
}

// A standing is what a command says of the work tree as it is, and what it said of
// the state that counts: as people left it, or as it was accepted last.
type standing struct {
	now, before outcome
	fresh       bool // it was run now, and not taken from an earlier time
}

// A making is what the commands that ralph has run have made of a work tree.
type making struct{ found, made store.State }

// suite has commands run on the work tree as it is, or takes what they said of it;
// anew is for failures of an earlier time, which are not taken.
func (l *Loop) suite(ctx context.Context, commands []string, anew bool) (list []standing, made making, err error) {
	dir, err := l.baselineFolder()
	if err != nil {
		return nil, made, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if made.found, err = l.stateNow(ctx, dir); err != nil {
		return nil, made, err
	}
	made.made = made.found
	ran := false
	for _, command := range commands {
		s := standing{}
		if s.now, s.fresh, err = l.known(ctx, made.found.Content, command, dir, anew); err != nil || ctx.Err() != nil {
			return nil, made, err
		}
		ran = ran || s.fresh
		s.before = s.now
		base, err := l.base(ctx, made.found, command)
		if err != nil {
			return nil, made, err
		}
		if base != made.found {
			if s.before, err = l.beforeSessions(ctx, base, s.now); err != nil {
				return nil, made, err
			}
		}
		list = append(list, s)
	}
	if !ran {
		return list, made, nil
	}
	if made.made, err = l.stateNow(ctx, dir); err != nil || made.made == made.found {
		return list, made, err
	}
	// What they wrote themselves is no reason to run them again.
	results := make([]outcome, len(list))
	for i, s := range list {
		results[i] = s.now
	}
	return list, made, l.keep(ctx, made.made.Content, results)
}

// beforeSessions is what a command said of an earlier state, and what has failed
// since. If that is not known, nothing is excused.
func (l *Loop) beforeSessions(ctx context.Context, base store.State, now outcome) (before outcome, err error) {
	ok := false
	if err := l.Store.View(ctx, func(tx *store.Tx) error {
		ok, err = tx.Verification(base.Content, now.Check.Command, &before)
		return err
	}); err != nil {
		return before, err
	}
	if !ok {
		before = outcome{Check: now.Check}
		before.Check.Tail = ""
	}
	before.Left = broken(before, now)
	return before, nil
}

// broken names what fails now and did not before: tests, or the command where they
// have no names.
func broken(before, now outcome) []string {
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

// stateNow is the state of the work tree.
func (l *Loop) stateNow(ctx context.Context, scratch string) (s store.State, err error) {
	look, err := l.Tree.Look(ctx, scratch)
	if err == nil {
		s.Content = look.Digest()
		s.Committed, err = l.Tree.Committed(ctx, look.Head)
	}
	if err != nil {
		return s, untold(err)
	}
	return s, nil
}

// base is the state of the work tree whose failures of a command are no task's: the
// one that is there, unless a session left it whose done was not accepted; then the one
// that this session found, and so on. A done that was accepted without this command
// says nothing of it, as far as it is known what the command said before.
func (l *Loop) base(ctx context.Context, now store.State, command string) (base store.State, err error) {
	err = l.Store.View(ctx, func(tx *store.Tx) error {
		var accepted *store.State
		at, last := now, int64(0)
		for {
			left, ok, err := tx.LeftBy(at, last)
			if err != nil {
				return err
			}
			if !ok || left.Accepted && checked(left.Checks, command) {
				break
			}
			if left.Accepted && accepted == nil {
				found := at
				accepted = &found
			}
			at, last = left.Found, left.ID
		}
		base = at
		if accepted != nil {
			var result outcome
			known, err := tx.Verification(at.Content, command, &result)
			if err != nil {
				return err
			}
			if !known {
				base = *accepted
			}
		}
		return nil
	})
	return base, err
}

// checked reports whether a command was among the checks of a done.
func checked(checks []ralph.Check, command string) bool {
	return slices.ContainsFunc(checks, func(c ralph.Check) bool { return c.Command == command })
}

// keepMade notes that commands which ralph ran have changed the work tree: what
// they write makes nobody's leftovers people's.
func (l *Loop) keepMade(tx *store.Tx, m making) error {
	if m.made == m.found {
		return nil
	}
	return tx.KeepLeft(store.Left{State: m.made, Found: m.found})
}

// staleBaseline is how old a baseline's folder must be to be taken for one that a
// killed process left; each command has a time limit.
const staleBaseline = 24 * time.Hour

// baselineFolder is a new folder for one baseline: workers take theirs while the
// loop does. What killed processes left is removed.
func (l *Loop) baselineFolder() (string, error) {
	parent := filepath.Join(l.State, "baseline")
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
func (l *Loop) known(ctx context.Context, content, command, dir string, anew bool) (result outcome, ran bool, err error) {
	ok := false
	if err := l.Store.View(ctx, func(tx *store.Tx) error {
		ok, err = tx.Verification(content, command, &result)
		return err
	}); err != nil || ok && (!anew || l.excusable(result)) {
		return result, false, err
	}
	l.beat(stepTime + l.Verification.Timeout)
	results, err := l.Verification.run(ctx, l.baselineJob(dir), []string{command})
	if err != nil || ctx.Err() != nil {
		return result, true, err
	}
	return results[0], true, l.keep(ctx, content, results)
}

// baselineJob runs commands for no session.
func (l *Loop) baselineJob(dir string) job {
	return job{dir: l.Dir, marker: "RALPH_SESSION_ID=baseline-" + filepath.Base(dir) + "-" + l.State, log: filepath.Join(dir, "verify.log")}
}

// keep remembers what commands said of a state of the work tree.
func (l *Loop) keep(ctx context.Context, content string, results []outcome) error {
	return l.Store.Tx(ctx, func(tx *store.Tx) error {
		for _, r := range results {
			if err := tx.KeepVerification(content, r.Check.Command, r); err != nil {
				return err
			}
		}
		return nil
	})
}

// judge compares what a command says now with the baseline. Only a command of the
// project or the feature that reports its tests by name is ever excused, and only
// for tests that failed before (decision 1).
func judge(now outcome, before []outcome, shared []string, strict bool) ralph.Check {
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

// tests reads what a command reported of its tests: as go test -json on its
// output, which is in the log from begin on, or as JUnit XML in the files that it
// has written; before are those that were there when it was started. It is nil if
// it reported none.
func (v Verification) tests(dir string, log *os.File, begin int64, cut bool, before map[string]fs.FileInfo) (*testresult.Results, error) {
	end, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	results, err := testresult.ParseGoJSON(io.NewSectionReader(log, begin, end-begin))
	if err != nil {
		return nil, err
	}
	if results != nil && cut {
		results.Broken = "its output is longer than ralph keeps"
	}
	files, err := v.reports(dir)
	for _, f := range slices.Sorted(maps.Keys(files)) {
		if untouched(before[f], files[f]) {
			continue // it speaks for another command, or for another run
		}
		found, err := readReport(f)
		if err != nil {
			return nil, err
		}
		if results == nil {
			results = found
		} else {
			results.Merge(found)
		}
	}
	return results, err
}

// reports are the files of JUnit XML that there are, by their paths.
func (v Verification) reports(dir string) (map[string]fs.FileInfo, error) {
	files := map[string]fs.FileInfo{}
	for _, pattern := range v.JUnit {
		matches, err := doublestar.FilepathGlob(filepath.Join(escapeGlob(dir), filepath.FromSlash(pattern)), doublestar.WithFilesOnly())
		if err != nil {
			return nil, fmt.Errorf("verify.junit %q: %w", pattern, err)
		}
		for _, m := range matches {
			if info, err := os.Stat(m); err == nil {
				files[m] = info
			}
		}
	}
	return files, nil
}

// untouched tells whether a file has not been written between two looks at it.
// Where the file system keeps whole seconds, one that was written twice within one
// may count as untouched: the command then names no tests, and nothing is excused.
func untouched(before, now fs.FileInfo) bool {
	return before != nil && os.SameFile(before, now) && before.ModTime().Equal(now.ModTime()) && before.Size() == now.Size()
}

// escapeGlob makes a path a pattern of itself.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `{`, `\{`).Replace(path)
}

func readReport(path string) (results *testresult.Results, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return testresult.ParseJUnit(f)
}
