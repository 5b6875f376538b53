package codex

import (
	"context"
	"errors"
	"sync"

	"ralph/internal/jsonrpc"
	"ralph/internal/pipe"
	"ralph/loop/agent"
	"ralph/loop/agent/conversation"
)

// A session is a [conversation.Dialect]: that of codex's app-server.
type session struct {
	options Options
	task    agent.Assignment
	conn    *jsonrpc.Conn

	thread string        // its id
	ended  chan struct{} // has one if a turn may have

	mu      sync.Mutex // guards the following messages
	turn    string     // the id of the one that is under way
	history history
	stream  stream
}

func newSession(o Options, task agent.Assignment) *session {
	return &session{options: o, task: task, ended: make(chan struct{}, 1), history: history{guarded: o.Guarded}}
}

// Hear takes in a message of codex.
func (s *session) Hear(m jsonrpc.Message, ok bool) conversation.Heard {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history.add(m, ok)
	usd, _ := s.history.cost(s.options.Cost)
	if m.Method == "turn/completed" {
		select {
		case s.ended <- struct{}{}:
		default: // it will be looked at
		}
	}
	return conversation.Heard{
		Events: s.stream.events(m), USD: usd, Tokens: s.history.spent(), Steps: s.history.turns,
		Stop: s.history.unasked != "",
	}
}

// Answer allows commands that the hook has allowed. Codex asks a second time about commands on its own list, such as
// rm -f, and refuses them where it may not ask.
func (s *session) Answer(_ context.Context, m jsonrpc.Message, _ bool) (any, error) {
	switch m.Method {
	case "item/commandExecution/requestApproval", "item/fileChange/requestApproval":
		return map[string]string{"decision": "accept"}, nil
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.MethodNotFound, Message: "not supported: " + m.Method}
}

// Begin starts a thread. Only this thread trusts the hook.
func (s *session) Begin(ctx context.Context, conn *jsonrpc.Conn) error {
	s.conn = conn
	info := map[string]any{"clientInfo": map[string]string{"name": "ralph", "title": "ralph", "version": "1"}}
	if err := s.conn.Call(ctx, "initialize", info, nil); err != nil {
		return err
	}
	if err := s.conn.Notify("initialized", map[string]any{}); err != nil {
		return err
	}
	// Not among the arguments, which other programs can read.
	config := map[string]any{"mcp_servers." + serverName + ".env." + pipe.Ticket: s.task.Channel.Ticket}
	if s.task.Effort != "" {
		config["model_reasoning_effort"] = s.task.Effort
	}
	if s.options.Guarded {
		trusted, err := s.trust(ctx)
		if err != nil {
			return err
		}
		config["hooks.state"] = trusted
	}
	start := map[string]any{
		"cwd": s.task.Dir, "approvalPolicy": "on-request", "sandbox": "danger-full-access",
		"config": config, "developerInstructions": instructions,
	}
	if s.task.Model != "" {
		start["model"] = s.task.Model
	}
	var began struct {
		Thread struct {
			ID string `json:"id"`
		} `json:"thread"`
	}
	if err := s.conn.Call(ctx, "thread/start", start, &began); err != nil {
		return err
	}
	s.thread = began.Thread.ID
	return nil
}

// instructions tell where ralph's tools are: codex hides servers' tools from some models,
// which have to look for them.
const instructions = "The tools whose names begin with " + toolPrefix + " are of the MCP server " + serverName +
	". They are always there: call them by name. If one is not among the tools that you are shown, " +
	"find it with tool_search."

// trust makes codex ask the hook.
func (s *session) trust(ctx context.Context) (map[string]any, error) {
	var list struct {
		Data []struct {
			Hooks []struct {
				Key     string `json:"key"`
				Command string `json:"command"`
				Hash    string `json:"currentHash"`
			} `json:"hooks"`
		} `json:"data"`
	}
	if err := s.conn.Call(ctx, "hooks/list", map[string]any{"cwds": []string{s.task.Dir}}, &list); err != nil {
		return nil, err
	}
	for _, d := range list.Data {
		for _, h := range d.Hooks {
			if h.Command == hookCommand(s.options) {
				return map[string]any{h.Key: map[string]any{"trusted_hash": h.Hash, "enabled": true}}, nil
			}
		}
	}
	return nil, errors.New("it does not know ralph's hook, without which it would ask nobody")
}

// input returns the message of a turn.
func (s *session) input(messages []agent.Message) map[string]any {
	var parts []map[string]string
	for _, m := range messages {
		parts = append(parts, map[string]string{"type": "text", "text": m.Text})
		for _, p := range s.task.Pictures(m.Text) {
			parts = append(parts, map[string]string{"type": "image", "url": p.URL()})
		}
	}
	return map[string]any{"threadId": s.thread, "input": parts}
}

// Turn is one of the thread's.
func (s *session) Turn(ctx context.Context, messages []agent.Message) (completed bool, err error) {
	var began struct {
		Turn turn `json:"turn"`
	}
	s.mu.Lock()
	s.history.begin()
	s.mu.Unlock()
	err = s.conn.Call(ctx, "turn/start", s.input(messages), &began)
	var refused *jsonrpc.Error
	s.mu.Lock()
	s.history.open = s.history.open && !errors.As(err, &refused)
	s.turn = began.Turn.ID
	s.mu.Unlock()
	if err != nil {
		return false, err
	}
	conversation.Told(messages...)
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-s.ended:
			s.mu.Lock()
			last, worked := s.history.last, !s.history.trace().Nothing
			s.mu.Unlock()
			if last != nil && last.ID == began.Turn.ID {
				return last.Status == "completed" && worked, nil
			}
		}
	}
}

// Steer tells codex something during its turn, which may be too late.
func (s *session) Steer(ctx context.Context, m agent.Message) bool {
	in := s.input([]agent.Message{m})
	s.mu.Lock()
	in["expectedTurnId"] = s.turn
	s.mu.Unlock()
	if err := s.conn.Call(ctx, "turn/steer", in, nil); err != nil {
		return false
	}
	conversation.Told(m)
	return true
}

// Refused returns codex's words.
func (s *session) Refused(err error) *agent.Failure { return &agent.Failure{Text: err.Error()} }

// Unsaid is nothing: the hook has told it all.
func (s *session) Unsaid() bool { return false }

// Report returns the result after the end.
func (s *session) Report(d agent.Death) agent.Report {
	return s.history.report(d, s.options.Cost)
}
