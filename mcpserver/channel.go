package mcpserver

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/net/netutil"

	"ralph"
	"ralph/internal/permission"
	"ralph/internal/pipe"
	"ralph/internal/text"
	"ralph/signals"
	"ralph/store"
)

// Limits of a session's clients.
const (
	maxClients = 16      // connected at once; others wait
	maxCalls   = 32      // unanswered calls per client; further ones wait in its socket
	maxMessage = 4 << 20 // bytes, more than any model writes; a client that sends more is disconnected
)

// A Channel lets the agent of one session call the run's tools, through a Unix socket in a
// folder that only this session can see. One connection may use the tools: the one that presents
// the session's ticket, which is valid once. All other programs of the session can ask whether a
// tool may be used, and report commands for people. There are no clients after [Channel.Close].
type Channel struct {
	listener net.Listener
	session  Session
	over     context.Context
	end      context.CancelFunc
	clients  sync.WaitGroup

	tickets sync.Mutex
	ticket  string // unused; "" once it is used
	refused int    // refused connections and signals of other programs

	listed     chan struct{} // closed once a client has received the list of tools
	listedOnce sync.Once

	mu sync.Mutex // held during a call
}

// socketFile and unreportedFile are files in a channel's folder.
const (
	socketFile     = "mcp"
	unreportedFile = "unreported"
)

// OpenChannel serves a session from an empty folder until Close.
func OpenChannel(s Session, folder string) (*Channel, error) {
	if s.Enforce {
		s.unreported = filepath.Join(folder, unreportedFile)
		if err := os.WriteFile(s.unreported, nil, 0o600); err != nil {
			return nil, fmt.Errorf("channel: %w", err)
		}
	}
	listener, err := net.Listen("unix", filepath.Join(folder, socketFile))
	if err != nil {
		return nil, fmt.Errorf("channel: %w", err)
	}
	c := &Channel{
		listener: netutil.LimitListener(listener, maxClients), session: s, listed: make(chan struct{}),
		ticket: rand.Text(),
	}
	c.over, c.end = context.WithCancel(context.Background())
	c.clients.Go(c.accept)
	return c, nil
}

// Socket returns the path that clients connect to.
func (c *Channel) Socket() string { return c.listener.Addr().String() }

// Ticket returns the ticket for the tools; "" once it is used. The first connection that presents it speaks for the
// session.
func (c *Channel) Ticket() string {
	c.tickets.Lock()
	defer c.tickets.Unlock()
	return c.ticket
}

// spend reports whether a ticket is the session's. If so, next replaces it.
func (c *Channel) spend(ticket, next string) bool {
	c.tickets.Lock()
	defer c.tickets.Unlock()
	ok := c.ticket != "" && subtle.ConstantTimeCompare([]byte(ticket), []byte(c.ticket)) == 1
	if ok {
		c.ticket = next
	}
	return ok
}

// errStranger is the answer to a program that is not the agent.
var errStranger = errors.New("refused: only the program that ralph started as this session's agent uses these tools, " +
	"over one connection. The attempt was recorded")

// maxStrangers is the maximum number of recorded refused attempts of a session.
const maxStrangers = 20

// refuse records that a program that is not the agent tried to use a tool.
func (c *Channel) refuse(ctx context.Context, what string) error {
	c.tickets.Lock()
	c.refused++
	many := c.refused > maxStrangers
	c.tickets.Unlock()
	if many || c.session.Store == nil || c.session.TaskID == 0 { // without a store an agent is only tried out
		return errStranger
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.session.Store.Tx(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		s, err := tx.Session(c.session.SessionID)
		if err != nil {
			return err
		}
		return tx.RecordStranger(s, text.Line(what, 100))
	})
	return errors.Join(errStranger, err)
}

// Unreported returns the file that exists until the session has reported a
// phase; "" if it need not.
func (c *Channel) Unreported() string { return c.session.unreported }

// Listed is closed once a client has received the list of tools: then the agent has them, even if it denies that.
func (c *Channel) Listed() <-chan struct{} { return c.listed }

// Close disconnects all clients and accepts no new ones. Calls in progress
// are completed, except for questions to people, which are cancelled.
func (c *Channel) Close() error {
	c.end()
	err := c.listener.Close()
	c.clients.Wait()
	return err
}

