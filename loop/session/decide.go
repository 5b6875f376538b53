package session

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ralph"
	"ralph/internal/lazy"
	"ralph/loop/agent"
	"ralph/signals"
	"ralph/store"
)

// Decide inspects the work of the session, decides, and stores the decision in one transaction. The error is the
// database's, or wraps [ErrSettled].
func (s *Session) Decide(ctx context.Context, report agent.Report) (d signals.Decision, err error) {
	// A scan would create the removed folders again.
	if err := s.Store.Intact(); err != nil {
		return d, err
	}
	if err := s.take(report); err != nil {
		return d, err
	}
	if s.Task.Role == ralph.RolePlan {
		return s.decidePlan(ctx, report)
	}
	// Signals are processed even if ctx has ended. Only the verification,
	// which may take long, ends with it.
	detached := context.WithoutCancel(ctx)
	saw := s.observe(ctx)
	s.handOver(detached, &saw)
	err = s.Store.Tx(detached, func(tx *store.Tx) error {
		if s.Row.Worker != "" && s.Row.Ending == ralph.Lost {
			// The worker may have called while the claim was being checked.
			if err := tx.CheckLapsed(s.Row.ID); err != nil {
				return err
			}
		}
		f, err := s.facts(tx, &saw)
		if err != nil {
			return err
		}
		f.Ending, f.EndingWhy, f.Merges = s.Row.Ending, report.Reason, s.Row.Change != nil
		if s.Row.Change != nil {
			f.Head = s.Row.Change.Head
		}
		f.Evidence.Killed = killedCommands(s.Row.Leftovers)
		f.Unchecked = saw.unchecked
		if saw.stopped != "" {
			f.Void, f.EndingWhy = true, saw.stopped
		}
		d = signals.Decide(f)
		if s.Row.Ending != ralph.Finished && (d.Closing == "" || d.Inferred) {
			if err := s.checkpoint(tx); err != nil {
				return err
			}
		}
		if err := tx.Apply(s.Row, f, d); err != nil {
			return err
		}
		if !s.reopened {
			return nil
		}
		return tx.TryNow(s.Row.TaskID) // it has waited long enough for this decision
	})
	if errors.Is(err, ralph.ErrConflict) {
		err = s.bookSettled(detached, err)
	}
	if err != nil && !errors.Is(err, ErrSettled) {
		return d, err
	}
	if s.Workspace.Clone != nil && saw.made.Head != "" {
		if err := s.Workspace.NoteAs(detached, saw.at); err != nil {
			s.Log.Warn("cannot note that a workspace's work is saved; it will be saved again", "session", s.Row.ID, "error", err)
		}
	}
	if rerr := errors.Join(os.RemoveAll(s.scratch()), os.RemoveAll(s.idleScratch())); rerr != nil {
		s.Log.Warn("cannot remove a session's temporary snapshots", "session", s.Row.ID, "error", rerr)
	}
	return d, err
}

// facts reads the session's facts from the database, and adds the findings about its work.
func (s *Session) facts(tx *store.Tx, saw *observation) (f signals.Facts, err error) {
	if f, err = tx.Facts(s.Row.ID); err != nil {
		return f, err
	}
	f.Rules, f.Told, f.Vouched = s.Rules, s.replies, s.confirmed
	f.Worker, f.Cloned = s.Row.Worker != "", s.Workspace.Clone != nil
	f.Changed, f.Carries = s.changed.any(), s.carries(&saw.finding)
	f.Untouched = !s.changed.workTree || s.onlyDebris(&saw.finding)
	if saw.blind {
		f.Changed, f.Untouched = true, false // do not count the unknown against it
	}
	f.Protected, f.Evidence, f.Unseen = saw.protected, saw.evidence, saw.unseen
	f.Conflict, f.Conflicts, f.Marks, f.Moved = saw.conflict, saw.conflicts, saw.marks, saw.moved
	for _, c := range saw.checks {
		c.Tail = "" // no decision depends on the output, and the session has it
		f.Verify = append(f.Verify, c)
	}
	row, err := tx.Session(s.Row.ID)
	f.Evidence.Strangers = row.Strangers
	return f, err
}

