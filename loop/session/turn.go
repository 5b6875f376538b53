package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"ralph"
	"ralph/internal/proc"
	"ralph/internal/text"
	"ralph/loop/agent"
	"ralph/signals"
	"ralph/store"
)

// TurnEnded is called when the agent waits on its open stdin, and answers how the conversation continues: with a
// reminder to close, with the reason why its done is refused, or not at all. The session's clock is stopped during
// the call.
//
// At a done, all processes that the agent has started are killed, except its tool servers, and its work becomes a
// commit. That commit is checked and merged: later events in the workspace do not change it. If it is accepted, the
// agent is killed.
func (s *Session) TurnEnded(ctx context.Context, turn agent.Turn) agent.Answer {
	s.clock.pause()
	defer s.clock.resume()
	s.found, s.called = nil, ""
	answer, err := s.reply(ctx, turn)
	if err != nil && ctx.Err() == nil {
		s.Log.Warn("a done is checked only after its session", "session", s.Row.ID, "task", s.Row.TaskID, "error", err)
	}
	return answer
}

// reply implements [Session.TurnEnded]; the error explains why a done could not be checked now.
func (s *Session) reply(ctx context.Context, turn agent.Turn) (agent.Answer, error) {
	closing, err := s.closing(ctx)
	switch {
	case err != nil:
		return agent.Answer{}, err
	case closing.Payload == nil && s.Store.Full() != nil: // its signal could not be stored, nor could the next
		return agent.Answer{Over: true}, s.Store.Full()
	case closing.Payload == nil || closing.Payload.Verb() != ralph.VerbDone:
		r, err := s.decideReply(ctx, &finding{}, false)
		if err != nil || r.kind == "" {
			return agent.Answer{}, err
		}
		return s.answer(ctx, r)
	}
	w := s.await(ctx, turn)
	defer w.over()
	r := reply{}
	found, err := s.checkDone(ctx)
	if err == nil && ctx.Err() == nil {
		r, err = s.decideReply(ctx, found, w.there())
	}
	if ctx.Err() != nil {
		if c := causeOf(context.Cause(ctx)); causes[c].people {
			s.called = c
		}
	}
	switch {
	case err != nil || ctx.Err() != nil:
		return agent.Answer{Over: true}, errors.Join(err, w.kill())
	case r.kind == "" || turn.Process != nil && !w.there():
		s.found = found // if it refuses the done, the next session reads it
		return agent.Answer{Over: true}, w.kill()
	}
	s.leaveLine(ctx)
	r.killed = w.killed
	return s.answer(ctx, r)
}

// A reply is a message to an agent at the end of a turn, with everything that its words mention.
type reply struct {
	kind    signals.Reply
	comment int64 // the done that it answers, or the person's comment
	tools   *agent.Profile
	folder  string          // its workspace
	found   *finding        // result of the check of its done
	refusal signals.Refusal // why the done is refused
	flags   []int64         // open blocking flags
	lines   string          // the difference of the tests, shortened
	marked  []string        // files with conflict marks
	ignored []string        // files of the session that git ignores
	killed  []string        // processes that were killed before the check
}

// decideReply decides on the reply to a finding, and collects everything that its words mention. If hears is true,
// people's undelivered comments count.
func (s *Session) decideReply(ctx context.Context, found *finding, hears bool) (reply, error) {
	r := reply{tools: agent.ProfileOf(s.Agent), folder: s.Workspace.Dir, found: found, comment: s.closed.ID}
	err := s.Store.View(ctx, func(tx *store.Tx) error {
		f, err := s.facts(tx, &observation{finding: *found})
		if err == nil && hears {
			f.Unheard, err = s.unheard(tx)
		}
		if err != nil {
			return err
		}
		f.Ending, f.Waiting = ralph.Finished, true
		if r.kind = signals.Decide(f).Reply; r.kind == signals.ReplyComment {
			r.comment = f.Unheard
		}
		if done, ok := s.closed.Payload.(signals.Done); ok {
			r.flags = signals.OpenFlags(f.Said, f.OpenFlags, done)
		}
		return nil
	})
	if err != nil {
		return r, err
	}
	r.refusal = s.refusal(found)
	switch r.kind {
	case signals.ReplyTests:
		r.lines, err = s.testLines(ctx, found)
	case signals.ReplyRefused:
		r.ignored = s.ignored(ctx)
	}
	if err == nil && (r.kind == signals.ReplyConflict || r.kind == signals.ReplyRefused && found.moved) {
		if r.marked, err = s.Workspace.Merge(ctx, s.shown, found.made); err != nil {
			err = fmt.Errorf("merge the target into the workspace: %w", err)
		}
	}
	return r, err
}