// accept accepts clients.
func (c *Channel) accept() {
	server := c.session.Server()
	server.AddReceivingMiddleware(c.oneByOne)
	for {
		conn, err := c.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // such as too many open files
			select {
			case <-time.After(100 * time.Millisecond):
			case <-c.over.Done():
			}
			continue
		}
		c.clients.Go(func() {
			// Close must not wait for a call that waits, or a client that does not read.
			stop := context.AfterFunc(c.over, func() { _ = conn.Close() })
			defer stop()
			// One client's error does not matter to the others.
			_ = server.Run(context.Background(), &bounded{
				mcp.IOTransport{Reader: conn, Writer: conn, MaxLineLength: maxMessage},
				map[string]question{pipe.Attempt: c.attempt, pipe.Hook: c.ask, pipe.Signal: c.said},
				c,
			})
		})
	}
}

// oneByOne executes a session's calls one at a time, so that only one at a time waits to write to the database.
// Requests for a person's permission do not wait.
func (c *Channel) oneByOne(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stop := context.AfterFunc(c.over, cancel)
		defer stop()
		if call, ok := req.(*mcp.CallToolRequest); ok && call.Params.Name != PermissionTool {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.over.Err() != nil {
				return nil, errOver
			}
		}
		result, err := next(ctx, method, req)
		if method == "tools/list" && err == nil {
			c.listedOnce.Do(func() { close(c.listed) })
		}
		return result, err
	}
}

var errOver = errors.New("the session is over")

// attempt records the command, and returns the session that was refused;
// "" if the command was for another project.
func (c *Channel) attempt(ctx context.Context, params json.RawMessage) (any, error) {
	var q struct{ Command, State, Dir string }
	if err := json.Unmarshal(params, &q); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	rel, err := filepath.Rel(c.session.Dir, q.Dir)
	if own := q.State == c.session.State || err == nil && filepath.IsLocal(rel); !own || c.over.Err() != nil {
		return "", nil
	}
	var s ralph.Session
	err = c.session.Store.Tx(ctx, func(tx *store.Tx) (err error) {
		if s, err = tx.Session(c.session.SessionID); err != nil {
			return err
		}
		return tx.RecordAttempt(s, text.Line(q.Command, 200))
	})
	return fmt.Sprintf("session %.8s on TASK-%d of an agent", s.ID, s.TaskID), err
}

// ask answers an agent's hook whether the model may use a tool: the reason why not, or "".
func (c *Channel) ask(ctx context.Context, params json.RawMessage) (any, error) {
	var q struct {
		Tool  string          `json:"tool_name"`
		Input json.RawMessage `json:"tool_input"`
	}
	if err := json.Unmarshal(params, &q); err != nil || q.Tool == "" {
		//nolint:nilerr // the error is the answer
		return "ralph could not read the question: it needs tool_name and tool_input", nil
	}
	uses := []permission.Use{{Tool: q.Tool, Input: q.Input}}
	if c.session.Uses != nil {
		uses = c.session.Uses(q.Tool, q.Input)
	}
	why, err := c.Permit(ctx, uses)
	if err != nil {
		return "ralph could not decide: " + err.Error(), nil //nolint:nilerr // the error is the answer
	}
	return why, nil
}

// Permit decides by the session's rules whether tools may be used, and records the decisions.
// It returns the reason why not, or "". It may wait for people, until the channel is closed.
func (c *Channel) Permit(ctx context.Context, uses []permission.Use) (why string, err error) {
	if c.session.Rules == nil {
		return "", nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.over, cancel)()
	for _, use := range uses {
		allowed, why, err := c.session.permit(ctx, use.Tool, use.Input)
		if err != nil || !allowed {
			return why, err
		}
	}
	return "", nil
}

