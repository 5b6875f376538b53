package loop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

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
	saw := s.observe(ctx)
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
		f.Unchecked, f.Unseen = saw.unchecked, saw.unseen
		if saw.stopped != "" {
			f.Void, f.EndingWhy = true, saw.stopped
		}
		if saw.blind {
			f.Changed, f.Untouched = true, false // what cannot be seen is not held against it
		}
		if saw.digests != nil {
			if err := s.keepProtected(tx, saw); err != nil {
				return err
			}
		}
		d = signals.Decide(f)
		if s.row.Ending != ralph.Finished && (d.Closing == "" || d.Inferred) {
			if err := s.checkpoint(tx); err != nil {
				return err
			}
		}
		if err := tx.Apply(s.row, f, d); err != nil || !s.reopened {
			return err
		}
		return tx.TryNow(s.row.TaskID) // until somebody came to settle it was wait enough
	})
	if err != nil {
		return d, 0, err
	}
	if err := errors.Join(os.RemoveAll(s.scratch()), os.RemoveAll(s.idleScratch())); err != nil {
		s.Log.Warn("what a session's snapshots took cannot be removed", "session", s.row.ID, "error", err)
	}
	return d, s.row.CostUSD, nil
}

// An observation is what a work tree shows of a session when it is settled. What
// could not be looked at is a fact like any other: nothing keeps a session from
// being settled but the database.
type observation struct {
	blind     bool   // it cannot be told whether anything was changed
	unchecked string // why its done could not be checked; "" if it was, or there is none
	stopped   string // the same, where a person or another machine is the reason

	unseen  []string          // what else could not be looked at, each with the reason
	digests map[string]string // of the protected files; nil if they are not here
	hidden  map[string]string // those of them that could not be read, with the reason
}

// missed notes what could not be looked at.
func (o *observation) missed(what string, err error) {
	o.unseen = append(o.unseen, fmt.Sprintf("%s (%s)", what, shortly(err)))
}

// observe looks at what the session left behind and has its done checked.
func (s *session) observe(ctx context.Context) (saw observation) {
	keep := context.WithoutCancel(ctx)
	done, err := s.claimed(keep)
	if err != nil {
		saw.unchecked = "what the session signalled cannot be read: " + shortly(err)
	}
	if s.row.Dir != "" && s.row.Dir != s.Dir {
		// The checks would say something of the work tree here, and not of that one.
		if done {
			saw.stopped = "lost before its done was accepted, which can only be checked where it worked, in another work tree: " + s.row.Dir
		}
		saw.blind = true
		return saw
	}
	after, err := s.Tree.Look(keep, s.scratch())
	if err == nil {
		_, err = s.compareWith(keep, after)
	}
	if err != nil {
		saw.blind = true
		saw.missed("the work tree", err)
	}
	if done && saw.unchecked == "" {
		s.checkClaim(ctx, &saw)
	}
	if !saw.blind {
		if err := s.takeChanges(keep, after); err != nil {
			saw.missed("which files were changed", err)
		}
	}
	saw.digests, saw.hidden = digestProtected(s.Dir, s.Verification.Protect)
	if err := s.lostWork(keep); err != nil {
		saw.missed("whether files are gone that were not committed", err)
	}
	for _, what := range saw.unseen {
		s.Log.Warn("a session is settled without what could not be looked at", "session", s.row.ID, "task", s.row.TaskID, "what", what)
	}
	return saw
}

// answer is [session.turnEnded] for which nothing is an error: what could not be
// checked ends the conversation, and is tried once more when the session is settled.
func (s *session) answer(ctx context.Context) (string, error) {
	said, err := s.turnEnded(ctx)
	if err == nil {
		return said, nil
	}
	if ctx.Err() == nil {
		s.Log.Warn("what a session claims cannot be checked", "session", s.row.ID, "task", s.row.TaskID, "error", err)
	}
	s.checked = false
	return "", nil
}

// claimed reports whether the session was closed by a done.
func (s *session) claimed(ctx context.Context) (bool, error) {
	closing, err := s.closing(ctx)
	return err == nil && closing.Payload != nil && closing.Payload.Verb() == ralph.VerbDone, err
}

// shortly is an error on one line, of a length that fits into a verdict.
func shortly(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if len(text) > 300 {
		text = strings.ToValidUTF8(text[:300], "") + "…"
	}
	return text
}

// keepProtected notes how the session left the protected files.
func (s *session) keepProtected(tx *store.Tx, saw observation) error {
	known, err := s.protectedFiles(tx)
	if err != nil {
		return err
	}
	return tx.KeepProtectedFiles(farewell(known, assumed(known, saw.digests, saw.hidden)))
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

// take notes what the agent reported.
func (s *session) take(r Report) {
	s.row.Ending, s.row.Turns, s.row.Tokens, s.row.Exit = r.Ending, r.Turns, r.Tokens, r.Exit
	s.row.LastWords, s.row.StderrTail, s.row.Denials, s.row.Leftovers = r.LastWords, r.StderrTail, r.Denials, r.Leftovers
	if r.Model != "" {
		s.row.Model = r.Model
	}
	s.row.CostUSD, s.row.CostKnown = charge(r, s.maxCost)
}

// checkClaim verifies a done that the agent's last turn has not been verified
// for yet. A claim that could not be checked, for whatever reason, is not judged.
func (s *session) checkClaim(ctx context.Context, saw *observation) {
	switch {
	case s.checked:
	case ctx.Err() != nil && len(s.verify.all()) == 0:
		// Nothing would be run: only the protected files have a say.
		if err := s.checkProtected(context.WithoutCancel(ctx)); err != nil {
			saw.unchecked = "the done could not be checked: " + shortly(err)
		}
	default:
		if ctx.Err() == nil {
			if err := s.check(ctx); err != nil {
				saw.unchecked = "the done could not be checked: " + shortly(err)
			}
		}
		if ctx.Err() != nil && len(s.verify.all()) > 0 {
			saw.stopped = "the run was stopped before the claim could be checked"
		}
	}
	s.row.Verify = s.checks
	if len(s.hiding) > 0 {
		saw.unchecked = "the done could not be checked: it cannot be told whether protected files were changed in " + strings.Join(s.hiding, ", ")
	}
	if saw.blind && saw.unchecked == "" {
		saw.unchecked = "the done could not be checked: " + saw.unseen[0]
	}
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
	// Where what the session began with is gone, as after a power cut, it is known by
	// the hashes that it changed something, and not which files.
	s.row.Unchanged = s.changed.missing()
	var err error
	s.row.Files, s.row.Commits, err = s.Tree.Changes(ctx, before, after, s.scratch())
	return err
}