// refusal returns why a done with this finding is refused.
func (s *Session) refusal(f *finding) signals.Refusal {
	return signals.Refused(f.checks, f.protected, f.evidence, s.Rules)
}

// answer records a reply and returns its words.
func (s *Session) answer(ctx context.Context, r reply) (agent.Answer, error) {
	s.replies = append(s.replies, signals.Notice{Reply: r.kind, Comment: r.comment})
	var err error
	switch r.kind {
	case signals.ReplyComment:
		return agent.Answer{Wait: true}, nil
	case signals.ReplyTests, signals.ReplyBlind, signals.ReplyRefused:
		err = s.Store.Tx(ctx, func(tx *store.Tx) error { return tx.NoteRefusal(s.Row.ID, r.refusal.String()) })
	case signals.ReplyConflict:
		err = s.Store.Tx(ctx, func(tx *store.Tx) error {
			return tx.NoteSentBack(s.Row, r.found.conflict, r.found.conflicts)
		})
	}
	return agent.Say(r.words()), err
}

// carries reports whether there is something to merge, such as work of the task's earlier session in the workspace.
func (s *Session) carries(f *finding) bool {
	return s.Workspace.Clone != nil && f.made.Head != f.made.Base
}

// onlyDebris reports whether the workspace has no other changes than debris.
func (s *Session) onlyDebris(f *finding) bool {
	return len(f.evidence.Debris) > 0 && f.made.Head == s.reference.Head
}

// testLines returns the changed lines of the gate files.
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

// shownLines bounds the difference of tests for an agent, in bytes.
const shownLines = 6000

// openFlags returns the task's blocking flags that nobody has answered, including the done.
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

// ignoredNamed is the maximum number of git-ignored files in a refusal.
const ignoredNamed = 20

// ignored returns the git-ignored files that the session made in its workspace, up to ignoredNamed. Candidates do not
// contain them, so a check may lack them.
func (s *Session) ignored(ctx context.Context) []string {
	if s.Workspace.Clone == nil {
		return nil
	}
	names, err := s.Workspace.Tree.IgnoredSince(ctx, s.Row.StartedAt.Time, ignoredNamed)
	if err != nil {
		return nil // only a hint, so an error does not matter
	}
	return names
}

// unheard returns the latest comment of a person that the agent has not seen; 0 for none.
func (s *Session) unheard(tx *store.Tx) (latest int64, err error) {
	comments, err := tx.Undelivered(s.Row.TaskID, s.Row.StartedAt)
	for _, c := range comments {
		latest = max(latest, c.ID)
	}
	return latest, err
}

// waitMax is how long an agent waits for the check of its done at most. Then it is killed: the service no longer caches
// its context, so a new session costs no more.
const waitMax = 10 * time.Minute

// A waiting is an agent that waits for the check of its done.
type waiting struct {
	process *proc.Process // nil if ralph did not start it
	killed  []string      // commands of the processes killed before
	timer   *time.Timer   // kills it

	mu   sync.Mutex
	gone bool // it was killed
}

// await kills the processes that the agent has started, and lets it wait.
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
	w.timer = time.AfterFunc(waitMax, func() { _ = w.kill() }) // a person may ask again and get an answer
	return w
}

// over ends the wait.
func (w *waiting) over() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// there reports whether the agent still waits, and can get a message.
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
