package claude

import (
	"fmt"
	"strings"
	"time"

	"ralph/internal/text"
	"ralph/loop/agent"
)

// maxOpen is the most unanswered tool calls that are remembered.
const maxOpen = 1000

// A stream converts the CLI's output to events. It remembers only the unanswered tool calls.
type stream struct {
	open  map[string]openCall
	last  time.Time // time of the last line with one
	began bool
	dir   string // where the agent works
}

// An openCall is an unanswered tool call.
type openCall struct {
	tool  string
	kind  agent.Kind
	depth int
	since time.Time
}

// events returns the public events of a line.
func (s *stream) events(e event) []agent.Event {
	if at, err := time.Parse(time.RFC3339, e.Timestamp); err == nil {
		s.last = at
	}
	depth := 0
	if e.Parent != "" || e.Sidechain {
		depth = s.open[e.Parent].depth + 1
	}
	switch e.Type {
	case "system":
		return s.system(e)
	case "assistant":
		return s.assistant(e, depth)
	case "user":
		return s.user(e, depth)
	case "result":
		return []agent.Event{{Kind: agent.Ended, Text: ending(e), Seconds: e.Duration / 1000}}
	case "rate_limit_event":
		if e.RateLimit.Status == "rejected" {
			return trouble("%s", e.RateLimit)
		}
	case "ralph": // see cappedLine
		if e.Subtype == "transcript_full" {
			return []agent.Event{{Kind: agent.Noted, Text: "the transcript is too long: a part is left out here"}}
		}
	}
	return nil
}

func trouble(format string, args ...any) []agent.Event {
	return []agent.Event{{Kind: agent.Troubled, Text: fmt.Sprintf(format, args...)}}
}

func (s *stream) system(e event) (events []agent.Event) {
	switch {
	case e.Subtype == "init" && !s.began:
		s.began, s.dir = true, e.Dir
		events = []agent.Event{{Kind: agent.Started, Text: "claude " + e.Version, Model: e.Model}}
		for _, server := range e.Servers {
			if server.Status == "failed" {
				events = append(events, trouble("the MCP server %s does not start", server.Name)...)
			}
		}
	case e.Subtype == "api_retry":
		return trouble("the service does not answer (%s): try %.0f of %.0f in %.0f s",
			text.Short(e.Error, 60), e.Attempt, e.MaxRetries, e.RetryDelay/1000)
	case e.Subtype == "compact_boundary":
		return []agent.Event{{Kind: agent.Noted, Text: "the conversation was shortened to fit the model's context"}}
	}
	return events
}

func (s *stream) assistant(e event, depth int) (events []agent.Event) {
	for _, b := range e.Message.Content {
		switch b.Type {
		case "text":
			events = append(events, agent.Event{Kind: agent.Said, Depth: depth, Text: b.Text, Failed: e.Error != ""})
		case "tool_use":
			call := s.call(b, depth)
			if s.open == nil || len(s.open) >= maxOpen {
				s.open = map[string]openCall{}
			}
			s.open[b.ID] = openCall{call.Tool, call.Kind, depth, s.last}
			events = append(events, call)
		}
	}
	// A sub-agent has a separate context.
	if t := tokens(e.Message.Usage); depth == 0 && t.Input+t.CacheRead+t.CacheCreation > 0 {
		events = append(events, agent.Event{
			Kind: agent.Used, Model: e.Message.Model, Context: t.Input + t.CacheRead + t.CacheCreation + t.Output,
		})
	}
	return events
}

func (s *stream) user(e event, depth int) (events []agent.Event) {
	for _, b := range e.Message.Content {
		switch {
		case b.Type == "text" && e.IsReplay:
			events = append(events, agent.Event{Kind: agent.Told, Depth: depth, Text: b.Text})
		case b.Type == "tool_result":
			events = append(events, s.answer(e, b, depth)...)
		}
	}
	return events
}

// answer returns the events for the answer to a tool call.
func (s *stream) answer(e event, b block, depth int) (events []agent.Event) {
	call := s.open[b.ToolUseID]
	delete(s.open, b.ToolUseID)
	took := e.Outcome.seconds()
	if took == 0 && !call.since.IsZero() {
		took = max(0, s.last.Sub(call.since).Seconds())
	}
	if call.kind == agent.Asked && !b.IsError {
		events = []agent.Event{{Kind: agent.Said, Depth: depth + 1, Text: e.Outcome.Content.text()}}
	}
	return append(events, agent.Event{
		Kind: agent.Answered, Of: call.kind, Depth: depth, Tool: call.tool, Seconds: took, Failed: b.IsError,
		Text: errorTags.Replace(b.Content.text()),
	})
}

// errorTags are put around some errors by the CLI.
var errorTags = strings.NewReplacer("<tool_use_error>", "", "</tool_use_error>", "")

// endings are the subtypes of results that tell how a turn ended; most errors have "success".
var endings = map[string]string{
	"error_max_turns": "the limit of turns was reached", "error_max_budget_usd": "the limit of cost was reached",
	"error_during_execution": "the turn was cut off",
}

// ending classifies the end of a turn.
func ending(e event) string {
	said := endings[e.Subtype]
	switch {
	case said != "":
	case e.IsError:
		said = "the turn ended with an error"
	default:
		said = "the turn ended"
	}
	if n := int(count(e.Turns)); n > 0 {
		said += " after " + text.Count(n, "step")
	}
	if cost := e.cost(); cost != nil {
		said += ", " + text.Money(*cost)
	}
	if why := strings.TrimSpace(strings.Join(append([]string{e.Result}, e.Errors...), " ")); e.IsError && why != "" {
		said += ": " + text.Short(why, 200)
	}
	return said
}

// String reports that a usage window of the account is used up.
func (l rateLimit) String() string {
	said := "the account's limit is reached"
	if l.Type != "" {
		said += " (" + text.Short(l.Type, 40) + ")"
	}
	if at := l.resetTime(); !at.IsZero() {
		said += " until " + at.Format("2006-01-02 15:04 UTC")
	}
	return said
}
