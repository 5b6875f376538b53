// Package conversation runs a session's conversation with an agent by JSON-RPC on its standard streams: from the first
// turn to the end of its process and of all processes that it started. The messages and their meaning are the agent's
// [Dialect].
package conversation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"ralph"
	"ralph/internal/jsonrpc"
	"ralph/internal/proc"
	"ralph/internal/text"
	"ralph/loop/agent"
	"ralph/loop/agent/process"
)

// Parting is the time for an agent to report the use of a cancelled turn.
const Parting = 2 * time.Second

// maxName is the maximal length of the name of a model or a version, in characters.
const maxName = 200

// A Dialect is the protocol of one kind of agents. Hear and Answer may be called at any time.
// The other methods are called one at a time, except for Steer, which is called during Turn.
type Dialect interface {
	// Begin prepares the agent for its first turn. conn is the dialect's from then on.
	Begin(ctx context.Context, conn *jsonrpc.Conn) error
	// Turn sends the given message, which is empty after Unsaid, and waits for the end of the turn; the end of ctx
	// cancels it. The conversation may continue after a completed turn. The error is [jsonrpc.ErrClosed] or ctx's if
	// nobody has ended the turn, or else the reason why it could not begin.
	Turn(ctx context.Context, messages []agent.Message) (completed bool, err error)
	// Steer sends a message during a turn. If the agent does not accept it, the message goes with
	// the next turn.
	Steer(ctx context.Context, m agent.Message) bool
	// Refused returns the service's words in an error of Begin or Turn, if it has any.
	Refused(err error) *agent.Failure
	// Unsaid reports that the agent needs another turn with a message of ralph.
	Unsaid() bool
	// Hear takes in a message of the agent; ok is false for other output.
	Hear(m jsonrpc.Message, ok bool) Heard
	// Answer answers a request of the agent; cut means that a part of it is missing.
	Answer(ctx context.Context, m jsonrpc.Message, cut bool) (any, error)
	// Report returns the result after the end.
	Report(d agent.Death) agent.Report
}

// Heard is the state of the conversation after a message.
type Heard struct {
	Events []agent.Event
	USD    float64      // its known cost until now
	Tokens ralph.Tokens // tokens that it has used
	Steps  int          // requests of the model
	Stop   bool         // it must not continue
}

// Options configure how a conversation is run.
type Options struct {
	Profile *agent.Profile
	Alone   time.Duration // for the process to end by itself after its input is closed
	Wait    time.Duration // for a person's next message
	Start   time.Duration // for the first turn to begin
	Tools   time.Duration // for ralph's tools to reach the agent after a turn has begun
	Bare    bool          // messages are without the protocol's version
}

// A session is one running process and its conversation.
type session struct {
	dialect Dialect
	options Options
	task    agent.Assignment
	process *process.Process
	conn    *jsonrpc.Conn

	outbox []agent.Message // next message
	stop   func()          // the talk, now
	death  agent.Death
	exit   proc.Exit
	undead error
}

// Run runs a conversation until the process and all that it started is gone, and its output
// is read. The report is valid even with an error.
func Run(
	ctx context.Context, d Dialect, p *process.Process, task agent.Assignment, o Options,
) (agent.Report, error) {
	s := &session{dialect: d, options: o, task: task, process: p, outbox: []agent.Message{{Text: task.Prompt}}}
	s.conn = jsonrpc.New(p.Output(), p.Stdin, jsonrpc.Options{
		Transcript: p.Transcript, Masked: p.Masked, Seen: s.seen, Answer: d.Answer, Bare: o.Bare,
	})
	err := s.run(ctx)
	r := d.Report(s.death)
	r.Model, r.Version = text.Clip(r.Model, maxName), text.Clip(r.Version, maxName)
	if code := s.exit.Code; code >= 0 {
		r.Exit = &code
	}
	r.Leftovers = process.Leftovers(s.exit, s.undead)
	return r, err
}

