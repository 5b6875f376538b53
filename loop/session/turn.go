package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ralph/loop/agent"

	"ralph"
	"ralph/internal/proc"
	"ralph/signals"
	"ralph/store"
)

// turnEnded is told when the agent waits on its open stdin, and says how the
// conversation goes on: with a reminder to close, with why its done is refused, or not
// at all. The session's clocks stand still meanwhile.
//
// A done is checked while the agent stands still, and what it has started besides its
// servers of tools is gone. If the done holds the agent is killed without having moved
// again: neither it, nor a hook of its end, nor a process that waits can undo what was
// verified. What cannot be checked in this way ends the conversation, and is checked
// when the session is settled, after all of its processes are gone.
func (s *Session) turnEnded(ctx context.Context, turn agent.Turn) agent.Answer {
	s.clock.pause()
	defer s.clock.resume()
	s.found, s.called = nil, ""
	answer, err := s.reply(ctx, turn)
	if err != nil && ctx.Err() == nil {
		s.Log.Warn("what a session claims is checked after its end", "session", s.Row.ID, "task", s.Row.TaskID, "error", err)
	}
	return answer
}

// reply is [Session.turnEnded]; the error is why a done could not be checked now.
func (s *Session) reply(ctx context.Context, turn agent.Turn) (agent.Answer, error) {
	closing, err := s.closing(ctx)
	switch {
	case err != nil:
		return agent.Answer{}, err
	case closing.Payload == nil && s.reminded < s.Limits.Reminders:
		s.reminded++
		return agent.Say(reminder), nil
	case closing.Payload == nil || closing.Payload.Verb() != ralph.VerbDone:
		return agent.Answer{}, nil
	}
	still, err := s.freeze(ctx, turn)
	if err != nil {
		return agent.Answer{}, err
	}
	found, err := s.check(ctx)
	if ctx.Err() != nil {
		if c := causeOf(context.Cause(ctx)); causes[c].people {
			s.called = c
		}
	}
	if err != nil || ctx.Err() != nil {
		return agent.Answer{Over: true}, errors.Join(err, still.kill())
	}
	said, refused := s.objection(found, closing.ID)
	if said == "" && still.frozen() {
		waiting, err := s.unheard(ctx)
		if err == nil && waiting && still.thaw() == nil {
			return agent.Answer{Wait: true}, nil
		}
	}
	if said != "" && still.thaw() == nil {
		if refused != "" {
			err = s.Store.Tx(ctx, func(tx *store.Tx) error { return tx.NoteRefusal(s.Row.ID, refused) })
		}
		return agent.Say(said + still.told()), err
	}
	if err := still.kill(); err != nil { // it may have moved
		return agent.Answer{Over: true}, err
	}
	s.found = found // what it refuses, the next session is told
	return agent.Answer{Over: true}, nil
}

// objection is what the agent is told about a done that has just been checked, and
// what it is refused for, in one line; "" if there is nothing more to say to it.
func (s *Session) objection(f *finding, done int64) (said, refused string) {
	refused = signals.Refused(f.checks, f.protected, f.evidence, s.Rules)
	switch {
	case refused != "":
		if s.retried >= s.Limits.Retries {
			return "", ""
		}
		s.retried++
		return refusal(f), refused
	case len(f.evidence.Taken) > 0 && !s.warned:
		s.warned = true
		return taking(f.evidence.Taken), "it committed what a person had not: " + signals.FileList(f.evidence.Taken)
	case s.changed.workTree || s.doubted != 0:
		return "", ""
	case len(f.evidence.Aside) > 0:
		s.doubted = done
		return elsewhere(f.evidence.Standing), ""
	case len(f.checks) == 0:
		s.doubted = done
		return confirmation, ""
	}
	return "", ""
}

// unheard reports whether a person has said something that the agent has not been
// told, and for which the conversation has not gone on before.
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

// Bounds of freezing: a server of tools may be frozen in the middle of a write.
const (
	freezeTries = 5
	freezeWait  = time.Second            // for the database, each time
	freezePause = 100 * time.Millisecond // in which the server can end its write
)

// freeze has the agent stand still, and kills what else it has started.
func (s *Session) freeze(ctx context.Context, turn agent.Turn) (*standstill, error) {
	if turn.Process == nil {
		return &standstill{}, nil
	}
	var err error
	for range freezeTries {
		var still *proc.Still
		if still, err = turn.Process.Still(ctx, turn.Keep); err != nil {
			return nil, err
		}
		held := &standstill{still: still}
		for _, k := range still.Killed {
			held.killed = append(held.killed, k.Command)
			s.killed = append(s.killed, fmt.Sprintf("%d: %s", k.Pid, k.Command))
		}
		if err = s.Store.Free(ctx, freezeWait); err == nil {
			held.timer = time.AfterFunc(s.Limits.Freeze, held.expire)
			return held, nil
		}
		if err := still.Thaw(); err != nil {
			return nil, err
		}
		select {
		case <-time.After(freezePause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return nil, fmt.Errorf("a process of the session holds the database: %w", err)
}

// A standstill is an agent that cannot move, or that there is nothing to hold of. It is
// killed when it has stood for too long.
type standstill struct {
	killed []string // commands of what else was killed for it
	timer  *time.Timer

	mu    sync.Mutex
	still *proc.Still // nil once it was thawed or killed
	err   error       // of thawing or killing it
}

// frozen reports whether it can still be thawed.
func (h *standstill) frozen() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.still != nil
}

func (h *standstill) expire() { _ = h.kill() } // who kills it for good is told

// kill kills it frozen. The error says that it may have moved before.
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

// errStood says that an agent was killed because its check took so long.
var errStood = errors.New("the agent was killed, frozen, before its check ended (verify.freeze_max)")

// thaw has it go on. The error says that it cannot be told anything any more.
func (h *standstill) thaw() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.still == nil {
		if h.timer == nil {
			return nil // there was nothing to hold
		}
		return errStood
	}
	h.timer.Stop()
	h.err = h.still.Thaw()
	h.still = nil
	return h.err
}

// told is what the agent is told of what was killed.
func (h *standstill) told() string {
	if len(h.killed) == 0 {
		return ""
	}
	return killedBefore(h.killed)
}
