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

	"ralph/loop/agent"

	"ralph/internal/proc"
)

// drainWait is how long output is still read after the process is gone, in case
// something that could not be killed holds it open.
const drainWait = 2 * time.Second

// A phase is where a conversation stands.
type phase int

const (
	working phase = iota // the agent has the word
	asking               // its turn has ended and TurnEnded is being called
	closing              // it is over, and the process is to end
)

// A session is one running process and its conversation. Only run touches its
// fields; the goroutines that it starts talk to it by channels.
type session struct {
	options Options
	task    agent.Assignment
	logs    *logs
	process *proc.Process
	stdin   *os.File
	stdout  *os.File
	stderr  *os.File

	history history
	phase   phase
	stopped bool // ralph ended it before its conversation was over
	failure error

	outbox   []agent.Message // not yet handed to the writer
	writing  []agent.Message // in the writer's hands
	deaf     bool            // the agent reads no more, or stdin is closed
	sent     int             // messages handed to the writer
	replayed int             // messages that the agent has shown to be with the model

	turnOver bool             // the last event is a result
	grace    <-chan time.Time // the process has to be gone
	followUp <-chan time.Time // the next turn has to have begun

	own map[int]bool // the agent's processes when it was ready: itself, its wrappers, its servers of tools

	cut    bool // it closed its output in the middle of its work
	mute   bool // it was stopped because it had closed its output
	exit   proc.Exit
	undead error // what could not be killed, or the loss of the supervisor
	ended  bool
}

// run holds the conversation until the process and all that it started is gone,
// its output is read and no call of TurnEnded is under way.
func (s *session) run(ctx context.Context) error {
	lines := make(chan reading)
	feed := make(chan []byte)
	fed := make(chan error, 1)
	answers := make(chan agent.Answer, 1)
	exits := make(chan error, 1)
	var work sync.WaitGroup
	work.Go(func() { defer close(lines); s.read(lines) })
	work.Go(func() { s.logs.stderr.take(s.stderr) })
	work.Go(func() { s.write(feed, fed) })
	work.Go(func() { var err error; s.exit, err = s.process.Wait(); exits <- err })
	turns, cancelTurns := context.WithCancel(ctx)
	defer cancelTurns()

	ask := func() {
		s.phase, s.turnOver, s.followUp = asking, false, nil
		own := map[int]bool{}
		maps.Copy(own, s.own)
		work.Go(func() { answers <- s.askLoop(turns, own) })
	}

	done := ctx.Done()
	for !s.ended || lines != nil || s.phase == asking || s.writing != nil {
		var out chan<- []byte
		var next []byte
		if s.mayWrite() {
			out, next = feed, userMessage(texts(s.outbox))
		}
		select {
		case <-done:
			done = nil
			s.stop()
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
		case <-s.followUp:
			s.followUp = nil
			s.turnOver, s.replayed = true, s.sent
			ask()
		case s.undead = <-exits:
			s.processEnded()
		}
		if s.phase == working && s.turnOver && s.settled() {
			ask()
		}
	}
	close(feed)
	work.Wait()
	return errors.Join(s.failure, s.stdout.Close(), s.stderr.Close())
}

// mayWrite tells whether there is something to say and the agent may be told.
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

// wrote is called when a message has been written, or cannot be.
func (s *session) wrote(err error) {
	messages := s.writing
	s.writing = nil
	if err != nil {
		// It has closed its stdin or is gone, which its end will say.
		s.deaf = true
		return
	}
	for _, m := range messages {
		if m.Delivered != nil {
			m.Delivered()
		}
	}
}

// hear takes in a line.
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
		if e.Kind == agent.Started && s.own == nil { // before its first tool: the CLI says so at each turn
			s.findOwn()
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
		s.turnOver, s.followUp = false, nil
	}
	if r.event.IsReplay {
		s.replayed++
	}
	if s.history.mcpError != "" {
		// Without its tools it could only spend money.
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
	s.turnOver, s.followUp = true, time.After(s.options.ExitGrace)
}

// handedOver is called when the writer has taken the outbox.
func (s *session) handedOver() {
	s.writing, s.outbox = s.outbox, nil
	s.sent++
	if s.turnOver {
		// After a result it starts another turn, unless the agent has lost it.
		s.turnOver, s.followUp = false, time.After(s.options.ExitGrace)
	}
}

// settled tells whether the agent has nothing left to hear. A message that came
// too late for a turn has the next one to itself; where the agent does not show
// what reaches the model, none is expected.
func (s *session) settled() bool {
	heard := s.replayed == 0 || s.replayed >= s.sent
	return s.deaf || s.writing == nil && len(s.outbox) == 0 && heard
}

// findOwn notes the agent's own processes when it is ready. Where they cannot be
// listed they cannot be frozen either.
func (s *session) findOwn() {
	if members, err := s.process.Members(); err == nil {
		s.own = ownOf(members)
	}
}

// ownOf are the servers of ralph's tools and what has started them, up to the command. What
// else there is has been started by hooks and the like. Without such a server it cannot be
// told apart.
func ownOf(members []proc.Member) map[int]bool {
	isServer := servers()
	parents, all, own := map[int]int{}, map[int]bool{}, map[int]bool{}
	for _, m := range members {
		parents[m.Pid], all[m.Pid] = m.Parent, true
		if isServer(m) {
			for pid := m.Pid; all[pid] && !own[pid]; pid = parents[pid] { // parents come first
				own[pid] = true
			}
		}
	}
	if len(own) == 0 {
		return all
	}
	return own
}