// seen takes in a message of the agent.
func (s *session) seen(m jsonrpc.Message, ok bool) {
	heard := s.dialect.Hear(m, ok)
	switch limit, most := s.task, agent.Dearest.Of(heard.Tokens); {
	case limit.MaxTokens > 0 && heard.Tokens.Sum() > limit.MaxTokens:
		s.death.Over = fmt.Sprintf("reached the limit of %d tokens", limit.MaxTokens)
	case limit.MaxTokens == 0 && limit.MaxCost > 0 && heard.USD == 0 && most > limit.MaxCost:
		s.death.Over = fmt.Sprintf("reached the limit of tokens: %d, of a model whose price is unknown, are worth %s at the "+
			"dearest known price (set its price, or limits.session_tokens)", heard.Tokens.Sum(), text.Money(most))
	case limit.MaxCost > 0 && heard.USD > limit.MaxCost:
		s.death.Over = fmt.Sprintf("reached the limit of cost: %s of %s", text.Money(heard.USD), text.Money(limit.MaxCost))
	case limit.MaxTurns > 0 && heard.Steps > limit.MaxTurns:
		s.death.Over = fmt.Sprintf("reached the limit of turns after %d", limit.MaxTurns)
	}
	if heard.Stop || s.death.Over != "" {
		s.stop()
	}
	if len(heard.Events) == 0 {
		heard.Events = []agent.Event{{Kind: agent.Other}}
	}
	for _, e := range heard.Events {
		if s.task.Seen != nil {
			s.task.Seen(e)
		}
	}
}

// run leads the conversation to its end.
func (s *session) run(ctx context.Context) error {
	// The output ends with the process; the processing of a turn does not.
	stopped, stop := context.WithCancel(ctx)
	defer stop()
	talk, hush := context.WithCancel(stopped)
	defer hush()
	s.stop = stop
	var work sync.WaitGroup
	var served, drained error
	output, exited, talked := make(chan struct{}), make(chan struct{}), make(chan struct{})
	work.Go(func() { defer close(output); served = s.conn.Serve(context.WithoutCancel(ctx)) })
	work.Go(s.process.CollectStderr)
	work.Go(func() {
		defer close(exited)
		s.exit, s.undead = s.process.Wait()
		drained = s.process.Drain()
	})
	finished := false
	work.Go(func() { defer close(talked); finished = s.talk(ctx, talk) })
	select {
	case <-talked:
	case <-output: // it has nothing more to say, and cannot be told anything
	case <-exited:
	case <-stopped.Done():
		late := time.NewTimer(2 * Parting)
		defer late.Stop()
		select { // it is told to stop
		case <-talked:
		case <-exited:
		case <-late.C: // it does not read
		}
	}
	hush()
	err := s.process.Stdin.Close() // this also ends pending writes
	<-talked
	if ctx.Err() != nil && !finished {
		s.death.Cut(ctx)
	}
	err = errors.Join(err, s.end(stopped, exited))
	work.Wait()
	if errors.Is(served, os.ErrDeadlineExceeded) {
		served = nil
	}
	s.death.Code, s.death.Signal, s.death.Stderr = s.exit.Code, s.exit.Signal, s.process.StderrTail()
	return errors.Join(err, served, drained, s.process.Close())
}

// end ends the process after closing its input: by itself, then interrupted, then killed.
func (s *session) end(stopped context.Context, exited <-chan struct{}) error {
	grace := time.NewTimer(s.options.Alone)
	defer grace.Stop()
	select {
	case <-exited:
		return nil
	case <-stopped.Done():
	case <-grace.C:
	}
	if err := s.process.Interrupt(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		// Without its supervisor nobody can interrupt it: Wait will clean up.
		return errors.Join(fmt.Errorf("interrupt the agent: %w", err), s.process.Kill())
	}
	return nil
}

