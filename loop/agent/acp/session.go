package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"ralph/internal/jsonrpc"
	"ralph/internal/text"
	"ralph/loop/agent"
	"ralph/loop/agent/conversation"
	"ralph/loop/agent/process"
)

// A session is a [conversation.Dialect]: that of the protocol.
type session struct {
	options Options
	task    agent.Assignment
	conn    *jsonrpc.Conn
	id      string // id of the agent's own session
	sees    bool   // it takes pictures

	mu      sync.Mutex // guards the following messages
	history history
	stream  stream
	refused []string // reasons for refused uses of tools, which the agent has not been told
}

func newSession(o Options, task agent.Assignment) *session {
	return &session{
		options: o, task: task,
		history: history{profile: o.Profile, tally: tally{model: task.Model}}, stream: stream{profile: o.Profile},
	}
}

// Hear takes in a message of the agent.
func (s *session) Hear(m jsonrpc.Message, ok bool) conversation.Heard {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history.add(m, ok)
	usd, _ := s.history.spent(s.options.Cost)
	return conversation.Heard{Events: s.stream.events(m), USD: usd, Tokens: s.history.tokens, Steps: s.history.steps()}
}

// Answer answers the agent's request to use a tool. The agent's own process does everything else.
func (s *session) Answer(ctx context.Context, m jsonrpc.Message, cut bool) (any, error) {
	if m.Method != "session/request_permission" {
		return nil, &jsonrpc.Error{Code: jsonrpc.MethodNotFound, Message: "not supported: " + m.Method}
	}
	q := read[question](m.Params)
	why, err := s.permit(ctx, q.Call, cut)
	if err != nil {
		why = "ralph could not decide: " + err.Error()
	}
	want := "allow_once" // an agent must not keep "for ever"
	if why != "" {
		want = "reject_once"
		s.mu.Lock()
		s.history.refused = true
		what := text.Line(q.Call.Title, 200)
		if command := s.options.Profile.command(q.Call); q.Call.Kind == "execute" && command != "" {
			what = text.Line(command, 200)
		}
		if len(s.history.denials) < maxDenials {
			s.history.denials = append(s.history.denials, what)
			s.refused = append(s.refused, what+": "+why)
		}
		s.mu.Unlock()
	}
	outcome := map[string]string{"outcome": "cancelled"}
	for _, o := range q.Options {
		if o.Kind == want {
			outcome = map[string]string{"outcome": "selected", "optionId": o.ID}
			break
		}
	}
	return map[string]any{"outcome": outcome}, nil
}

// permit returns why a tool may not be used in this way; "" if it may.
func (s *session) permit(ctx context.Context, c toolCall, cut bool) (why string, err error) {
	uses, ok := s.options.Profile.uses(c)
	switch {
	case !ok || cut:
		return "denied by ralph: the request cannot be read. Do it in another way.", nil
	case s.task.Channel.Permit == nil || len(uses) == 0:
		return "", nil
	}
	return s.task.Channel.Permit(ctx, uses)
}

// version is that of the protocol.
const version = 1

