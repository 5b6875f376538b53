package loop

import (
	"context"
	"errors"
	"fmt"
	"os"

	"ralph"
	"ralph/internal/worktree"
	"ralph/signals"
	"ralph/store"
)

// settle reads what the session left behind, decides, and writes the decision
// down, in one transaction. It returns what the session was charged.
func (s *session) settle(ctx context.Context, report Report) (d signals.Decision, cost float64, err error) {
	s.take(report)
	// What was said is settled even if ctx has ended meanwhile; only the
	// verification, which may take long, ends with it.
	keep := context.WithoutCancel(ctx)
	saw, err := s.observe(ctx)
	if err != nil {
		return d, 0, err
	}
	err = s.Store.Tx(keep, func(tx *store.Tx) error {
		if s.row.Worker != "" && s.row.Ending == ralph.Lost {
			// Its worker may have called while the claim was looked at.
			if err := tx.CheckLapsed(s.row.ID); err != nil {
				return err
			}
		}
		f, err := tx.Facts(s.row.ID)
		if err != nil {
			return err
		}
		f.Ending, f.EndingWhy, f.Changed, f.Rules = s.row.Ending, report.Reason, s.changed.any(), s.Rules
		f.Verify, f.Protected, f.Untouched = s.row.Verify, s.protected, !s.changed.workTree
		f.Confirmed = s.confirmed || s.doubted != 0 && signals.Closing(f.Said).ID > s.doubted
		if saw.unchecked != "" {
			f.Void, f.EndingWhy = true, saw.unchecked
		}
		if saw.elsewhere {
			f.Changed, f.Untouched = true, false // what cannot be seen is not held against it
		}
		d = signals.Decide(f)
		if err := s.leaveTaking(tx, saw, d); err != nil {
			return err
		}
		if s.row.Ending != ralph.Finished && (d.Closing == "" || d.Inferred) {
			if err := s.checkpoint(tx); err != nil {
				return err
			}
		}
		return tx.Apply(s.row, f, d)
	})
	if err != nil {
		return d, 0, err
	}
	if err := s.putBack(keep); err != nil {
		// Whoever begins the next session is told, and does not begin it.
		s.Log.Warn("what a session changed of what is people's stays", "session", s.row.ID, "error", err)
	}
	return d, s.row.CostUSD, errors.Join(os.RemoveAll(s.scratch()), os.RemoveAll(s.idleScratch()))
}

// An observation is what a work tree shows of a session when it is settled.
type observation struct {
	elsewhere bool              // the session worked in another work tree, so that nothing can be seen of it here
	unchecked string            // why its done could not be checked; "" if it was, or there is none
	protected map[string]string // digests of the protected files
	config    map[string]string // digests of the files that configure runs
}

// observe looks at what the session left behind and has its done checked.
func (s *session) observe(ctx context.Context) (saw observation, err error) {
	keep := context.WithoutCancel(ctx)
	if s.row.Dir != "" && s.row.Dir != s.Dir {
		// The checks would say something of the work tree here, and not of that one.
		closing, err := s.closing(keep)
		if err == nil && closing.Payload != nil && closing.Payload.Verb() == ralph.VerbDone {
			saw.unchecked = "lost before its done was accepted, which can only be checked where it worked, in another work tree: " + s.row.Dir
		}
		saw.elsewhere = true
		if err == nil {
			saw.config, err = s.digestConfiguration(s.row.Dir, nil)
		}
		return saw, err
	}
	after, err := s.Tree.Look(keep, s.scratch())
	if err != nil {
		return saw, fmt.Errorf("state of the work tree: %w", err)
	}
	if _, err := s.compareWith(keep, after); err != nil {
		return saw, err
	}
	unchecked, err := s.checkClaim(ctx)
	if err != nil {
		return saw, err
	}
	if unchecked {
		saw.unchecked = "the run was stopped before the claim could be checked"
	}
	if err := s.takeChanges(keep, after); err != nil {
		return saw, err
	}
	if saw.protected, err = digestProtected(s.Dir, s.Verification.Protect); err != nil {
		return saw, err
	}
	if saw.config, err = s.digestConfiguration(s.Dir, s.row.Files); err != nil {
		return saw, err
	}
	return saw, s.lostWork(keep)
}