// talk leads the conversation. It is true when that has come to its own end.
func (s *session) talk(whole, ctx context.Context) bool {
	start, started := context.WithTimeout(ctx, s.options.Start)
	err := s.dialect.Begin(start, s.conn)
	late := err != nil && start.Err() != nil
	started()
	if err == nil && !s.toolless() {
		s.process.FindOwn()
	}
	if err == nil && s.task.Dry {
		select {
		case <-s.task.Channel.Listed:
		case <-ctx.Done():
		}
		return ctx.Err() == nil
	}
	for err == nil {
		var more, over bool
		if more, err = s.turn(ctx); err != nil {
			break
		}
		if !more {
			return ctx.Err() == nil
		}
		if more, over = s.next(whole, ctx); !more {
			return over
		}
	}
	if ctx.Err() != nil || errors.Is(err, jsonrpc.ErrClosed) || errors.Is(err, syscall.EPIPE) {
		return false // it has gone, and its end gives the reason
	}
	if s.death.Refusal = s.dialect.Refused(err); late {
		s.death.Refusal = &agent.Failure{Text: fmt.Sprintf("it was not ready after %s", s.options.Start)}
		return true
	}
	if s.toolless() && s.options.Profile.NeedsTools {
		s.missTools(s.death.Refusal.Text)
	}
	return true
}

// toolless reports that ralph's tools have not reached the agent.
func (s *session) toolless() bool {
	select {
	case <-s.task.Channel.Listed:
		return false
	default:
		return s.task.Channel.Listed != nil
	}
}

// missTools notes that they have not, and why if that is known.
func (s *session) missTools(why string) {
	s.death.Toolless = agent.Sentence(s.options.Profile.Title+" was not told ralph's tools", why)
}

// turn runs one turn of the agent, and passes people's messages on. It is false if the conversation is over; the
// error is the reason why the turn could not begin.
func (s *session) turn(ctx context.Context) (more bool, err error) {
	messages := s.outbox
	s.outbox = nil
	turn, over := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer over() // only an agent in a turn can be steered
		more, err = s.dialect.Turn(turn, messages)
	}()
	tools := time.NewTimer(s.options.Tools)
	defer tools.Stop()
	listed := s.task.Channel.Listed
	for {
		select {
		case <-ended:
			switch {
			case ctx.Err() != nil || errors.Is(err, jsonrpc.ErrClosed):
				return false, nil
			case err == nil && s.toolless():
				s.missTools("")
				return false, nil
			}
			return more, err
		case <-listed:
			listed = nil
			s.process.FindOwn() // before its first tool
		case <-tools.C:
			if s.toolless() {
				s.missTools("")
				over()
				<-ended
				return false, nil
			}
		case m := <-s.task.Say:
			if !s.dialect.Steer(turn, m) {
				s.outbox = append(s.outbox, m)
			}
		}
	}
}

// next decides how the conversation continues after a turn: whether it does, and if not,
// whether it is complete.
func (s *session) next(whole, ctx context.Context) (more, over bool) {
	if len(s.outbox) > 0 || s.dialect.Unsaid() {
		return true, false // somebody's words were too late for the turn
	}
	var a agent.Answer
	if s.task.TurnEnded != nil {
		a = s.task.TurnEnded(whole, s.process.Turn())
	}
	switch {
	case a.Over:
		return false, true
	case ctx.Err() != nil:
		return false, whole.Err() == nil
	case a.Text != "":
		s.outbox = append(s.outbox, agent.Message{Text: a.Text})
	case a.Wait:
		wait := time.NewTimer(s.options.Wait)
		defer wait.Stop()
		select {
		case m := <-s.task.Say:
			s.outbox = append(s.outbox, m)
		case <-wait.C:
			return s.next(whole, ctx)
		case <-ctx.Done():
			return false, false
		}
	}
	return len(s.outbox) > 0, true
}

// Told notes that the agent has received people's messages.
func Told(messages ...agent.Message) {
	for _, m := range messages {
		if m.Delivered != nil {
			m.Delivered()
		}
	}
}

// Salvage reads the transcript of a session, line by line, and the end of its standard error if d keeps one.
// It is false if there is none.
func Salvage(logDir string, d *agent.Death, line func(l jsonrpc.Line)) (ok bool, err error) {
	f, err := os.Open(filepath.Join(logDir, agent.TranscriptFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		defer f.Close()
		err = jsonrpc.Read(f, line)
	}
	if err != nil {
		return false, fmt.Errorf("transcript: %w", err)
	}
	if d.Stderr == "" {
		d.Stderr, err = process.StderrTail(logDir)
	}
	return err == nil, err
}
