package acp

import (
	"cmp"
	"encoding/json"
	"maps"
	"path/filepath"
	"strings"

	"ralph/internal/jsonrpc"
	"ralph/internal/text"
	"ralph/loop/agent"
	"ralph/loop/agent/conversation"
)

// A stream turns messages into events of the agent.
type stream struct {
	profile *Profile
	dir     string
	words   strings.Builder // text of a message that arrives in parts
	open    map[string]agent.Event
	prompts map[string]bool // ids of ralph's prompts that have no answer
	tally
	context int64 // tokens of it that are used
}

// NewReader reads a transcript from its beginning. The transcript itself names its agent.
func NewReader() agent.Reader { return &stream{profile: Profiles[len(Profiles)-1]} }

// Line implements [agent.Reader].
func (s *stream) Line(line []byte) []agent.Event {
	l, ok := jsonrpc.ParseLine(line)
	if !ok {
		return nil
	}
	if l.To == jsonrpc.ToAgent {
		return s.sent(l.Message)
	}
	return s.events(l.Message)
}

// Clone implements [agent.Reader].
func (s *stream) Clone() agent.Reader {
	c := &stream{
		profile: s.profile, dir: s.dir, open: maps.Clone(s.open), prompts: maps.Clone(s.prompts),
		tally: s.tally, context: s.context,
	}
	c.words.WriteString(s.words.String())
	return c
}

// sent returns an event for ralph's message to the agent.
func (s *stream) sent(m jsonrpc.Message) []agent.Event {
	switch m.Method {
	case "session/new":
		s.dir = read[struct {
			Cwd string `json:"cwd"`
		}](m.Params).Cwd
	case "session/set_model", "session/set_config_option":
		chosen := read[struct {
			Model  string `json:"modelId"`
			Option string `json:"configId"`
			Value  string `json:"value"`
		}](m.Params)
		if chosen.Option == "model" {
			chosen.Model = chosen.Value
		}
		s.model = text.Clip(cmp.Or(chosen.Model, s.model), maxID)
	case "session/prompt":
		if s.prompts == nil {
			s.prompts = map[string]bool{}
		}
		s.prompts[string(m.ID)] = true
		prompt := read[struct {
			Prompt contents `json:"prompt"`
		}](m.Params)
		var texts []string
		for _, one := range prompt.Prompt {
			texts = append(texts, one.Text)
		}
		return append(s.flush(), agent.Event{Kind: agent.Told, Text: strings.Join(texts, "\n\n")})
	}
	return nil
}

// events returns the public events of a message to ralph.
func (s *stream) events(m jsonrpc.Message) []agent.Event {
	switch m.Method {
	case "":
		return s.answered(m)
	case "session/update":
		return s.update(read[update](m.Params))
	case "session/request_permission":
		return append(s.flush(), s.started(read[question](m.Params).Call)...)
	}
	return nil
}

// answered returns the answer to a call of ralph's.
func (s *stream) answered(m jsonrpc.Message) []agent.Event {
	if hello := read[initialized](m.Result); hello.Version > 0 {
		for _, p := range Profiles {
			if strings.Contains(strings.ToLower(hello.AgentInfo.Name), p.Name) && p.Name != kind {
				s.profile = p
			}
		}
		name := strings.TrimSpace(hello.AgentInfo.Name + " " + hello.AgentInfo.Version)
		return []agent.Event{{Kind: agent.Started, Text: name}}
	}
	if model, _ := read[began](m.Result).model(); model != "" {
		s.model = text.Clip(model, maxID)
	}
	e := read[ended](m.Result)
	prompt := s.prompts[string(m.ID)]
	delete(s.prompts, string(m.ID))
	switch {
	case e.StopReason != "":
		s.tally.end(e, s.profile)
		said := "the turn ended"
		if e.StopReason != "end_turn" {
			said += " (" + text.Line(e.StopReason, 40) + ")"
		}
		events := s.flush()
		if s.told || s.costUSD != nil {
			events = append(events, s.used())
		}
		return append(events, agent.Event{Kind: agent.Ended, Text: said})
	case m.Error != nil:
		kind := agent.Troubled
		if prompt {
			kind = agent.Ended
		}
		why := "an error: " + text.Line(m.Error.Message, maxReason)
		return append(s.flush(), agent.Event{Kind: kind, Text: why, Failed: true})
	}
	return nil
}

// used returns the conversation's use so far. Unreported costs are at list prices.
func (s *stream) used() agent.Event {
	usd, _ := s.usd(agent.Listed)
	return agent.Event{Kind: agent.Used, Context: s.context, Tokens: s.tokens, CostUSD: usd}
}

func (s *stream) update(u update) []agent.Event {
	now := u.Update
	if s.tally.update(u) {
		if now.Kind == "usage_update" {
			s.context = count(now.Used)
		}
		return append(s.done(now), s.used())
	}
	return s.done(now)
}

// done returns the agent's words and actions, without usage.
func (s *stream) done(now news) []agent.Event {
	switch now.Kind {
	case "agent_message_chunk":
		s.words.WriteString(now.Contents.text())
		if s.words.Len() > 64<<10 {
			return s.flush()
		}
		return nil
	case "tool_call":
		return append(s.flush(), s.started(now.toolCall)...)
	case "tool_call_update":
		return append(s.flush(), s.changed(now.toolCall)...)
	}
	return nil
}

