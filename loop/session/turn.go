package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"ralph"
	"ralph/internal/proc"
	"ralph/internal/text"
	"ralph/loop/agent"
	"ralph/signals"
	"ralph/store"
)

// turnEnded is called when the agent waits on its open stdin, and answers how
// the conversation goes on: with a reminder to close, with the reason why its
// done is refused, or not at all. The session's clock is stopped meanwhile.
//
// At a done, everything that the agent has started is killed, except its tool servers, and what it made becomes a
// commit. That is what is checked and merged: what happens in the workspace from then on is no part of it. If it is
// accepted, the agent is killed.
func (s *Session) turnEnded(ctx context.Context, turn agent.Turn) agent.Answer {
	s.clock.pause()
	defer s.clock.resume()
	s.found, s.called = nil, ""
	answer, err := s.reply(ctx, turn)
	if !answer.Over {
		s.Merger.Line.Leave(s.Row.ID)
	}
	if err != nil && ctx.Err() == nil {
		s.Log.Warn("a done is checked only after its session", "session", s.Row.ID, "task", s.Row.TaskID, "error", err)
	}
	return answer
}

// reply implements [Session.turnEnded]; the error says why a done could not be checked now.
func (s *Session) reply(ctx context.Context, turn agent.Turn) (agent.Answer, error) {
	closing, err := s.closing(ctx)
	switch {
	case err != nil:
		return agent.Answer{}, err
	case closing.Payload == nil && s.Store.Full() != nil: // its signal could not be stored, nor could the next one
		return agent.Answer{Over: true}, s.Store.Full()
	case closing.Payload == nil && s.reminded < s.Limits.Reminders:
		s.reminded++
		return agent.Say(reminder(agent.ProfileOf(s.Agent))), nil
	case closing.Payload == nil || closing.Payload.Verb() != ralph.VerbDone:
		return agent.Answer{}, nil
	}
	if s.Workspace.Clone != nil {
		s.Merger.Line.Enter(s.Row.ID)
	}
	w := s.await(ctx, turn)
	defer w.over()
	var said string
	var note func(*store.Tx) error
	found, err := s.check(ctx)
	if err == nil && ctx.Err() == nil {
		said, note, err = s.objection(ctx, found, closing)
	}
	if ctx.Err() != nil {
		if c := causeOf(context.Cause(ctx)); causes[c].people {
			s.called = c
		}
	}
	if err != nil || ctx.Err() != nil {
		return agent.Answer{Over: true}, errors.Join(err, w.kill())
	}
	if said == "" && w.there() {
		waiting, err := s.unheard(ctx)
		if err == nil && waiting {
			return agent.Answer{Wait: true}, nil
		}
	}
	if said != "" && (turn.Process == nil || w.there()) {
		if note != nil {
			err = s.Store.Tx(ctx, note)
		}
		return agent.Say(said + w.told()), err
	}
	s.found = found // if it refuses the done, the next session is told
	return agent.Answer{Over: true}, w.kill()
}

// objection returns what to tell the agent about a done that has just been checked,
// "" if there is nothing more to say. If note is not nil, it records that.
func (s *Session) objection(
	ctx context.Context, f *finding, closing signals.Said,
) (said string, note func(*store.Tx) error, err error) {
	done := closing.ID
	refused := signals.Refused(f.checks, f.protected, f.evidence, s.Rules)
	noteRefusal := func(tx *store.Tx) error { return tx.NoteRefusal(s.Row.ID, refused) }
	bare := f.evidence
	bare.Gate = ralph.Gate{}
	flags, err := s.openFlags(ctx, closing)
	if err != nil {
		return "", nil, err
	}
	switch {
	case refused != "" && signals.Refused(f.checks, f.protected, bare, s.Rules) == "" && !s.weighed:
		s.weighed = true
		lines, err := s.testLines(ctx, f)
		return weakened(f.evidence.Gate, lines), noteRefusal, err
	case refused != "":
		if s.retried >= s.Limits.Retries {
			return "", nil, nil
		}
		s.retried++
		return refusal(f) + s.ignored(ctx), noteRefusal, nil
	case f.conflict != "":
		return s.clash(ctx, f)
	case len(f.evidence.Aside) > 0 && !s.changed.workTree && s.doubted == 0:
		s.doubted = done
		return onOtherBranches(f.evidence.Aside), nil, nil
	case f.evidence.Gate.Unchanged && s.doubted == 0 && s.Row.Worker == "":
		s.doubted = done
		return unchanged, nil, nil
	case len(flags) > 0 && !s.bared:
		s.bared = true
		return flagged(flags), nil, nil
	case s.changed.workTree || s.doubted != 0 || s.carries(f):
		return "", nil, nil
	case s.Row.Worker != "" && s.Workspace.Clone != nil && f.made.Head == f.made.Base: // it may have worked elsewhere
		s.doubted = done
		return fmt.Sprintf(confirmationIn, s.Workspace.Dir), nil, nil
	case len(f.checks) == 0:
		s.doubted = done
		return confirmation, nil, nil
	}
	return "", nil, nil
}

