package session

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ralph"
	"ralph/loop/check"
	"ralph/loop/trial"
	"ralph/loop/workspace"
)

// hidden runs the hidden checks on a commit whose other checks have passed. It reports only their titles. Target is the
// commit to compare with in their trial; "" for none.
func (s *Session) hidden(ctx context.Context, f *finding, target, commit string, round check.Round) error {
	failed := func(c ralph.Check) bool { return !c.Passed }
	if len(s.Verify.Hidden) == 0 || ctx.Err() != nil || slices.ContainsFunc(f.checks, failed) {
		return nil
	}
	s.takes(s.Check.Longest(len(s.Verify.Hidden)))
	round.Log, round.Slow = filepath.Join(s.folder(), workspace.HiddenLog), nil // people see a slow command
	at := s.checker(round)
	at.Over = s.Check.HiddenFiles
	commands := make([]string, len(s.Verify.Hidden))
	for i, h := range s.Verify.Hidden {
		commands[i] = h.Command
	}
	results, err := s.verified(ctx, at, commit, commands, func(o check.Outcome) ralph.Check { return o.Check })
	if err != nil || ctx.Err() != nil {
		return err
	}
	for i, h := range s.Verify.Hidden {
		if i >= len(results) || !results[i].Check.Passed { // fewer: the set-up has failed
			f.evidence.Hidden = append(f.evidence.Hidden, h.Title)
		}
	}
	if target == "" || len(f.evidence.Hidden) > 0 || s.Check.Trial == "" || s.Check.Trial == check.TrialOff {
		return nil
	}
	return s.blind(ctx, f, at, target, commit)
}

// blind finds the hidden checks that pass with any expectation: all mutants of a check fail on the target, and none
// with the candidate.
func (s *Session) blind(ctx context.Context, f *finding, at *check.Checker, target, commit string) (err error) {
	over := at.Over
	at.Over, err = os.MkdirTemp(s.folder(), "hidden-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(at.Over)) }()
	left := s.Verify.Hidden // checks whose mutants have not failed yet
	for n := 0; n < trial.Rounds && len(left) > 0; n++ {
		changed, err := mutated(over, at.Over, s.Row.ID, n)
		if err != nil {
			return err
		}
		commands := map[string]string{} // the unchanged command, and one with another expectation
		var run []string
		for _, h := range left {
			c := trial.Read("command.sh", []byte(h.Command)).Mutant(s.Row.ID, n, nil)
			if c == nil && slices.ContainsFunc(changed, func(name string) bool { return strings.Contains(h.Command, name) }) {
				c = []byte(h.Command)
			}
			if c != nil {
				commands[h.Command] = string(c)
				run = append(run, string(c))
			}
		}
		ends := func(commit string, passed bool) error {
			if len(run) == 0 {
				return nil
			}
			results, err := at.Verify(ctx, commit, run)
			run = nil
			for _, r := range results {
				if r.Check.Passed == passed {
					run = append(run, r.Check.Command)
				}
			}
			return err
		}
		if err := errors.Join(ends(commit, true), ends(target, false)); err != nil || ctx.Err() != nil {
			return err
		}
		left = slices.DeleteFunc(slices.Clone(left), func(h ralph.Hidden) bool {
			c, ok := commands[h.Command]
			return !ok || !slices.Contains(run, c)
		})
	}
	for _, h := range left {
		f.evidence.Blind = append(f.evidence.Blind, h.Title)
	}
	return nil
}

// mutated copies the folder of hidden files with changed expectations, and returns the changed files.
func mutated(from, to, seed string, round int) (changed []string, err error) {
	if from == "" {
		return nil, nil
	}
	err = filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil || d.IsDir() {
			return errors.Join(err, os.MkdirAll(filepath.Join(to, name), 0o700))
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if c := trial.Read(name, content).Mutant(seed, round, nil); c != nil {
			content, changed = c, append(changed, name)
		}
		return os.WriteFile(filepath.Join(to, name), content, info.Mode().Perm())
	})
	return changed, err
}
