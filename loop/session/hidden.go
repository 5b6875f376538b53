package session

import (
	"context"
	"path/filepath"
	"slices"

	"ralph"
	"ralph/loop/check"
	"ralph/loop/workspace"
)

// hidden runs the checks that no session sees on a commit whose other checks have passed. Only their titles are told.
func (s *Session) hidden(ctx context.Context, f *finding, commit string, round check.Round) error {
	failed := func(c ralph.Check) bool { return !c.Passed }
	if len(s.Verify.Hidden) == 0 || ctx.Err() != nil || slices.ContainsFunc(f.checks, failed) {
		return nil
	}
	s.takes(s.Check.Longest(len(s.Verify.Hidden)))
	round.Log, round.Slow = filepath.Join(s.folder(), workspace.HiddenLog), nil // people are shown a command that is slow
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
	return nil
}
