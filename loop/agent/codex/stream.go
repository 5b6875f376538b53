package codex

import (
	"encoding/json"
	"fmt"
	"strings"

	"ralph/internal/jsonrpc"
	"ralph/internal/text"
	"ralph/loop/agent"
	"ralph/loop/agent/conversation"
)

// A stream turns messages into events of codex.
type stream struct{ thread, dir, model string }

// NewReader reads a transcript from its beginning.
func NewReader() agent.Reader { return &stream{} }

// Line implements [agent.Reader].
func (s *stream) Line(line []byte) []agent.Event {
	l, ok := jsonrpc.ParseLine(line)
	if !ok || l.To != jsonrpc.ToClient {
		return nil
	}
	return s.events(l.Message)
}

// Clone implements [agent.Reader].
func (s *stream) Clone() agent.Reader { c := *s; return &c }

// events returns the public events of a message.
func (s *stream) events(m jsonrpc.Message) []agent.Event {
	p := parse(m.Params)
	if p.ThreadID == "" || s.thread == "" || p.ThreadID == s.thread {
		return s.own(m, p)
	}
	// It belongs to an agent that it has started, whose turns are not the conversation's.
	if !strings.HasPrefix(m.Method, "item/") {
		return nil
	}
	events := s.own(m, p)
	for i := range events {
		events[i].Depth = 1
	}
	return events
}

func (s *stream) own(m jsonrpc.Message, p params) []agent.Event {
	switch m.Method {
	case "thread/started":
		if s.thread != "" {
			return nil
		}
		s.thread, s.dir, s.model = p.Thread.ID, p.Thread.Cwd, p.Thread.Model
		return []agent.Event{{Kind: agent.Started, Text: "codex " + p.Thread.CLIVersion, Model: p.Thread.Model}}
	case "item/started":
		return s.started(p.Item)
	case "item/completed":
		return s.completed(p.Item)
	case "thread/tokenUsage/updated":
		e := agent.Event{
			Kind: agent.Used, Context: max(p.TokenUsage.Last.Sum, 0),
			Tokens: p.TokenUsage.Total.tokens(p.TokenUsage.ContextWindow),
		}
		e.CostUSD, _ = agent.Listed(s.model, e.Tokens)
		return []agent.Event{e}
	case "error":
		what := p.Error.Message
		if p.Error.Details != "" {
			what += ": " + p.Error.Details
		}
		return []agent.Event{{Kind: agent.Troubled, Text: text.Line(what, maxReason)}}
	case "mcpServer/startupStatus/updated":
		if p.Status == "failed" {
			return []agent.Event{{Kind: agent.Troubled, Text: "the MCP server " + text.Line(p.Name, 60) + " does not start"}}
		}
	case "thread/compacted":
		return []agent.Event{{Kind: agent.Noted, Text: "the conversation was shortened to fit the model's context"}}
	case "turn/completed":
		e := agent.Event{Kind: agent.Ended, Text: "the turn ended", Seconds: p.Turn.Duration / 1000}
		if p.Turn.Status != "completed" {
			e.Text += " (" + text.Line(p.Turn.Status, 40) + ")"
			if why := p.Turn.Error.Message; why != "" {
				e.Text += ": " + text.Short(why, 200)
			}
		}
		return []agent.Event{e}
	}
	return nil
}

// started returns the event for the start of an item.
func (s *stream) started(i item) []agent.Event {
	switch i.Type {
	case "commandExecution":
		return []agent.Event{{Kind: agent.Ran, Tool: "shell", Text: i.Command}}
	case "fileChange":
		var events []agent.Event
		for _, c := range i.Changes {
			events = append(events, agent.Event{
				Kind: agent.Edited, Tool: "apply_patch", Text: s.relative(c.Path), Edits: []agent.Edit{{New: c.Diff}},
			})
		}
		return events
	case "mcpToolCall":
		return []agent.Event{{Kind: agent.Called, Tool: tool(i), Text: said(i.Arguments)}}
	case "subAgentActivity":
		if i.Kind == "started" {
			return []agent.Event{{Kind: agent.Asked, Tool: "spawn_agent", Text: i.AgentPath}}
		}
	case "webSearch":
		return []agent.Event{{Kind: agent.Read, Tool: "web_search", Text: i.Query}}
	}
	return nil
}

// tool returns a server's tool by the name that people know.
func tool(i item) string {
	if i.Server == serverName {
		return strings.TrimPrefix(i.Tool, "ralph_")
	}
	return i.Server + " " + i.Tool
}

// completed returns the event for the end of an item.
func (s *stream) completed(i item) []agent.Event {
	failed := i.Status == "failed" || i.Status == "declined"
	e := agent.Event{Kind: agent.Answered, Seconds: i.Duration / 1000, Failed: failed}
	switch i.Type {
	case "agentMessage":
		return []agent.Event{{Kind: agent.Said, Text: i.Text}}
	case "userMessage":
		var texts []string
		for _, c := range i.Content {
			texts = append(texts, c.Text)
		}
		return []agent.Event{{Kind: agent.Told, Text: strings.Join(texts, "\n")}}
	case "commandExecution":
		e.Of, e.Tool, e.Text = agent.Ran, "shell", i.Output
		e.Failed = e.Failed || i.Exit != nil && *i.Exit != 0
	case "fileChange":
		e.Of, e.Tool = agent.Edited, "apply_patch"
	case "mcpToolCall":
		e.Of, e.Tool, e.Text = agent.Called, tool(i), i.Error.Message
		for _, c := range i.Result.Content {
			e.Text += c.Text
		}
	default:
		return nil
	}
	return []agent.Event{e}
}

// relative returns a path relative to codex's working directory.
func (s *stream) relative(file string) string {
	if rest, ok := strings.CutPrefix(file, s.dir+"/"); ok && s.dir != "" {
		return rest
	}
	return file
}

// telling lists the arguments of ralph's tools that summarise a call, in order of preference.
var telling = []string{"summary", "reason", "question", "what", "text", "on", "state", "subject", "body", "description"}

// said returns a summary of a tool's arguments.
func said(raw json.RawMessage) string {
	var all map[string]any
	if json.Unmarshal(raw, &all) != nil || len(all) == 0 {
		return ""
	}
	for _, name := range telling {
		if s, ok := all[name].(string); ok && s != "" {
			return s + agent.Metadata(all)
		}
	}
	return fmt.Sprint(string(raw))
}

// Salvage reads the transcript of a session; see [agent.Agent].
func (a *Agent) Salvage(logDir string, d agent.Death) (agent.Report, error) {
	h := history{}
	ok, err := conversation.Salvage(logDir, &d, func(l jsonrpc.Line) {
		if l.To == jsonrpc.ToClient {
			h.add(l.Message, true)
		}
	})
	if !ok {
		return agent.Report{}, err
	}
	return h.report(d, a.options.Cost), nil
}
