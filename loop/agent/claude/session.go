package claude

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"ralph/internal/proc"
	"ralph/loop/agent"
	"ralph/loop/agent/process"
)

// A phase is the state of a conversation.
type phase int

const (
	working phase = iota // it is the agent's turn
	asking               // the turn has ended, and TurnEnded is running
	closing              // the conversation is over, and the process has to exit
)

// A session is one running process and its conversation. Only run accesses
// its fields; the goroutines that it starts communicate through channels.
type session struct {
	options Options
	task    agent.Assignment
	process *process.Process

	history history
	phase   phase
	stopped bool        // ralph ended it before the end of its conversation
	death   agent.Death // why, if its context has ended
	failure error

	outbox   []agent.Message // not yet handed to the writer
	writing  []agent.Message // handed to the writer
	deaf     bool            // the agent no longer reads, or stdin is closed
	sent     int             // messages handed to the writer
	replayed int             // messages that the agent has replayed, so they reached the model

	turnOver bool             // the last event was a result
	grace    <-chan time.Time // fires when the process must be gone
	nextTurn <-chan time.Time // fires when the next turn must have begun

	cut    bool // it closed its output in the middle of its work
	mute   bool // it was stopped because it had closed its output
	exit   proc.Exit
	undead error // why something could not be killed, or that the supervisor is lost
	ended  bool
}

// run leads the conversation until the process and everything that it
// started is gone, its output is read and no call of TurnEnded is running.
func (s *session) run(ctx context.Context) error {
	lines := make(chan reading)
	feed := make(chan []byte)
	fed := make(chan error, 1)
	answers := make(chan agent.Answer, 1)
	exits := make(chan error, 1)
	var work sync.WaitGroup
	work.Go(func() { defer close(lines); s.read(lines) })
	work.Go(func() { s.process.CollectStderr() })
	work.Go(func() { s.write(feed, fed) })
	work.Go(func() { var err error; s.exit, err = s.process.Wait(); exits <- err })
	turns, cancelTurns := context.WithCancel(ctx)
	defer cancelTurns()

	ask := func() {
		s.phase, s.turnOver, s.nextTurn = asking, false, nil
		turn := s.process.Turn()
		work.Go(func() { answers <- s.askLoop(turns, turn) })
	}

	done := ctx.Done()
	var listed <-chan struct{}
	if s.task.Dry {
		listed = s.task.Channel.Listed
	}
	for !s.ended || lines != nil || s.phase == asking || s.writing != nil {
		var out chan<- []byte
		var next []byte
		if s.mayWrite() {
			out, next = feed, userMessage(texts(s.outbox), s.task.Pictures)
		}
		select {
		case <-done:
			done = nil
			s.death.Cut(ctx)
			s.stop()
		case <-listed:
			listed = nil
			s.close()
		case r, open := <-lines:
			if !open {
				lines = nil
				s.outputEnded()
				break
			}
			s.hear(r)
		case m := <-s.task.Say:
			s.outbox = append(s.outbox, m)
		case out <- next:
			s.handedOver()
		case err := <-fed:
			s.wrote(err)
		case a := <-answers:
			s.answer(a)
		case <-s.grace:
			s.grace = nil
			s.mute = lines == nil
			s.interrupt()
		case <-s.nextTurn:
			s.nextTurn = nil
			s.turnOver, s.replayed = true, s.sent
			ask()
		case s.undead = <-exits:
			s.processEnded()
		}
		if s.phase == working && s.turnOver && s.caughtUp() {
			ask()
		}
	}
	close(feed)
	work.Wait()
	return s.failure
}

// mayWrite reports whether there is a message to send and the agent may get it.
func (s *session) mayWrite() bool {
	return s.phase == working && s.writing == nil && !s.deaf && len(s.outbox) > 0
}

func texts(messages []agent.Message) []string {
	list := make([]string, len(messages))
	for i, m := range messages {
		list[i] = m.Text
	}
	return list
}

// wrote handles the end of a write.
func (s *session) wrote(err error) {
	messages := s.writing
	s.writing = nil
	if err != nil {
		// It closed its stdin or is gone; the end of the process will show which.
		s.deaf = true
		return
	}
	for _, m := range messages {
		if m.Delivered != nil {
			m.Delivered()
		}
	}
}

// hear processes one line.
func (s *session) hear(r reading) {
	var seen []agent.Event
	if r.ok {
		seen = s.history.add(r.event)
	} else {
		s.history.addUnreadable(r.line)
	}
	if seen == nil {
		seen = []agent.Event{{Kind: agent.Other}}
	}
	for _, e := range seen {
		if e.Kind == agent.Started { // before its first tool call; the CLI repeats this each turn
			s.process.FindOwn()
		}
		if s.task.Seen != nil {
			s.task.Seen(e)
		}
	}
	if r.err != nil {
		s.failure = errors.Join(s.failure, r.err)
		s.stop()
	}
	if s.phase != working {
		return
	}
	if s.history.turnOpen {
		s.turnOver, s.nextTurn = false, nil
	}
	if r.event.IsReplay {
		s.replayed++
	}
	if s.history.mcpError != "" {
		// Without its tools it would only spend money.
		s.close()
		s.interrupt()
		return
	}
	if r.event.Type != "result" {
		return
	}
	if r.event.IsError {
		s.close()
		return
	}
	s.turnOver, s.nextTurn = true, time.After(s.options.ExitGrace)
}

