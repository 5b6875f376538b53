package session

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ralph"
	"ralph/loop/check"
	"ralph/loop/workspace"
)

// hidden runs the checks that no session sees on a commit whose other checks have passed. Only their titles are told.
func (s *Session) hidden(ctx context.Context, f *finding, commit string, round check.Round) error {
	failed := func(c ralph.Check) bool { return !c.Passed }
	if len(s.verify.Hidden) == 0 || ctx.Err() != nil || slices.ContainsFunc(f.checks, failed) {
		return nil
	}
	s.takes(time.Duration(len(s.verify.Hidden)) * s.Check.Timeout)
	round.Log, round.Slow = filepath.Join(s.folder(), workspace.HiddenLog), nil // people are shown a command that is slow
	at := s.apartIn(round)
	at.Over = s.Check.HiddenFiles
	commands := make([]string, len(s.verify.Hidden))
	for i, h := range s.verify.Hidden {
		commands[i] = h.Command
	}
	results, err := at.Verify(ctx, commit, commands)
	if err != nil || ctx.Err() != nil {
		return err
	}
	for i, h := range s.verify.Hidden {
		if i >= len(results) || !results[i].Check.Passed { // fewer: the set-up has failed
			f.evidence.Hidden = append(f.evidence.Hidden, h.Title)
		}
	}
	return nil
}

// laid copies the folder from over the folder to. undo removes what it laid there: the next commit that is checked
// out there brings back what was covered.
func laid(from, to string) (undo func() error, err error) {
	var names []string
	undo = func() (err error) {
		for _, name := range slices.Backward(names) {
			err = errors.Join(err, os.Remove(filepath.Join(to, name)))
		}
		return err
	}
	root, err := os.OpenRoot(to) // a link in the candidate leads nowhere else
	if err != nil {
		return undo, err
	}
	defer root.Close() //nolint:errcheck // it was only written through
	err = filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil || d.IsDir() {
			return errors.Join(err, root.MkdirAll(name, 0o700))
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := root.RemoveAll(name); err != nil {
			return err
		}
		names = append(names, name)
		return root.WriteFile(name, text, info.Mode().Perm())
	})
	return undo, err
}
