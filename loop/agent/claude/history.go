package claude

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"ralph"
	"ralph/internal/text"
	"ralph/loop/agent"
)

// Limits of a history, for conversations of any length.
const (
	maxWords   = 2000 // characters of the last words
	maxReason  = 400  // characters of an error
	maxInput   = 200  // characters of a refused tool's input
	maxDenials = 100
	maxRubbish = 500 // bytes of a line that is not an event
)

// A history has the observations of one conversation. It is built from the events, in order, and is bounded.
type history struct {
	stream stream
	tools  []string // ralph's tools that the server must have, by the model's names

	version  string
	model    string
	started  bool   // an init was seen
	mcpError string // tools that the first init lacks

	last      *event // the last result
	turnOpen  bool   // something was seen since the last result
	toolCalls int
	nothing   bool // the last turn had no tool call, no tokens and no cost
	before    int  // tool calls before it
	turns     int  // in the turns with a result
	tokens    ralph.Tokens
	costUSD   float64 // cost of the turns with a result

	// The turn since the last result.
	message  string // the id of the last message
	messages int
	streamed ralph.Tokens
	written  int64 // bytes that the model wrote

	// Errors that no answer of the model has followed.
	apiError string // "rate_limit", …
	apiText  string
	retrying bool
	retry    int // HTTP status of the last failed request; 0 if there was no response
	rejected bool
	resetAt  time.Time
	usages   map[string]ralph.UsageWindow

	lastWords  string
	denials    []string
	denied     []string // ids of the calls in denials
	unreadable int
	rubbish    string // the last line that was not an event

	over      bool // the conversation is over: later events change nothing
	overTurns bool // ralph ended it at its limit of turns
}

// add processes an event, and returns its public events.
func (h *history) add(e event) []agent.Event {
	switch e.Type {
	case "system":
		h.addSystem(e)
	case "assistant":
		h.addAssistant(e)
	case "user":
		h.turnOpen = true
	case "result":
		h.addResult(e)
	case "rate_limit_event":
		h.rejected = e.RateLimit.rejected()
		h.addUsage(e.RateLimit)
		if h.rejected {
			h.resetAt = e.RateLimit.resetTime()
		}
	}
	events := h.stream.events(e)
	for i := range events {
		if events[i].Kind == agent.Used {
			events[i].Tokens, events[i].CostUSD, _ = h.usage()
		}
	}
	return events
}

// maxWindows limits the usage windows that are remembered; there are about six.
const maxWindows = 20

// addUsage records the use of a usage window, if it is reported (decision 15).
func (h *history) addUsage(l rateLimit) {
	if l.Type == "" || l.Utilization == nil || *l.Utilization < 0 || len(h.usages) >= maxWindows {
		return
	}
	if h.usages == nil {
		h.usages = map[string]ralph.UsageWindow{}
	}
	name := text.Clip(l.Type, 100)
	h.usages[name] = ralph.UsageWindow{Name: name, Utilization: *l.Utilization, ResetsAt: ralph.At(l.resetTime())}
}

// addUnreadable processes a line that is not an event.
func (h *history) addUnreadable(line []byte) {
	if said := strings.TrimSpace(string(line[:min(len(line), maxRubbish)])); said != "" {
		h.unreadable++
		h.rubbish = said
	}
}

func (h *history) addSystem(e event) {
	switch e.Subtype {
	case "api_retry":
		h.retrying, h.retry = true, status(e.RetryStatus)
	case "init":
		// Later ones start further turns of the same conversation.
		if h.started {
			h.turnOpen = true
			return
		}
		h.started = true
		h.version, h.model = e.Version, e.Model
		h.mcpError = h.lacks(e)
	}
}

// lacks names the missing parts of ralph's server and its tools.
func (h *history) lacks(e event) string {
	i := slices.IndexFunc(e.Servers, func(s mcpServer) bool { return s.Name == serverName })
	if i < 0 {
		return "the agent did not load the MCP server " + serverName
	}
	if s := e.Servers[i]; s.Status != "connected" {
		return strings.TrimSuffix(fmt.Sprintf("the MCP server %s is %q: %s", serverName, s.Status, s.Error), ": ")
	}
	var missing []string
	for _, t := range h.tools {
		if !slices.Contains(e.Tools, t) {
			missing = append(missing, t)
		}
	}
	if len(missing) > 0 {
		return "the MCP server " + serverName + " lacks " + strings.Join(missing, ", ")
	}
	return ""
}

