// Package jsonrpc is one end of a JSON-RPC 2.0 connection whose messages are lines, as coding
// agents use it on their standard streams: the Agent Client Protocol, and codex's.
//
// Lines may be of any length: memory is bounded by cutting their strings, and the handler of a
// request is told if a part is missing. Both directions are recorded in full in a transcript, one
// message per line (see [Line]).
package jsonrpc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"ralph/internal/jsonl"
)

// Bounds of a line in memory.
const (
	maxString = 1 << 20 // bytes of each JSON string
	maxLine   = 8 << 20 // bytes of a line after cutting its strings
	maxAsked  = 32      // unanswered requests of the peer; further ones get no answer
)

// Error codes of the protocol.
const (
	MethodNotFound = -32601
	InternalError  = -32603
)

// An Error is the other end's error response to a call.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error returns the message with its code.
func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// ErrClosed is the error of a call without a response: the other end has closed its output.
var ErrClosed = errors.New("the connection is closed")

// A Message is a request, which has an ID and a method, a notification, which has no ID, or a
// response, which has no method.
type Message struct {
	JSONRPC string          `json:"jsonrpc,omitempty"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

// A Line is a line of a transcript: a message and its recipient.
type Line struct {
	To      string  `json:"to"` // ToAgent or ToClient
	Message Message `json:"m"`
}

// The two ends as named in a [Line]. This end is the client.
const (
	ToAgent  = "agent"
	ToClient = "client"
)

// Options configure a connection. All are optional.
type Options struct {
	// Transcript receives every message of both directions, as a [Line]. An error of it ends the
	// connection. An incoming line that is not a message is recorded as {"to":"client","raw":"…"}.
	Transcript io.Writer
	// Masked returns a sent line for the transcript; nil keeps the line.
	Masked func(line []byte) []byte
	// Seen is called for every incoming line, in order, before it is processed; ok reports whether
	// it is a message. It must not block.
	Seen func(m Message, ok bool)
	// Answer is called for each request of the other end, each in its own goroutine; cut reports
	// whether a part is missing because it was too long. Errors are sent to the other end; an
	// [Error] is sent unchanged. Without Answer, every request gets [MethodNotFound].
	Answer func(ctx context.Context, m Message, cut bool) (result any, err error)
	// Bare omits the member "jsonrpc", as codex does.
	Bare bool
}

// A Conn is one end of a connection. Its methods may be called by several goroutines.
type Conn struct {
	options Options
	in      io.Reader
	out     io.Writer
	spool   spool

	writing sync.Mutex // one message at a time

	mu      sync.Mutex
	next    int
	waiting map[string]chan Message // by the call's ID; nil when the other end has closed
}

// New returns a connection that reads from in and writes to out. It reads nothing before
// [Conn.Serve].
func New(in io.Reader, out io.Writer, o Options) *Conn {
	if o.Transcript == nil {
		o.Transcript = io.Discard
	}
	return &Conn{options: o, in: in, out: out, spool: spool{w: o.Transcript}, waiting: map[string]chan Message{}}
}

// Call sends a request, and decodes the response into result unless that is nil. The error is an
// [Error], [ErrClosed], or that of ctx, of writing, or of decoding the result.
func (c *Conn) Call(ctx context.Context, method string, params, result any) error {
	answer, err := c.Ask(method, params)
	if err != nil {
		return err
	}
	return answer(ctx, result)
}

// Ask is the first half of Call: the request has been sent when it returns. answer is the second
// half.
func (c *Conn) Ask(method string, params any) (answer func(ctx context.Context, result any) error, err error) {
	c.mu.Lock()
	if c.waiting == nil {
		c.mu.Unlock()
		return nil, fmt.Errorf("%s: %w", method, ErrClosed)
	}
	c.next++
	id := strconv.Itoa(c.next)
	come := make(chan Message, 1)
	c.waiting[id] = come
	c.mu.Unlock()
	if err := c.send(Message{ID: json.RawMessage(id), Method: method}, params); err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	return func(ctx context.Context, result any) error {
		if err := answered(ctx, come, result); err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		return nil
	}, nil
}

// answered waits for a response and decodes it.
func answered(ctx context.Context, come <-chan Message, result any) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case m, ok := <-come:
		switch {
		case !ok:
			return ErrClosed
		case m.Error != nil:
			return m.Error
		case result == nil:
			return nil
		}
		if err := tolerant(json.Unmarshal(m.Result, result)); err != nil {
			return fmt.Errorf("the answer cannot be read: %w", err)
		}
		return nil
	}
}

// tolerant ignores a value of an unexpected type: the decoder has skipped it and decoded the rest.
func tolerant(err error) error {
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}

// Notify sends a notification.
func (c *Conn) Notify(method string, params any) error {
	if err := c.send(Message{Method: method}, params); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}

// send writes a message with params, if it has a method, or else with a result.
func (c *Conn) send(m Message, content any) error {
	b, err := json.Marshal(content)
	if err != nil {
		return err
	}
	switch {
	case m.Method != "":
		m.Params = b
	case m.Error == nil:
		m.Result = b
	}
	if !c.options.Bare {
		m.JSONRPC = "2.0"
	}
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	recorded := line
	if c.options.Masked != nil {
		recorded = c.options.Masked(line)
	}
	if err := c.spool.sent(recorded); err != nil {
		return err
	}
	_, err = c.out.Write(append(line, '\n'))
	return err
}

// Serve reads incoming messages until the other end closes. It returns when all of the other
// end's requests are answered or cancelled: their context ends with the input or with ctx. The
// error is from reading (not io.EOF) or from the transcript.
func (c *Conn) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var answers sync.WaitGroup
	room := make(chan struct{}, maxAsked)
	err := c.read(func(m Message, cut bool) {
		select {
		case room <- struct{}{}:
			answers.Go(func() { c.answer(ctx, m, cut); <-room })
		default: // a peer with that many requests reads no answers
		}
	})
	c.mu.Lock()
	for _, answer := range c.waiting {
		close(answer)
	}
	c.waiting = nil
	c.mu.Unlock()
	cancel()
	answers.Wait()
	return err
}

// read dispatches incoming messages.
func (c *Conn) read(asked func(m Message, cut bool)) error {
	return lines(c.in, c.spool.came, func(line []byte, cut bool) error {
		if len(line) > 0 {
			c.take(line, cut, asked)
		}
		return c.spool.ended()
	})
}

// lines passes on the input: each part on arrival, and each line, trimmed and with shortened
// strings. cut reports whether a part of the line is missing.
func lines(in io.Reader, came func(part []byte) error, ended func(line []byte, cut bool) error) error {
	parts := bufio.NewReaderSize(in, 64<<10)
	squeezed := jsonl.Squeezer{MaxString: maxString, MaxLine: maxLine}
	for {
		squeezed.Reset()
		size := 0
		var err error
		for {
			var part []byte
			part, err = parts.ReadSlice('\n')
			if cerr := came(part); cerr != nil {
				return cerr
			}
			part = bytes.TrimSuffix(part, []byte("\n"))
			size += len(part)
			squeezed.Add(part)
			if !errors.Is(err, bufio.ErrBufferFull) {
				break
			}
		}
		if eerr := ended(bytes.TrimSpace(squeezed.Line()), size > len(squeezed.Line())); eerr != nil {
			return eerr
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Read reads a transcript. It skips invalid lines.
func Read(transcript io.Reader, each func(Line)) error {
	return lines(transcript, func([]byte) error { return nil }, func(line []byte, _ bool) error {
		if l, ok := ParseLine(line); ok {
			each(l)
		}
		return nil
	})
}

// ParseLine parses a line of a transcript. Members of an unexpected type count as absent.
func ParseLine(line []byte) (l Line, ok bool) {
	ok = tolerant(json.Unmarshal(line, &l)) == nil && l.To != ""
	return l, ok
}

// take handles a line.
func (c *Conn) take(line []byte, cut bool, asked func(m Message, cut bool)) {
	m, ok := Parse(line)
	if c.options.Seen != nil {
		c.options.Seen(m, ok)
	}
	switch {
	case !ok:
	case m.Method != "" && m.ID != nil:
		asked(m, cut)
	case m.Method == "":
		c.mu.Lock()
		answer := c.waiting[string(m.ID)]
		delete(c.waiting, string(m.ID))
		c.mu.Unlock()
		if answer != nil {
			answer <- m
		}
	}
}

// Parse parses a message; ok is false if the line is not one. Members of an unexpected type count
// as absent.
func Parse(line []byte) (m Message, ok bool) {
	if line = bytes.TrimSpace(line); len(line) == 0 || line[0] != '{' {
		return Message{}, false
	}
	if tolerant(json.Unmarshal(line, &m)) != nil {
		return Message{}, false
	}
	if bytes.Equal(m.ID, []byte("null")) {
		m.ID = nil
	}
	return m, m.Method != "" || m.ID != nil
}

// answer answers a request. If it cannot be sent, the connection's end reports that.
func (c *Conn) answer(ctx context.Context, m Message, cut bool) {
	var result any
	var err error = &Error{Code: MethodNotFound, Message: "not supported: " + m.Method}
	if c.options.Answer != nil {
		result, err = c.options.Answer(ctx, m, cut)
	}
	if err != nil {
		refusal := &Error{Code: InternalError, Message: err.Error()}
		_ = errors.As(err, &refusal)
		_ = c.send(Message{ID: m.ID, Error: refusal}, nil)
		return
	}
	_ = c.send(Message{ID: m.ID}, result)
}

// A spool writes both directions to a transcript: incoming parts immediately, even of long lines,
// and messages sent during a line after it.
type spool struct {
	w io.Writer

	mu      sync.Mutex
	middle  bool   // within an incoming line
	raw     bool   // it is not an object
	pending []byte // messages sent during a line
	err     error
}

// came records a part of an incoming line, with its line break if that is its end.
func (s *spool) came(part []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	part = bytes.TrimSuffix(part, []byte("\n"))
	if !s.middle && len(part) > 0 {
		s.middle, s.raw = true, part[0] != '{'
		if s.raw {
			s.write([]byte(`{"to":"` + ToClient + `","raw":"`))
		} else {
			s.write([]byte(`{"to":"` + ToClient + `","m":`))
		}
	}
	if s.raw {
		quoted, err := json.Marshal(string(part))
		if err != nil { // impossible: every text has a JSON form
			return err
		}
		part = quoted[1 : len(quoted)-1]
	}
	s.write(part)
	return s.err
}

// ended is called at the end of a line.
func (s *spool) ended() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.raw:
		s.write([]byte("\"}\n"))
	case s.middle:
		s.write([]byte("}\n"))
	}
	s.middle, s.raw = false, false
	s.write(s.pending)
	s.pending = nil
	return s.err
}

// sent records a message to the other end.
func (s *spool) sent(line []byte) error {
	line = append(append([]byte(`{"to":"`+ToAgent+`","m":`), line...), "}\n"...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.middle {
		s.pending = append(s.pending, line...)
		return s.err
	}
	s.write(line)
	return s.err
}

func (s *spool) write(p []byte) {
	if s.err == nil && len(p) > 0 {
		_, s.err = s.w.Write(p)
	}
}