// checkpoint keeps where a session stood that ended in the middle. A person's says
// so itself: what its chat reported last stands.
func (s *session) checkpoint(tx *store.Tx) error {
	c := ralph.Checkpoint{SessionID: s.row.ID, Source: ralph.CheckpointEnd, Note: s.row.LastWords}
	if s.row.Origin == ralph.FromHuman {
		list, err := tx.Checkpoints(s.row.ID)
		if err != nil || len(list) > 0 && (s.row.Progress == nil || !list[len(list)-1].Created.Before(s.row.Progress.Timestamp.Time)) {
			return err
		}
		if p := s.row.Progress; p != nil {
			c.Iteration, c.Note, c.TokensUsed, c.TokensLimit = p.Iteration, p.Notes, p.TokensUsed, p.TokensLimit
		}
		if len(list) > 0 {
			c.Completed, c.Remaining = list[len(list)-1].Completed, list[len(list)-1].Remaining
		}
	}
	if s.observer != nil { // a lost session has none
		c.TokensUsed, c.TokensLimit = s.observer.context()
	}
	_, err := tx.AddCheckpoint(c)
	return err
}

// take notes what the agent reported. A session without any word on its cost is
// charged its own limit: an unknown cost is never taken for zero (decision 18).
func (s *session) take(r Report) {
	s.row.Ending, s.row.Turns, s.row.Tokens, s.row.Exit = r.Ending, r.Turns, r.Tokens, r.Exit
	s.row.LastWords, s.row.StderrTail, s.row.Denials, s.row.Leftovers = r.LastWords, r.StderrTail, r.Denials, r.Leftovers
	if r.Model != "" {
		s.row.Model = r.Model
	}
	s.row.CostUSD, s.row.CostKnown = r.CostUSD, r.CostKnown
	if !r.CostKnown && r.CostUSD <= 0 {
		s.row.CostUSD = s.maxCost
	}
}

// checkClaim verifies a done that the agent's last turn has not been verified
// for yet. A claim that could not be checked, because the run is stopped at once,
// is not judged.
func (s *session) checkClaim(ctx context.Context) (unchecked bool, err error) {
	closing, err := s.closing(context.WithoutCancel(ctx))
	if err != nil || closing.Payload == nil || closing.Payload.Verb() != ralph.VerbDone {
		return false, err
	}
	if !s.checked {
		if ctx.Err() != nil {
			return len(s.verify.all()) > 0, s.checkProtected(context.WithoutCancel(ctx))
		}
		if err := s.check(ctx); err != nil {
			return false, err
		}
	}
	s.row.Verify = s.checks
	return ctx.Err() != nil && !s.checked && len(s.checks) > 0, nil
}

// takeChanges notes what the session changed since its start, whatever it did with git.
func (s *session) takeChanges(ctx context.Context, after worktree.Snapshot) error {
	var before worktree.Snapshot
	var started hashes
	if err := s.Store.View(ctx, func(tx *store.Tx) error {
		_, err := tx.Beginning(s.row.ID, &before, &started)
		return err
	}); err != nil {
		return err
	}
	var err error
	if s.row.Files, s.row.Commits, err = s.Tree.Changes(ctx, before, after, s.scratch()); err != nil {
		// What the session began with is gone, as after a power cut. That it changed
		// something is known by the hashes; which files is not, and no reason to
		// leave the session without an end.
		s.Log.Warn("the files that a session changed are not known", "session", s.row.ID, "error", err)
	}
	s.row.Unchanged = s.changed.missing()
	return nil
}