// said records a signal of an agent without tools, which uses a command line; see
// [pipe.Signal]. It spends the ticket, and the answer has the next one.
func (c *Channel) said(ctx context.Context, params json.RawMessage) (any, error) {
	var q struct {
		Ticket string
		Verb   ralph.Verb
		Input  json.RawMessage
	}
	if err := json.Unmarshal(params, &q); err != nil {
		return nil, err
	}
	next := rand.Text()
	if !c.spend(q.Ticket, next) {
		err := c.refuse(ctx, "ralph signal "+string(q.Verb))
		return pipe.Answer{Refused: err.Error()}, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over.Err() != nil {
		return nil, errOver
	}
	if c.session.Mask != nil {
		q.Input = json.RawMessage(c.session.Mask(string(q.Input)))
	}
	payload, err := signals.Parse(q.Verb, q.Input)
	if err == nil {
		var told string
		if told, err = recorded(Options{Say: c.session.say})(context.WithoutCancel(ctx), payload); err == nil {
			return pipe.Answer{Said: told, Ticket: next}, nil
		}
	}
	return pipe.Answer{Refused: err.Error(), Ticket: next}, nil
}

// A question handles requests from the channel's clients that are not tool calls.
type question func(ctx context.Context, params json.RawMessage) (any, error)

// bounded is a transport that reads no further call while maxCalls are unanswered. It passes on the messages of the
// session's agent, and answers the questions of all.
type bounded struct {
	mcp.IOTransport
	questions map[string]question
	channel   *Channel
}

// Connect implements [mcp.Transport].
func (b *bounded) Connect(ctx context.Context) (mcp.Connection, error) {
	inner, err := b.IOTransport.Connect(ctx)
	return &boundedConnection{
		Connection: inner, questions: b.questions, channel: b.channel,
		calls: make(chan struct{}, maxCalls), closed: make(chan struct{}),
	}, err
}

type boundedConnection struct {
	mcp.Connection
	questions map[string]question
	channel   *Channel
	speaks    bool          // it has presented the session's ticket
	calls     chan struct{} // one entry per unanswered call
	closed    chan struct{}
	once      sync.Once
}

// Read implements [mcp.Connection].
func (b *boundedConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := b.Connection.Read(ctx)
		if err != nil {
			return nil, err
		}
		call, ok := m.(*jsonrpc.Request)
		if ok && call.Method == pipe.Speak {
			if err := b.present(ctx, call); err != nil {
				return nil, err
			}
			continue
		}
		var ask question
		if ok && call.IsCall() {
			ask = b.questions[call.Method]
		}
		if ask == nil && !b.speaks {
			return nil, b.turnAway(ctx, call)
		}
		if !ok || !call.IsCall() {
			return m, nil
		}
		if ask == nil {
			select {
			case b.calls <- struct{}{}:
				return m, nil
			case <-b.closed:
				return nil, net.ErrClosed
			}
		}
		result, err := ask(ctx, call.Params)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(result)
		if err == nil {
			err = b.Connection.Write(ctx, &jsonrpc.Response{ID: call.ID, Result: text})
		}
		if err != nil {
			return nil, err
		}
	}
}

// present accepts the ticket of a connection. The error means that it is not the session's.
func (b *boundedConnection) present(ctx context.Context, r *jsonrpc.Request) error {
	var p struct{ Ticket string }
	if err := json.Unmarshal(r.Params, &p); err != nil || !b.channel.spend(p.Ticket, "") {
		return b.channel.refuse(ctx, r.Method)
	}
	b.speaks = true
	return nil
}

// turnAway refuses a connection that asks for tools without a ticket. r is nil for anything but a request.
func (b *boundedConnection) turnAway(ctx context.Context, r *jsonrpc.Request) error {
	if r == nil {
		return b.channel.refuse(ctx, "a response")
	}
	what := r.Method
	var call mcp.CallToolParamsRaw
	if json.Unmarshal(r.Params, &call) == nil && call.Name != "" {
		what = call.Name
	}
	err := b.channel.refuse(ctx, what)
	if r.IsCall() {
		refusal := &jsonrpc.Error{Code: refusedCode, Message: errStranger.Error()}
		err = errors.Join(err, b.Connection.Write(ctx, &jsonrpc.Response{ID: r.ID, Error: refusal}))
	}
	return err
}

// refusedCode is the JSON-RPC error code for a program that is not the agent.
const refusedCode = -32001

// Write implements [mcp.Connection].
func (b *boundedConnection) Write(ctx context.Context, m jsonrpc.Message) error {
	if _, ok := m.(*jsonrpc.Response); ok {
		select {
		case <-b.calls:
		default: // an answer without a call
		}
	}
	return b.Connection.Write(ctx, m)
}

// Close implements [mcp.Connection].
func (b *boundedConnection) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Connection.Close()
}