// handedOver is called when the writer has taken the outbox.
func (s *session) handedOver() {
	s.writing, s.outbox = s.outbox, nil
	s.sent++
	if s.turnOver {
		// A message after a result starts another turn, unless the agent lost it.
		s.turnOver, s.nextTurn = false, time.After(s.options.ExitGrace)
	}
}

// caughtUp reports whether the agent has no message left to read. A message that came too late
// for a turn gets a turn of its own. If the agent does not replay messages, none is expected.
func (s *session) caughtUp() bool {
	heard := s.replayed == 0 || s.replayed >= s.sent
	return s.deaf || s.writing == nil && len(s.outbox) == 0 && heard
}

// askLoop asks how to continue after the agent's turn.
func (s *session) askLoop(ctx context.Context, turn agent.Turn) agent.Answer {
	if s.task.TurnEnded == nil {
		return agent.Answer{}
	}
	return s.task.TurnEnded(ctx, turn)
}

// answer continues the conversation or ends it.
func (s *session) answer(a agent.Answer) {
	s.phase = working
	s.history.over = true
	switch {
	case s.stopped:
		s.phase = closing
	case a.Over || s.deaf || s.ended || s.writing != nil:
		s.close() // it can no longer be told anything
	case a.Text == "" && !a.Wait && len(s.outbox) == 0:
		s.close()
	case s.task.MaxTurns > 0 && s.history.turns >= s.task.MaxTurns:
		// The CLI starts counting turns again with each message.
		s.history.overTurns = true
		s.close()
	default:
		s.history.over = false
		if a.Text != "" {
			s.outbox = append([]agent.Message{{Text: a.Text}}, s.outbox...)
		}
		if a.Wait {
			s.nextTurn = time.After(s.options.ExitGrace)
		}
	}
}

// close ends the conversation: the agent has ExitGrace to exit.
func (s *session) close() {
	s.phase = closing
	s.nextTurn = nil
	s.shut()
	if s.grace == nil && !s.ended {
		s.grace = time.After(s.options.ExitGrace)
	}
}

// shut closes stdin, which also wakes the writer.
func (s *session) shut() {
	s.deaf = true
	// On a second call it is closed already; an error from closing a pipe does not matter.
	_ = s.process.Stdin.Close()
}

// stop ends the session early.
func (s *session) stop() {
	if s.phase != closing {
		s.stopped = true
	} else if s.cut && !s.ended {
		s.mute = true
	}
	if s.phase == working {
		s.phase = closing
	}
	s.nextTurn = nil
	s.interrupt()
}

// interrupt asks the process to end now; it is killed after KillGrace.
func (s *session) interrupt() {
	if err := s.process.Interrupt(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		// Without its supervisor nobody can interrupt it: Wait will clean up.
		s.failure = errors.Join(s.failure, fmt.Errorf("interrupt the agent: %w", err), s.process.Kill())
	}
}

// outputEnded is called at the end of stdout. A process that stays alive
// without it can report nothing more.
func (s *session) outputEnded() {
	if s.phase == working {
		s.history.over, s.cut = s.turnOver, !s.turnOver
		s.close()
	}
}

// processEnded is called when the process, and everything that it started, is gone.
func (s *session) processEnded() {
	s.ended = true
	s.grace, s.nextTurn = nil, nil
	s.shut()
	if err := s.process.Drain(); err != nil {
		s.failure = errors.Join(s.failure, err)
	}
}

// report returns the result after the end.
func (s *session) report() agent.Report {
	d := s.death
	d.Stopped, d.Mute, d.Code, d.Signal = s.stopped, s.mute, s.exit.Code, s.exit.Signal
	d.Stderr = s.process.StderrTail()
	if s.history.mcpError != "" {
		d.Toolless = agent.Sentence(s.history.mcpError, fmt.Sprintf(
			"the agent cannot start `%s`, or that does not reach the run at %s",
			strings.Join(s.options.MCPCommand, " "), s.task.Channel.Socket))
	}
	r := s.history.report(d)
	if code := s.exit.Code; code >= 0 {
		r.Exit = &code
	}
	r.Leftovers = process.Leftovers(s.exit, s.undead)
	return r
}

// report combines the conversation and its end.
func (h *history) report(d agent.Death) agent.Report {
	r := agent.Report{
		Model: h.model, Version: h.version, Turns: h.turns + h.messages, ToolCalls: h.toolCalls, LastWords: h.lastWords,
		Denials: h.denials, Unreadable: h.unreadable, Began: h.began(),
	}
	if h.mcpError != "" && d.Toolless == "" {
		d.Toolless = h.mcpError
	}
	r.Tokens, r.CostUSD, r.CostKnown = h.usage()
	r.SetEnd(&Profile, h.trace(), d)
	for _, name := range slices.Sorted(maps.Keys(h.usages)) {
		r.Usage = append(r.Usage, h.usages[name])
	}
	return r
}