// clash merges what has been merged into the workspace and tells the agent of the conflict, which is counted. Who was
// told of it and mends nothing begins anew, in another session.
func (s *Session) clash(ctx context.Context, f *finding) (said string, note func(*store.Tx) error, err error) {
	if len(f.marks) > 0 || s.clashed && !f.moved {
		return "", nil, nil
	}
	marked, err := s.Workspace.Merge(ctx, s.shown, f.made)
	if err != nil {
		return "", nil, fmt.Errorf("merge what has been merged into the workspace: %w", err)
	}
	s.clashed = true
	return sentBack(f, marked), func(tx *store.Tx) error { return tx.NoteSentBack(s.Row, f.conflict, f.conflicts) }, nil
}

// carries reports whether something would be merged, such as what an earlier session of the task had left in the
// workspace.
func (s *Session) carries(f *finding) bool {
	return s.Workspace.Clone != nil && f.made.Head != f.made.Base
}

// testLines returns the lines in which a change differs from the target in what decides on it.
func (s *Session) testLines(ctx context.Context, f *finding) (string, error) {
	g := f.evidence.Gate
	if len(g.Files) == 0 {
		return "", nil
	}
	lines, err := s.Merger.Tree.Patch(ctx, f.gateFrom, f.gateTo, ralph.Approval{Files: g.Files}.Paths())
	if err != nil {
		return "", err
	}
	if lines, err = s.masked(lines); err != nil {
		return "", err
	}
	return text.Head(lines, shownLines), nil
}

// shownLines bounds the difference of tests that an agent is shown, in bytes.
const shownLines = 6000

// openFlags returns the blocking flags of the task that nobody has answered, and that the done says nothing of.
func (s *Session) openFlags(ctx context.Context, closing signals.Said) ([]int64, error) {
	done, ok := closing.Payload.(signals.Done)
	if !ok {
		return nil, nil
	}
	return store.Read(ctx, s.Store, func(tx *store.Tx) ([]int64, error) {
		said, others, err := tx.Signalled(s.Row.TaskID, s.Row.ID)
		return signals.OpenFlags(said, others, done), err
	})
}

// ignoredNamed is the most git-ignored files that a refusal names.
const ignoredNamed = 20

// ignored names the git-ignored files that the session made in its workspace.
// No candidate contains them, so they may be what a check misses.
func (s *Session) ignored(ctx context.Context) string {
	if s.Workspace.Clone == nil {
		return ""
	}
	names, err := s.Workspace.Tree.IgnoredSince(ctx, s.Row.StartedAt.Time, ignoredNamed)
	if err != nil || len(names) == 0 {
		return "" // only a hint, so an error does not matter
	}
	return "\nGit ignores these files of yours, so that they are not in what was checked:\n- " +
		strings.Join(names, "\n- ") + "\n"
}

// unheard reports whether a person said something that the agent has not
// been told and for which the conversation was not yet continued.
func (s *Session) unheard(ctx context.Context) (waiting bool, err error) {
	err = s.Store.View(ctx, func(tx *store.Tx) error {
		comments, err := tx.Undelivered(s.Row.TaskID, s.Row.StartedAt)
		for _, c := range comments {
			waiting = waiting || c.ID > s.heard
			s.heard = max(s.heard, c.ID)
		}
		return err
	})
	return waiting, err
}

// waitMax is how long an agent may wait for the check of its done. Then it is killed: its context in the service's
// cache is gone, and a new session costs no more.
const waitMax = 10 * time.Minute

// A waiting is an agent that waits for the check of its done.
type waiting struct {
	process *proc.Process // nil if ralph did not start it
	killed  []string      // commands of the processes that were killed before
	timer   *time.Timer   // kills it

	mu   sync.Mutex
	gone bool // it was killed
}

// await kills what the agent has started, and lets it wait.
func (s *Session) await(ctx context.Context, turn agent.Turn) *waiting {
	w := &waiting{process: turn.Process}
	if w.process == nil {
		return w
	}
	killed, err := w.process.Prune(ctx, turn.Keep)
	if err != nil && ctx.Err() == nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, os.ErrProcessDone) {
		s.Log.Warn("cannot kill all that an agent has left running before its done is checked",
			"session", s.Row.ID, "task", s.Row.TaskID, "error", err)
	}
	for _, k := range killed {
		w.killed = append(w.killed, k.Command)
		s.killed = append(s.killed, fmt.Sprintf("%d: %s", k.Pid, k.Command))
	}
	w.timer = time.AfterFunc(waitMax, func() { _ = w.kill() }) // who asks whether it is there is told
	return w
}

// over ends the wait.
func (w *waiting) over() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// there reports whether there is an agent that can be told something.
func (w *waiting) there() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.process != nil && !w.gone
}

// kill kills the agent, unless ralph did not start it.
func (w *waiting) kill() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.process == nil || w.gone {
		return nil
	}
	w.gone = true
	return w.process.Kill()
}

// told returns what to tell the agent about the killed processes.
func (w *waiting) told() string {
	if len(w.killed) == 0 {
		return ""
	}
	return killedBefore(w.killed)
}