// flush returns the text so far.
func (s *stream) flush() []agent.Event {
	said := s.words.String()
	if s.words.Reset(); strings.TrimSpace(said) == "" {
		return nil
	}
	return []agent.Event{{Kind: agent.Said, Text: said}}
}

// maxOpen is the maximum number of tool calls that are waited for.
const maxOpen = 1000

// started returns the event for the start of a call. Some agents announce a call several times, its subject last.
func (s *stream) started(c toolCall) []agent.Event {
	e := s.event(c)
	if _, known := s.open[text.Clip(c.ID, maxID)]; known || e.Text == "" && e.Kind != agent.Called {
		return nil
	}
	if s.open == nil || len(s.open) >= maxOpen {
		s.open = map[string]agent.Event{}
	}
	s.open[text.Clip(c.ID, maxID)] = agent.Event{Kind: e.Kind, Tool: text.Clip(e.Tool, maxID)}
	return []agent.Event{e}
}

// changed is news of a call.
func (s *stream) changed(c toolCall) (events []agent.Event) {
	id := text.Clip(c.ID, maxID)
	began, known := s.open[id]
	if !known {
		events = s.started(c)
		began = s.open[id]
	}
	if c.Status != "completed" && c.Status != "failed" {
		return events
	}
	delete(s.open, id)
	return append(events, agent.Event{
		Kind: agent.Answered, Of: began.Kind, Tool: began.Tool, Text: c.Contents.text(), Failed: c.Status == "failed",
	})
}

// event returns a call as people see it.
func (s *stream) event(c toolCall) agent.Event {
	paths := c.paths()
	for i, path := range paths {
		if rel, err := filepath.Rel(s.dir, path); s.dir != "" && err == nil && filepath.IsLocal(rel) {
			paths[i] = rel
		}
	}
	about := strings.Join(paths, ", ")
	switch {
	case c.Kind == "execute":
		return agent.Event{Kind: agent.Ran, Tool: "shell", Text: s.profile.command(c)}
	case c.Kind == "edit" || c.Kind == "delete" || c.Kind == "move":
		e := agent.Event{Kind: agent.Edited, Tool: c.Kind, Text: about}
		for _, one := range c.Contents {
			if one.Type == "diff" {
				e.Edits = append(e.Edits, agent.Edit{Old: one.Old, New: one.New})
			}
		}
		return e
	case c.Kind == "read" || c.Kind == "search" || c.Kind == "fetch":
		if about == "" {
			about = c.Title
		}
		return agent.Event{Kind: agent.Read, Tool: c.Kind, Text: about}
	}
	name, _ := strings.CutSuffix(c.Title, " (ralph MCP Server)")
	for _, prefix := range []string{s.profile.ToolPrefix, "mcp__ralph__", "ralph-"} {
		name = strings.TrimPrefix(name, prefix)
	}
	if strings.HasPrefix(name, "{") {
		name = serverName // it reports only the arguments of a server's tool
	}
	name = strings.TrimPrefix(strings.NewReplacer(".", "_", "-", "_").Replace(name), "ralph_")
	return agent.Event{Kind: agent.Called, Tool: name, Text: telling(c.RawInput)}
}

// telling returns the most informative argument of a ralph tool.
func telling(raw json.RawMessage) string {
	fields := read[map[string]any](raw)
	for _, name := range []string{"summary", "reason", "question", "what", "text", "on", "state", "body"} {
		if said, ok := fields[name].(string); ok && said != "" {
			return said + agent.Metadata(fields)
		}
	}
	return ""
}

// Salvage reads the transcript of a session; see [agent.Agent].
func (a *Agent) Salvage(logDir string, d agent.Death) (agent.Report, error) {
	h := history{profile: a.options.Profile}
	prompts := map[string]bool{}
	ok, err := conversation.Salvage(logDir, &d, func(l jsonrpc.Line) { h.read(l, prompts) })
	if !ok {
		return agent.Report{}, err
	}
	return h.report(d, a.options.Cost), nil
}

// read reads a line of a transcript; prompts are the ids of ralph's unanswered prompts.
func (h *history) read(l jsonrpc.Line, prompts map[string]bool) {
	switch id := string(l.Message.ID); {
	case l.To == jsonrpc.ToAgent:
		switch l.Message.Method {
		case "session/prompt":
			prompts[id] = true
			h.begin()
		case "session/cancel":
			h.cancel()
		}
	case l.Message.Method == "" && prompts[id]:
		var failed error
		if l.Message.Error != nil {
			failed = l.Message.Error
		}
		delete(prompts, id)
		h.end(read[ended](l.Message.Result), failed)
	case l.Message.Method == "" && l.Message.Error != nil && h.turns == 0:
		h.failed = l.Message.Error
	default:
		if hello := read[initialized](l.Message.Result); hello.Version > 0 {
			h.version = hello.AgentInfo.Version
		}
		h.add(l.Message, l.Message.Method != "" || l.Message.ID != nil)
	}
}
