package session

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"

	"ralph/loop/agent"

	"ralph"
	"ralph/signals"
	"ralph/store"
)

// Settle looks at what the session left behind, decides, and writes the decision
// down, in one transaction. The error is the database's.
func (s *Session) Settle(ctx context.Context, report agent.Report) (d signals.Decision, err error) {
	// A look would make the folders anew that were taken away.
	if err := s.Store.Intact(); err != nil {
		return d, err
	}
	s.take(report)
	// What was said is settled even if ctx has ended meanwhile; only the
	// verification, which may take long, ends with it.
	keep := context.WithoutCancel(ctx)
	saw := s.observe(ctx)
	left := s.leaves(keep, saw)
	err = s.Store.Tx(keep, func(tx *store.Tx) error {
		if s.Row.Worker != "" && s.Row.Ending == ralph.Lost {
			// Its worker may have called while the claim was looked at.
			if err := tx.CheckLapsed(s.Row.ID); err != nil {
				return err
			}
		}
		f, err := tx.Facts(s.Row.ID)
		if err != nil {
			return err
		}
		f.Ending, f.EndingWhy, f.Changed, f.Rules = s.Row.Ending, report.Reason, s.changed.any(), s.Rules
		f.Verify, f.Protected, f.Untouched = saw.checks, saw.protected, !s.changed.workTree
		f.Evidence = saw.evidence
		f.Evidence.Killed = killedCommands(s.Row.Leftovers)
		f.Confirmed = s.confirmed || s.doubted != 0 && signals.Closing(f.Said).ID > s.doubted
		f.Unchecked, f.Unseen = saw.unchecked, saw.unseen
		if saw.stopped != "" {
			f.Void, f.EndingWhy = true, saw.stopped
		}
		if saw.blind {
			f.Changed, f.Untouched = true, false // what cannot be seen is not held against it
		}
		d = signals.Decide(f)
		if s.Row.Origin != ralph.FromHuman { // people stand for what they do with a chat
			if s.Row.Notes, err = s.Check.Leave(tx, s.Row.ID, saw.left, d.Accepted); err != nil {
				return err
			}
		}
		if s.Row.Ending != ralph.Finished && (d.Closing == "" || d.Inferred) {
			if err := s.checkpoint(tx); err != nil {
				return err
			}
		}
		if err := tx.Apply(s.Row, f, d); err != nil {
			return err
		}
		if err := s.keepLeft(tx, left, d.Accepted); err != nil || !s.reopened {
			return err
		}
		return tx.TryNow(s.Row.TaskID) // until somebody came to settle it was wait enough
	})
	if err != nil {
		return d, err
	}
	if err := s.Check.PutBack(keep); err != nil {
		// Whoever begins the next session is told, and does not begin it.
		s.Log.Warn("what a session changed of what is people's stays", "session", s.Row.ID, "error", err)
	}
	if err := s.afterFailure(keep, saw, d); err != nil {
		s.Log.Warn("what a session left that failed stays as it is", "session", s.Row.ID, "error", err)
	}
	if err := errors.Join(os.RemoveAll(s.scratch()), os.RemoveAll(s.idleScratch())); err != nil {
		s.Log.Warn("what a session's snapshots took cannot be removed", "session", s.Row.ID, "error", err)
	}
	return d, nil
}

// checkpoint keeps where a session stood that ended in the middle. A person's says
// so itself: what its chat reported last stands.
func (s *Session) checkpoint(tx *store.Tx) error {
	c := ralph.Checkpoint{SessionID: s.Row.ID, Source: ralph.CheckpointEnd, Note: s.Row.LastWords}
	if s.Row.Origin == ralph.FromHuman {
		list, err := tx.Checkpoints(s.Row.ID)
		if err != nil {
			return err
		}
		p := s.Row.Progress
		if len(list) > 0 {
			last := list[len(list)-1]
			if p == nil || !last.Created.Before(p.Timestamp.Time) {
				return nil
			}
			c.Completed, c.Remaining = last.Completed, last.Remaining
		}
		if p != nil {
			c.Iteration, c.Note, c.TokensUsed, c.TokensLimit = p.Iteration, p.Notes, p.TokensUsed, p.TokensLimit
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
func (s *Session) take(r agent.Report) {
	s.Row.Ending, s.Row.Turns, s.Row.Tokens, s.Row.Exit = r.Ending, r.Turns, r.Tokens, r.Exit
	s.Row.LastWords, s.Row.StderrTail, s.Row.Denials = r.LastWords, r.StderrTail, r.Denials
	s.Row.Leftovers = slices.Concat(s.killed, r.Leftovers)
	if r.Model != "" {
		s.Row.Model = r.Model
	}
	s.Row.CostUSD, s.Row.CostKnown = charge(r, s.Limits.CostUSD)
}

// charge is what a session is charged, and whether that is all that it cost: what
// its agent reported; else what the streamed usage comes to; else, where it may have
// called its model, the session's own limit, for an unknown cost is never taken for
// zero (decision 18). An agent that never came that far cost nothing.
func charge(r agent.Report, limit float64) (usd float64, known bool) {
	switch {
	case r.CostKnown:
		return r.CostUSD, true
	case r.CostUSD > 0:
		return r.CostUSD, false
	case !r.Began:
		return 0, true
	}
	return limit, false
}

// leaves is what the session found and what it leaves, for the baselines of others
// (trust, 10). Where that cannot be seen it is not known who left what is there: a
// warning says so, and the session has an end all the same.
func (s *Session) leaves(ctx context.Context, saw observation) (left *store.Left) {
	if saw.blind || s.left.WorkTree == "" {
		return nil
	}
	left = &store.Left{Session: s.Row.ID}
	left.State.Content, left.Found.Content = s.left.WorkTree, s.began.Digest()
	var err error
	if left.State.Committed, err = s.Place.Tree.Committed(ctx, s.left.Head); err == nil {
		left.Found.Committed, err = s.Place.Tree.Committed(ctx, s.began.Head)
	}
	if err != nil {
		s.Log.Warn("what a session left cannot be told from what people leave", "session", s.Row.ID, "error", err)
		return nil
	}
	return left
}

// keepLeft notes it. A session that left what it found has made nothing its own,
// unless its done was accepted.
func (s *Session) keepLeft(tx *store.Tx, left *store.Left, accepted bool) error {
	if left == nil || left.State == left.Found && !accepted {
		return nil
	}
	left.Accepted = accepted
	return tx.KeepLeft(*left)
}