// Begin has a session of the agent's begin, with ralph's tools and the model that is wanted.
func (s *session) Begin(ctx context.Context, conn *jsonrpc.Conn) error {
	s.conn = conn
	err := s.begin(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = errors.As(err, &s.history.failed) // it names the kind of the tool
	return err
}

func (s *session) begin(ctx context.Context) error {
	var hello initialized
	if err := s.conn.Call(ctx, "initialize", map[string]any{
		"protocolVersion": version, "clientInfo": map[string]string{"name": "ralph", "title": "ralph", "version": "1"},
		// It uses no files and terminals of ralph: its own processes do its work.
		"clientCapabilities": map[string]any{
			"fs": map[string]bool{"readTextFile": false, "writeTextFile": false}, "terminal": false,
		},
	}, &hello); err != nil {
		return err
	}
	if hello.Version != version {
		return fmt.Errorf("it speaks version %d of the protocol, and ralph version %d", hello.Version, version)
	}
	s.mu.Lock()
	s.history.version = hello.AgentInfo.Version
	s.mu.Unlock()
	s.sees = hello.Capabilities.Prompt.Image
	var b began
	err := s.conn.Call(ctx, "session/new", s.newSession(), &b)
	var refused *jsonrpc.Error
	if errors.As(err, &refused) && refused.Code == authRequired {
		if err = s.login(ctx, err); err == nil {
			err = s.conn.Call(ctx, "session/new", s.newSession(), &b)
		}
	}
	if err != nil {
		return err
	}
	s.id = b.SessionID
	return s.choose(ctx, b)
}

// newSession returns the parameters of a new session.
func (s *session) newSession() map[string]any {
	servers := []any{}
	if s.options.Profile.MCP == agent.BySession {
		env := []any{}
		for name, value := range serverEnv(s.task) {
			env = append(env, map[string]string{"name": name, "value": value})
		}
		servers = append(servers, map[string]any{
			"name": serverName, "command": s.options.MCPCommand[0], "args": s.options.MCPCommand[1:], "env": env,
		})
		for _, own := range s.task.Servers {
			servers = append(servers, entry(own))
		}
	}
	return map[string]any{"cwd": s.task.Dir, "mcpServers": servers}
}

// entry is one of the project's servers, in the form of the protocol.
func entry(s agent.Server) map[string]any {
	pairs := func(m map[string]string) []map[string]string {
		list := []map[string]string{}
		for _, name := range slices.Sorted(maps.Keys(m)) {
			list = append(list, map[string]string{"name": name, "value": m[name]})
		}
		return list
	}
	if s.Type != "stdio" {
		return map[string]any{"type": s.Type, "name": s.Name, "url": s.URL, "headers": pairs(s.Headers)}
	}
	return map[string]any{
		"name": s.Name, "command": s.Command, "args": append([]string{}, s.Args...), "env": pairs(s.Env),
	}
}

// login signs in with a key that is set; why is why that is needed.
func (s *session) login(ctx context.Context, why error) error {
	for _, entry := range process.Environment(&s.options.Profile.Profile, s.options.Environ, s.options.Env, s.task) {
		name, value, _ := strings.Cut(entry, "=")
		if method := s.options.Profile.Login[name]; method != "" && value != "" {
			return s.conn.Call(ctx, "authenticate", map[string]string{"methodId": method}, nil)
		}
	}
	return why
}

// choose makes the session use the wanted model, if no flag has set it.
func (s *session) choose(ctx context.Context, b began) error {
	now, option := b.model()
	want := s.task.Model
	s.mu.Lock()
	s.history.model = cmp.Or(want, now)
	s.mu.Unlock()
	switch {
	case want == "" || now == want || s.options.Profile.ModelByFlag:
	case option:
		if err := s.set(ctx, "model", want); err != nil {
			return err
		}
	case now != "":
		if err := s.conn.Call(ctx, "session/set_model",
			map[string]string{"sessionId": s.id, "modelId": want}, nil); err != nil {
			return err
		}
	default:
		return fmt.Errorf("it does not let a session choose its model, which is to be %s", text.Line(want, 100))
	}
	if s.task.Effort == "" || s.options.Profile.Effort {
		return nil
	}
	for _, o := range b.Options {
		if o.Category == "thought_level" {
			return s.set(ctx, o.ID, s.task.Effort)
		}
	}
	return fmt.Errorf("it cannot be told an effort, which is to be %s: name its model without one", s.task.Effort)
}

// set chooses a value of one of the session's options.
func (s *session) set(ctx context.Context, option, value string) error {
	return s.conn.Call(ctx, "session/set_config_option",
		map[string]string{"sessionId": s.id, "configId": option, "value": value}, nil)
}

// Turn sends a prompt and waits for the answer. The protocol reports usage only with the turn's end, so Turn waits for
// a cancelled turn, too.
func (s *session) Turn(ctx context.Context, messages []agent.Message) (completed bool, err error) {
	blocks := s.explained(len(messages) == 0)
	for _, m := range messages {
		blocks = append(blocks, map[string]string{"type": "text", "text": m.Text})
		if !s.sees {
			continue
		}
		for _, p := range s.task.Pictures(m.Text) {
			blocks = append(blocks, map[string]string{"type": "image", "mimeType": p.Type, "data": p.Data})
		}
	}
	s.mu.Lock()
	s.history.begin()
	s.mu.Unlock()
	answer, err := s.conn.Ask("session/prompt", map[string]any{"sessionId": s.id, "prompt": blocks})
	if err != nil {
		return false, jsonrpc.ErrClosed // it does not read, so nobody ends that turn
	}
	conversation.Told(messages...)
	whole, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(conversation.Parting, giveUp)
		s.mu.Lock()
		s.history.cancel()
		s.mu.Unlock()
		// Its end will explain why it cannot be told.
		_ = s.conn.Notify("session/cancel", map[string]string{"sessionId": s.id})
	})()
	var e ended
	err = answer(whole, &e)
	if errors.Is(err, jsonrpc.ErrClosed) || whole.Err() != nil {
		return false, jsonrpc.ErrClosed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history.end(e, err)
	return err == nil && !s.history.useless(), nil
}

// Refused returns the service's words in the agent's error, if it has any.
func (s *session) Refused(err error) *agent.Failure {
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return failureOf(refused)
	}
	return &agent.Failure{Text: err.Error()}
}

// Steer does nothing: the protocol has no such message.
func (s *session) Steer(context.Context, agent.Message) bool { return false }

// Unsaid reports that a refusal has ended the turn.
func (s *session) Unsaid() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.options.Profile.RefusalEnds && len(s.refused) > 0 && s.history.refused
}

// explained tells why uses of tools were refused: the protocol has no field for that either.
func (s *session) explained(alone bool) (blocks []map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.refused) == 0 {
		return nil
	}
	why := "ralph refused this, which you may have been told as cancelled by the user:\n- " +
		strings.Join(s.refused, "\n- ")
	if alone {
		why += "\nGo on with your task."
	}
	s.refused = nil
	return []map[string]string{{"type": "text", "text": why}}
}

// Report returns the result after the end.
func (s *session) Report(d agent.Death) agent.Report {
	return s.history.report(d, s.options.Cost)
}
