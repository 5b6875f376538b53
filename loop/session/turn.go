package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"ralph"
	"ralph/internal/proc"
	"ralph/loop/agent"
	"ralph/signals"
	"ralph/store"
)

// turnEnded is called when the agent waits on its open stdin, and answers how
// the conversation goes on: with a reminder to close, with the reason why its
// done is refused, or not at all. The session's clock is stopped meanwhile.
//
// A done is checked while the agent is frozen and everything it started, except its
// tool servers, has been killed. If the done is accepted, the agent is killed without
// having run again: neither it, nor one of its exit hooks, nor a waiting process can
// undo what was verified. If this is not possible, the conversation ends, and the
// done is checked when the session is settled, after all of its processes are gone.
func (s *Session) turnEnded(ctx context.Context, turn agent.Turn) agent.Answer {
	s.clock.pause()
	defer s.clock.resume()
	s.found, s.called = nil, ""
	answer, err := s.reply(ctx, turn)
	if !answer.Over && s.Lander != nil {
		s.Lander.Line.Leave(s.Row.ID)
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
	case closing.Payload == nil && s.reminded < s.Limits.Reminders:
		s.reminded++
		return agent.Say(reminder(agent.ProfileOf(s.Agent))), nil
	case closing.Payload == nil || closing.Payload.Verb() != ralph.VerbDone:
		return agent.Answer{}, nil
	}
	if s.Place.Slot != nil && s.Lander != nil {
		s.Lander.Line.Enter(s.Row.ID)
	}
	still, err := s.freeze(ctx, turn)
	if err != nil {
		return agent.Answer{}, err
	}
	var said string
	var note func(*store.Tx) error
	found, err := s.check(ctx)
	if err == nil && ctx.Err() == nil {
		said, note, err = s.objection(ctx, found, closing.ID)
	}
	if ctx.Err() != nil {
		if c := causeOf(context.Cause(ctx)); causes[c].people {
			s.called = c
		}
	}
	if err != nil || ctx.Err() != nil {
		return agent.Answer{Over: true}, errors.Join(err, still.kill())
	}
	if said == "" && still.frozen() {
		waiting, err := s.unheard(ctx)
		if err == nil && waiting && still.thaw() == nil {
			return agent.Answer{Wait: true}, nil
		}
	}
	if said != "" && still.thaw() == nil {
		if note != nil {
			err = s.Store.Tx(ctx, note)
		}
		return agent.Say(said + still.told()), err
	}
	if err := still.kill(); err != nil { // the agent may have moved
		return agent.Answer{Over: true}, err
	}
	s.found = found // if it refuses the done, the next session is told
	return agent.Answer{Over: true}, nil
}

// objection returns what to tell the agent about a done that has just been checked,
// "" if there is nothing more to say. If note is not nil, it records that.
func (s *Session) objection(
	ctx context.Context, f *finding, done int64,
) (said string, note func(*store.Tx) error, err error) {
	refused := signals.Refused(f.checks, f.protected, f.evidence, s.Rules)
	noteRefusal := func(tx *store.Tx) error { return tx.NoteRefusal(s.Row.ID, refused) }
	switch {
	case refused != "":
		if s.retried >= s.Limits.Retries {
			return "", nil, nil
		}
		s.retried++
		return refusal(f) + s.ignored(ctx), noteRefusal, nil
	case f.conflict != "":
		t, err := store.Read(ctx, s.Store, func(tx *store.Tx) (ralph.Task, error) { return tx.Task(s.Row.TaskID) })
		if err != nil || !f.moved && signals.BouncedAlone(t.Bounces, s.Rules.Bounces, f.conflict) != "" {
			return "", nil, err
		}
		return bounce(f), func(tx *store.Tx) error { return tx.NoteBounce(s.Row, f.conflict, f.conflicts) }, nil
	case len(f.evidence.Taken) > 0 && !s.warned:
		s.warned = true
		refused = "it committed what a person had not: " + signals.FileList(f.evidence.Taken)
		return taking(f.evidence.Taken), noteRefusal, nil
	case s.changed.workTree || s.doubted != 0:
		return "", nil, nil
	case len(f.evidence.Aside) > 0:
		s.doubted = done
		return elsewhere(f.evidence.Standing), nil, nil
	case s.Row.Worker != "" && s.Place.Slot != nil && f.made.Head == f.made.Base: // it may have worked elsewhere
		s.doubted = done
		return fmt.Sprintf(confirmationIn, s.Place.Dir), nil, nil
	case len(f.checks) == 0:
		s.doubted = done
		return confirmation, nil, nil
	}
	return "", nil, nil
}

// ignoredNamed is the most git-ignored files that a refusal names.
const ignoredNamed = 20

// ignored names the git-ignored files that the session made in its slot.
// No candidate contains them, so they may be what a check misses.
func (s *Session) ignored(ctx context.Context) string {
	if s.Place.Slot == nil {
		return ""
	}
	names, err := s.Place.Tree.IgnoredSince(ctx, s.Row.StartedAt.Time, ignoredNamed)
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

// freeze freezes the agent and kills everything else that it started.
func (s *Session) freeze(ctx context.Context, turn agent.Turn) (*standstill, error) {
	if turn.Process == nil {
		return &standstill{}, nil
	}
	still, err := turn.Process.Still(ctx, turn.Keep)
	if err != nil {
		return nil, err
	}
	frozen := &standstill{still: still}
	for _, k := range still.Killed {
		frozen.killed = append(frozen.killed, k.Command)
		s.killed = append(s.killed, fmt.Sprintf("%d: %s", k.Pid, k.Command))
	}
	frozen.timer = time.AfterFunc(s.Limits.Freeze, frozen.expire)
	return frozen, nil
}

// A standstill is a frozen agent, or empty if there is none to freeze. The
// agent is killed if it stays frozen for too long.
type standstill struct {
	killed []string // commands of the other processes that were killed
	timer  *time.Timer

	mu    sync.Mutex
	still *proc.Still // nil once it was thawed or killed
	err   error       // from thawing or killing it
}

// frozen reports whether the agent can still be thawed.
func (h *standstill) frozen() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.still != nil
}

func (h *standstill) expire() { _ = h.kill() } // the final call of kill returns the error

// kill kills the agent while it is frozen. An error says that it may have moved before.
func (h *standstill) kill() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.still != nil {
		h.timer.Stop()
		h.err = h.still.Kill()
		h.still = nil
	}
	return h.err
}

// errStood says that the agent was killed because its check took too long.
var errStood = errors.New("the frozen agent was killed before its check ended (verify.freeze_max)")

// thaw lets the agent go on. An error says that it cannot be told anything any more.
func (h *standstill) thaw() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.still == nil {
		if h.timer == nil {
			return nil // there was nothing to freeze
		}
		return errStood
	}
	h.timer.Stop()
	h.err = h.still.Thaw()
	h.still = nil
	return h.err
}

// told returns what to tell the agent about the killed processes.
func (h *standstill) told() string {
	if len(h.killed) == 0 {
		return ""
	}
	return killedBefore(h.killed)
}