// servers tells the servers of ralph's tools.
func servers() func(proc.Member) bool {
	self, err := os.Executable()
	return func(m proc.Member) bool {
		return err == nil && strings.TrimSuffix(m.Exe, " (deleted)") == self && strings.Contains(m.Command+" ", " mcp ")
	}
}

// askLoop asks what comes after the agent's turn.
func (s *session) askLoop(ctx context.Context, own map[int]bool) agent.Answer {
	if s.task.TurnEnded == nil {
		return agent.Answer{}
	}
	return s.task.TurnEnded(ctx, agent.Turn{Process: s.process, Keep: ownProcesses(own, s.process.Pid())})
}

// ownProcesses tells the agent's own processes: those that it had when it was ready, and
// servers of ralph's tools that it has started again since.
func ownProcesses(own map[int]bool, leader int) func(proc.Member) bool {
	isServer := servers()
	return func(m proc.Member) bool {
		if m.Pid == leader || own[m.Parent] && isServer(m) {
			own[m.Pid] = true
		}
		return own[m.Pid]
	}
}

// answer goes on with the conversation, or ends it.
func (s *session) answer(a agent.Answer) {
	s.phase = working
	s.history.over = true
	switch {
	case s.stopped:
		s.phase = closing
	case a.Over || s.deaf || s.ended || s.writing != nil:
		s.close() // it cannot be told anything any more
	case a.Text == "" && !a.Wait && len(s.outbox) == 0:
		s.close()
	case s.task.MaxTurns > 0 && s.history.turns >= s.task.MaxTurns:
		// The CLI counts the turns of each message anew.
		s.history.overTurns = true
		s.close()
	default:
		s.history.over = false
		if a.Text != "" {
			s.outbox = append([]agent.Message{{Text: a.Text}}, s.outbox...)
		}
		if a.Wait {
			s.followUp = time.After(s.options.ExitGrace)
		}
	}
}

// close ends the conversation: the agent has ExitGrace to go.
func (s *session) close() {
	s.phase = closing
	s.followUp = nil
	s.shut()
	if s.grace == nil && !s.ended {
		s.grace = time.After(s.options.ExitGrace)
	}
}

// shut closes stdin, which also wakes the writer.
func (s *session) shut() {
	s.deaf = true
	// A second time it is closed already; an error of a pipe's close is no loss.
	_ = s.stdin.Close()
}

// stop ends the session before its time.
func (s *session) stop() {
	if s.phase != closing {
		s.stopped = true
	} else if s.cut && !s.ended {
		s.mute = true
	}
	if s.phase == working {
		s.phase = closing
	}
	s.followUp = nil
	s.interrupt()
}

// interrupt has the process end now, and killed after KillGrace.
func (s *session) interrupt() {
	if err := s.process.Interrupt(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		// Without its supervisor there is nobody to interrupt it: Wait will clean up.
		s.failure = errors.Join(s.failure, fmt.Errorf("interrupt the agent: %w", err), s.process.Kill())
	}
}

// outputEnded is called at the end of stdout. A process that lives on without
// it can tell nothing more.
func (s *session) outputEnded() {
	if s.phase == working {
		s.history.over, s.cut = s.turnOver, !s.turnOver
		s.close()
	}
}

// processEnded is called when the process, and all that it started, is gone.
func (s *session) processEnded() {
	s.ended = true
	s.grace, s.followUp = nil, nil
	s.shut()
	deadline := time.Now().Add(drainWait)
	if err := errors.Join(s.stdout.SetReadDeadline(deadline), s.stderr.SetReadDeadline(deadline)); err != nil {
		s.failure = errors.Join(s.failure, err)
	}
}

// report is what is known after the end.
func (s *session) report() agent.Report {
	d := death{
		stopped: s.stopped, mute: s.mute, code: s.exit.Code, signal: s.exit.Signal,
		stderr: s.logs.stderr.tail(),
	}
	var err error
	if d.server, err = fileTail(mcpLog(s.task)); err != nil {
		d.server = err.Error() // it is only to explain a failure
	}
	r := s.history.report(d)
	if code := s.exit.Code; code >= 0 {
		r.Exit = &code
	}
	for _, l := range s.exit.Leftovers {
		r.Leftovers = append(r.Leftovers, fmt.Sprintf("%d: %s", l.Pid, strings.TrimSpace(l.Command)))
	}
	r.Leftovers = append(r.Leftovers, s.exit.Reached...)
	if s.undead != nil {
		r.Leftovers = append(r.Leftovers, s.undead.Error())
	}
	return r
}

// report is what the conversation and its end come to.
func (h *history) report(d death) agent.Report {
	r := agent.Report{
		Model: h.model, Version: h.version, Turns: h.turns + h.messages, ToolCalls: h.toolCalls, LastWords: h.lastWords,
		StderrTail: d.stderr, Denials: h.denials, Unreadable: h.unreadable, Began: h.began(),
	}
	r.Ending, r.Reason, r.ResetAt = classify(h, d)
	r.Tokens, r.CostUSD, r.CostKnown = h.usage()
	for _, name := range slices.Sorted(maps.Keys(h.usages)) {
		r.Usage = append(r.Usage, h.usages[name])
	}
	return r
}
