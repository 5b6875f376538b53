package loop

import (
	"cmp"
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"

	"ralph/loop/agent"

	"ralph"
	"ralph/signals"
	"ralph/store"
)

// settle reads what the session left behind, decides, and writes the decision
// down, in one transaction. It returns what the session was charged.
func (s *session) settle(ctx context.Context, report agent.Report) (d signals.Decision, cost float64, err error) {
	// A look would make the folders anew that were taken away.
	if err := s.Store.Intact(); err != nil {
		return d, 0, err
	}
	s.take(report)
	// What was said is settled even if ctx has ended meanwhile; only the
	// verification, which may take long, ends with it.
	keep := context.WithoutCancel(ctx)
	saw := s.observe(ctx)
	left := s.leaves(keep, saw)
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
		f.Verify, f.Protected, f.Untouched = saw.checks, saw.protected, !s.changed.workTree
		f.Evidence = saw.evidence
		f.Evidence.Killed = killedCommands(s.row.Leftovers)
		f.Confirmed = s.confirmed || s.doubted != 0 && signals.Closing(f.Said).ID > s.doubted
		f.Unchecked, f.Unseen = saw.unchecked, saw.unseen
		if saw.stopped != "" {
			f.Void, f.EndingWhy = true, saw.stopped
		}
		if saw.blind {
			f.Changed, f.Untouched = true, false // what cannot be seen is not held against it
		}
		d = signals.Decide(f)
		if s.row.Origin != ralph.FromHuman { // people stand for what they do with a chat
			notes, err := s.verifier().Leave(tx, s.row.ID, saw.left, d.Accepted)
			if err != nil {
				return err
			}
			s.row.Notes = notes
		}
		if s.row.Ending != ralph.Finished && (d.Closing == "" || d.Inferred) {
			if err := s.checkpoint(tx); err != nil {
				return err
			}
		}
		if err := tx.Apply(s.row, f, d); err != nil {
			return err
		}
		if err := s.keepLeft(tx, left, d.Accepted); err != nil || !s.reopened {
			return err
		}
		return tx.TryNow(s.row.TaskID) // until somebody came to settle it was wait enough
	})
	if err != nil {
		return d, 0, err
	}
	if err := s.verifier().PutBack(keep); err != nil {
		// Whoever begins the next session is told, and does not begin it.
		s.Log.Warn("what a session changed of what is people's stays", "session", s.row.ID, "error", err)
	}
	if err := s.afterFailure(keep, saw, d); err != nil {
		s.Log.Warn("what a session left that failed stays as it is", "session", s.row.ID, "error", err)
	}
	if err := errors.Join(os.RemoveAll(s.scratch()), os.RemoveAll(s.idleScratch())); err != nil {
		s.Log.Warn("what a session's snapshots took cannot be removed", "session", s.row.ID, "error", err)
	}
	return d, s.row.CostUSD, nil
}

// An observation is what is seen of a session when it is settled. What could not be
// looked at is a fact like any other: nothing keeps a session from being settled but
// the database.
type observation struct {
	finding
	blind     bool   // it cannot be told whether anything was changed
	unchecked string // why its done could not be checked; "" if it was, or there is none
	stopped   string // the same, where a person or another machine is the reason
}

// observe looks at what the session left behind and has its done checked, unless that
// was done while the agent stood still.
func (s *session) observe(ctx context.Context) (saw observation) {
	keep := context.WithoutCancel(ctx)
	done, err := s.claimed(keep)
	if err != nil {
		saw.unchecked = "what the session signalled cannot be read: " + shortly(err)
	}
	if s.row.Dir != "" && s.row.Dir != s.Place.Dir {
		// The checks would say something of the work tree here, and not of that one.
		if done {
			saw.stopped = "lost before its done was accepted, which can only be checked where it worked, in another work tree: " + s.row.Dir
		}
		saw.blind, saw.left.Configuration = true, s.verifier().Configured(s.row.Dir, nil)
		return saw
	}
	found := s.found
	if found == nil && done && s.called == nil && ctx.Err() == nil {
		if found, err = s.check(ctx); err != nil && ctx.Err() == nil {
			saw.unchecked = uncheckable + shortly(err)
		}
	}
	if s.found == nil && done && (s.called != nil || ctx.Err() != nil) && len(s.verify.All()) > 0 {
		saw.stopped = cmp.Or(s.called, errRunStop).Error() + " before the claim could be checked"
	}
	if found == nil {
		if found, _, _, err = s.inspect(keep); err != nil {
			found = &finding{}
			found.left = s.verifier().Look()
			saw.blind = true
			found.missed("the work tree", err)
		}
	}
	saw.finding = *found
	if done && len(saw.hiding) > 0 {
		saw.unchecked = uncheckable + "it cannot be told whether protected files were changed in " + strings.Join(saw.hiding, ", ")
	}
	if done && saw.blind && saw.unchecked == "" {
		saw.unchecked = uncheckable + saw.unseen[0]
	}
	s.row.Verify, s.row.Files, s.row.Commits = saw.checks, saw.files, saw.commits
	if !saw.blind {
		s.row.Unchanged = s.changed.missing()
	}
	if err := s.lostWork(keep); err != nil {
		saw.missed("whether files are gone that were not committed", err)
	}
	saw.left.Configuration = s.verifier().Configured(s.Place.Dir, s.row.Files)
	for _, what := range saw.unseen {
		s.Log.Warn("a session is settled without what could not be looked at", "session", s.row.ID, "task", s.row.TaskID, "what", what)
	}
	return saw
}

// uncheckable begins the reason why a done is not judged.
const uncheckable = "the done could not be checked: "

// claimed reports whether the session was closed by a done.
func (s *session) claimed(ctx context.Context) (bool, error) {
	closing, err := s.closing(ctx)
	return err == nil && closing.Payload != nil && closing.Payload.Verb() == ralph.VerbDone, err
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

// leftover is a process as it is listed, with its number before its command.
var leftover = regexp.MustCompile(`^\d+:? (.+)`)

// killedCommands are the commands of the processes among what a session left.
func killedCommands(leftovers []string) (list []string) {
	for _, l := range leftovers {
		if m := leftover.FindStringSubmatch(l); m != nil {
			list = append(list, m[1])
		}
	}
	return list
}

// take notes what the agent reported.
func (s *session) take(r agent.Report) {
	s.row.Ending, s.row.Turns, s.row.Tokens, s.row.Exit = r.Ending, r.Turns, r.Tokens, r.Exit
	s.row.LastWords, s.row.StderrTail, s.row.Denials, s.row.Leftovers = r.LastWords, r.StderrTail, r.Denials, slices.Concat(s.killed, r.Leftovers)
	if r.Model != "" {
		s.row.Model = r.Model
	}
	s.row.CostUSD, s.row.CostKnown = charge(r, s.maxCost)
}