// checkpoint records the state of a session that ended midway. For a person's session it prefers the chat's last
// report.
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
	if s.observer != nil { // a lost session has no observer
		c.TokensUsed, c.TokensLimit = s.observer.context()
	}
	_, err := tx.AddCheckpoint(c)
	return err
}

// leftover matches a process in a list: its pid before its command.
var leftover = lazy.Regexp(`^\d+:? (.+)`)

// killedCommands returns the commands of the killed processes in a session's leftovers.
func killedCommands(leftovers []string) (list []string) {
	for _, l := range leftovers {
		if m := leftover().FindStringSubmatch(l); m != nil {
			list = append(list, m[1])
		}
	}
	return list
}

// take copies the agent's report into the row, with secrets in the command lines of its processes masked.
func (s *Session) take(r agent.Report) error {
	s.Row.Ending, s.Row.Turns, s.Row.Tokens, s.Row.Exit = r.Ending, r.Turns, r.Tokens, r.Exit
	s.Row.LastWords, s.Row.StderrTail, s.Row.Denials = r.LastWords, r.StderrTail, r.Denials
	s.Row.Leftovers = slices.Concat(s.killed, r.Leftovers)
	s.Row.AgentVersion = r.Version
	if r.Model != "" {
		_, effort := agent.SplitEffort(s.Row.Model)
		s.Row.Model = agent.JoinEffort(r.Model, effort)
	}
	s.Row.CostUSD, s.Row.CostKnown = charge(r, s.Limits.CostUSD, oneTurn(s.Agent, s.Row.Model, s.Prompt), s.lasted())
	return s.maskAll(s.Row.Leftovers)
}

// overshoot is the amount in USD that an agent may plausibly spend beyond its limit with the last request.
const overshoot = 20

// lasted returns the number of seconds that the agent worked, according to its transcript.
func (s *Session) lasted() float64 {
	end := s.Store.Now()
	if info, err := os.Stat(filepath.Join(s.folder(), agent.TranscriptFile)); err == nil && s.reopened {
		end = end.Add(-time.Since(info.ModTime())) // its time of death is unknown
	}
	return max(0, end.Sub(s.Row.StartedAt.Time).Seconds())
}

// One request of a coding agent: tokens of its own instructions and tools, and of an answer.
const (
	ownTokens    = 20_000
	answerTokens = 1_000
	// askSeconds is the approximate time between an agent's requests to its model.
	askSeconds = 10
)

// oneTurn estimates the cost in USD of one request of an agent with the prompt.
func oneTurn(a agent.Agent, model, prompt string) float64 {
	model, _ = agent.SplitEffort(model)
	tokens := ralph.Tokens{Input: int64(len(prompt)/3 + ownTokens), Output: answerTokens}
	if priced, ok := a.(agent.Priced); ok {
		if usd, known := priced.Cost(model, tokens); known {
			return usd
		}
	}
	price, ok := agent.PriceOf(model)
	if !ok {
		price = agent.Dearest
	}
	return price.Of(tokens)
}

// charge returns the cost of a session, and whether it is known. It is the agent's reported cost, or else that of the
// seen tokens. Tokens without a known price cost nothing here: they are counted separately. A session that called its
// model and reported nothing is charged one turn for each request that its time or its tool calls allowed, at most its
// own limit. If the service refused at the end, the time was spent on refused requests. An agent that never called its
// model cost nothing.
func charge(r agent.Report, limit, turn, seconds float64) (usd float64, known bool) {
	switch {
	case limit > 0 && r.CostUSD > limit+overshoot:
		return limit, false // somebody else wrote to its output
	case r.CostKnown:
		return r.CostUSD, true
	case r.CostUSD > 0 || r.Tokens.Sum() > 0:
		return r.CostUSD, false
	case !r.Began:
		return 0, true
	}
	requests := 1 + math.Floor(seconds/askSeconds)
	switch {
	case r.Ending.AgentError():
		requests = min(requests, float64(max(1, r.ToolCalls)))
	case r.ToolCalls > 0: // one request for each call, and one in progress
		requests = min(requests, float64(max(r.Turns, r.ToolCalls)+1))
	}
	return min(limit, turn*requests), false
}
