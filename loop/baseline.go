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
}

// baseline has the project's and the feature's commands run before the first
// session of a task, or takes what they said of the same work tree before
// (pipeline, "Verification"). It does nothing for a task that has been worked on.
func (l *Loop) baseline(ctx context.Context, task ralph.Task) (err error) {
	var shared []string
	begun := false
	err = l.Store.View(ctx, func(tx *store.Tx) error {
		c, err := l.verifyCommands(tx, task)
		if err != nil {
			return err
		}
		shared = c.shared
		earlier, err := tx.Sessions(store.SessionFilter{Task: task.ID, Limit: 1})
		begun = len(earlier) > 0
		return err
	})
	if err != nil || begun || len(shared) == 0 {
		return err
	}
	dir, err := l.baselineFolder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	snapshot, err := l.Tree.Look(ctx, dir)
	if err != nil {
		return fmt.Errorf("state of the work tree: %w", err)
	}
	results := make([]outcome, 0, len(shared))
	for _, command := range shared {
		result, err := l.known(ctx, snapshot.Digest(), command, dir)
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return nil // a command that was stopped says nothing
		}
		results = append(results, result)
	}
	return l.Store.Tx(ctx, func(tx *store.Tx) error {
		if red := l.inexcusable(results); red != "" {
			if err := tx.NoteRed(task.ID, red); err != nil {
				return err
			}
		}
		return tx.SetBaseline(task.ID, results)
	})
}

// inexcusable says which commands fail before any work and will not be excused, so
// that they refuse every done until somebody mends them; "" if none does.
func (l *Loop) inexcusable(results []outcome) string {
	var red []ralph.Check
	for _, r := range results {
		if !r.Check.Passed && (r.Tests == nil || l.Verification.Strict) {
			red = append(red, r.Check)
		}
	}
	return signals.Refused(red, nil, l.Rules)
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

// known is what a command says of a state of the work tree.
func (l *Loop) known(ctx context.Context, content, command, dir string) (result outcome, err error) {
	ok := false
	if err := l.Store.View(ctx, func(tx *store.Tx) error {
		ok, err = tx.Verification(content, command, &result)
		return err
	}); err != nil || ok {
		return result, err
	}
	l.beat(stepTime + l.Verification.Timeout)
	results, err := l.Verification.run(ctx, job{dir: l.Dir, marker: "RALPH_SESSION_ID=baseline-" + filepath.Base(dir) + "-" + l.State, log: filepath.Join(dir, "verify.log")}, []string{command})
	if err != nil || ctx.Err() != nil {
		return result, err
	}
	return results[0], l.keep(ctx, content, results)
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