func (h *history) addAssistant(e event) {
	h.turnOpen = true
	if e.Error != "" {
		h.apiError, h.apiText = e.Error, text.Clip(e.Message.Content.text(), maxReason)
		return
	}
	if !e.Message.synthetic() {
		// The model answered: the earlier error is over.
		h.apiError, h.apiText, h.retrying, h.rejected = "", "", false, false
	}
	for _, b := range e.Message.Content {
		h.written += int64(len(b.Text) + len(b.Thinking) + len(b.Input))
		switch b.Type {
		case "text":
			if strings.TrimSpace(b.Text) != "" {
				h.lastWords = text.ClipEnd(b.Text, maxWords)
			}
		case "tool_use":
			h.toolCalls++
		}
	}
	if e.Message.ID != "" && e.Message.ID != h.message {
		h.message = e.Message.ID
		h.messages++
		h.streamed = h.streamed.Add(tokens(e.Message.Usage))
	}
}

func (h *history) addResult(e event) {
	e.CostUSD = e.cost()
	if !h.over {
		h.last = &e
	}
	h.turnOpen = false
	h.turns += int(count(e.Turns))
	window := h.tokens.ContextWindow
	h.tokens = h.tokens.Add(tokens(e.Usage))
	h.tokens.ContextWindow = e.contextWindow(h.model, window)
	h.nothing = tokens(e.Usage).Sum() == 0 && h.toolCalls == h.before && (e.CostUSD == nil || *e.CostUSD <= h.costUSD)
	h.before = h.toolCalls
	if e.CostUSD != nil && *e.CostUSD > h.costUSD { // cumulative, never decreases
		h.costUSD = *e.CostUSD
	}
	h.message, h.messages, h.streamed, h.written = "", 0, ralph.Tokens{}, 0
	for _, d := range e.Denials {
		if slices.Contains(h.denied, d.ID) || len(h.denied) >= maxDenials {
			continue
		}
		h.denied = append(h.denied, d.ID)
		h.denials = append(h.denials, d.String())
	}
}

// contextWindow returns the context size of the session's model, not of a helper's.
func (e event) contextWindow(model string, before int64) int64 {
	if u, ok := e.ModelUsage[model]; ok {
		return count(u.ContextWindow)
	}
	window := before
	for _, u := range e.ModelUsage {
		window = max(window, count(u.ContextWindow))
	}
	return window
}

// usage returns the conversation's use so far: the results' usage and, for a turn without a result, the streamed usage.
// In the latter case the cost is an estimate and known is false: four bytes of the model's output count as a token,
// since the stream only has the initial usage of each message.
func (h *history) usage() (t ralph.Tokens, costUSD float64, known bool) {
	if h.messages == 0 {
		return h.tokens, h.costUSD, h.last != nil && h.last.CostUSD != nil
	}
	streamed := h.streamed
	streamed.Output = max(streamed.Output, h.written/4)
	price, ok := agent.PriceOf(h.model)
	if !ok {
		price, _ = agent.PriceOf("claude-opus-4")
	}
	return h.tokens.Add(streamed), h.costUSD + price.Of(streamed), false
}

// began reports whether the agent may have called its model: it was ready,
// with its tools, or the model has answered.
func (h *history) began() bool {
	return h.started && h.mcpError == "" || h.messages > 0 || h.turns > 0
}

// String returns the tool and its subject.
func (d denial) String() string {
	var input struct {
		Command  string `json:"command"`
		FilePath string `json:"file_path"`
		URL      string `json:"url"`
	}
	what := text.Clip(string(d.Input), maxInput)
	if tolerant(json.Unmarshal(d.Input, &input)) == nil {
		for _, s := range []string{input.URL, input.FilePath, input.Command} {
			if s != "" {
				what = text.Clip(s, maxInput)
			}
		}
	}
	return strings.TrimSuffix(d.Tool+": "+text.Flat(what), ": ")
}

func tokens(u usage) ralph.Tokens {
	return ralph.Tokens{
		Input: count(u.Input), Output: count(u.Output),
		CacheRead: count(u.CacheRead), CacheCreation: count(u.CacheCreation),
	}
}

// count converts a number of the stream to a safe range.
func count(f float64) int64 { return int64(min(max(f, 0), 1e12)) }

// status converts an HTTP status; 0 if there is none.
func status(f *float64) int {
	if f == nil {
		return 0
	}
	return int(count(*f))
}
