package acp

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"ralph"
	"ralph/internal/jsonrpc"
	"ralph/internal/text"
	"ralph/loop/agent"
)

// Bounds of a history, for conversations of any length.
const (
	maxWords   = 2000 // characters of the last words
	maxReason  = 400  // characters of an error
	maxDenials = 100
	maxCalls   = 1000 // tool calls that are known by their ids
	maxID      = 100  // characters of an id
)

// A history has the observations of one conversation. It grows by the messages, in order.
type history struct {
	profile *Profile

	tally
	version   string
	calls     []string
	toolCalls int
	lastWords string
	chunk     string          // the last part of it that came separately
	running   map[string]bool // ids of tool calls that have not ended
	toolCut   bool            // there were some when the turn was called off
	said      bool            // the last message was a part of its text
	denials   []string
	refused   bool // the last use of a tool was

	open   bool // a turn is under way
	active bool // something was seen of one
	worked bool // this turn did work
	at     struct {
		calls  int
		tokens ralph.Tokens
	} // use before it began
	untold bool // the use of one of them is unknown
	turns  int
	last   ended          // the turn that has ended last
	failed *jsonrpc.Error // why the last turn, or the start before the first, failed

	unreadable int
}

// add takes in a message of the agent.
func (h *history) add(m jsonrpc.Message, ok bool) {
	if !ok {
		h.unreadable++
		return
	}
	switch m.Method {
	case "session/update":
		h.update(read[update](m.Params))
	case "session/request_permission":
		h.active, h.worked, h.said = true, true, false
		h.call(read[question](m.Params).Call.ID)
	}
}

func (h *history) update(u update) {
	now := u.Update
	if strings.HasPrefix(now.Kind, "agent_") || strings.HasPrefix(now.Kind, "tool_call") {
		h.active, h.worked = true, true
	}
	h.tally.update(u)
	switch now.Kind {
	case "agent_message_chunk":
		words := now.Contents.text()
		h.chunk = text.ClipEnd(words, maxWords)
		if h.said {
			words = h.lastWords + words
		}
		if strings.TrimSpace(words) != "" {
			h.lastWords, h.said = text.ClipEnd(words, maxWords), true
		}
		return
	case "tool_call", "tool_call_update":
		h.call(now.ID)
		h.runs(now.toolCall)
	case "usage_update":
		return
	}
	h.said = false
}

// call notes a use of a tool, which arrives in several messages.
func (h *history) call(id string) {
	id = text.Clip(id, maxID)
	if slices.Contains(h.calls, id) {
		return
	}
	if h.calls = append(h.calls, id); len(h.calls) > maxCalls {
		h.calls = h.calls[1:]
	}
	h.toolCalls++
	h.refused = false
}

// runs notes whether a tool call is still at work.
func (h *history) runs(c toolCall) {
	id := text.Clip(c.ID, maxID)
	if c.Status == "completed" || c.Status == "failed" {
		delete(h.running, id)
	} else if len(h.running) < maxCalls {
		if h.running == nil {
			h.running = map[string]bool{}
		}
		h.running[id] = true
	}
}

// cancel notes that the turn is called off.
func (h *history) cancel() { h.toolCut = len(h.running) > 0 }

// begin notes that a turn begins.
func (h *history) begin() {
	h.open, h.worked, h.failed, h.said, h.chunk = true, false, nil, false, ""
	h.at.calls, h.at.tokens = h.toolCalls, h.tokens
	clear(h.running) // some agents do not say how a call ended
}

// end notes that a turn has ended.
func (h *history) end(e ended, err error) {
	h.open, h.last, h.failed = false, e, nil
	h.turns++
	if err != nil {
		_ = errors.As(err, &h.failed)
		h.untold = h.untold || h.worked && h.costUSD == nil && h.profile.Tokens == agent.AtTurnsEnd
		return
	}
	h.tally.end(e, h.profile)
}

// steps returns the number of visible requests to the model.
func (h *history) steps() int { return max(h.requests, h.toolCalls+h.turns) }

// spent returns the reported cost of the conversation so far.
func (h *history) spent(price agent.Pricing) (usd float64, known bool) {
	usd, known = h.usd(price)
	return usd, known && (h.costUSD != nil || !h.profile.LastOnly)
}

// cost returns the final cost. The use of a turn that was cut off is unknown.
func (h *history) cost(price agent.Pricing) (usd float64, known bool) {
	switch usd, known = h.spent(price); {
	case !h.began():
		return 0, true
	case h.open || h.untold:
		return usd, false
	}
	return usd, known
}

// began reports whether the agent may have called its model.
func (h *history) began() bool {
	return h.turns > 0 && h.failed == nil || h.open || h.active || h.turns > 1
}

// trace returns the observations for the verdict.
func (h *history) trace() agent.Trace {
	t := agent.Trace{
		Open: h.open, Asking: len(h.running) == 0 && !h.toolCut, Words: h.chunk, Calls: h.toolCalls, Tokens: h.tokens,
		Said: h.lastWords != "", Nothing: h.toolCalls == h.at.calls && h.tokens == h.at.tokens,
	}
	switch {
	case h.turns == 0:
	case h.failed != nil:
		t.Last = agent.Failed
	case h.last.StopReason == "max_turn_requests":
		t.Last = agent.Limited
	case h.last.StopReason == "cancelled":
		t.Last = agent.Aborted
	default:
		t.Last = agent.Completed
	}
	if word := h.profile.ErrorWord; h.failed != nil {
		t.Failure = failureOf(h.failed)
	} else if word != "" && strings.HasPrefix(h.chunk, word) {
		t.Failure = &agent.Failure{Text: h.chunk}
	}
	return t
}

// useless reports whether the turn that has just ended shows that the service does not work.
func (h *history) useless() bool {
	t := h.trace()
	return t.Failure != nil || t.Nothing && h.profile.Tokens != agent.Never
}

// authRequired is the protocol's code of an agent that has no credentials.
const authRequired = -32000

// failureOf reads the state of the service from an agent's error. The protocol has no field for it: agents give an
// HTTP status as the error's code, or a class in its data, each with its own names.
func failureOf(e *jsonrpc.Error) *agent.Failure {
	var data struct {
		Kind    string  `json:"errorKind"`
		Name    string  `json:"errorName"`
		Codex   string  `json:"codexErrorInfo"`
		Status  float64 `json:"status"`
		Message string  `json:"message"`
		Details string  `json:"details"`
	}
	_ = tolerant(json.Unmarshal(e.Data, &data)) // a text, for example
	f := &agent.Failure{Code: cmp.Or(data.Kind, data.Name, data.Codex), Text: e.Message, Status: int(count(data.Status))}
	// JSON-RPC's words for any error tell nothing about the service.
	said := strings.TrimPrefix(strings.TrimPrefix(e.Message, "Internal error"), ": ")
	if more := cmp.Or(data.Details, data.Message); said == "" || more != "" && more != said {
		said = agent.Sentence(said, more)
	}
	f.Text = cmp.Or(said, e.Message)
	if e.Code >= 400 && e.Code < 600 {
		f.Status = e.Code
	}
	if e.Code == authRequired && f.Code == "" {
		f.Code = "auth_required"
	}
	return f
}

// report returns the result of the conversation and its end.
func (h *history) report(d agent.Death, price agent.Pricing) agent.Report {
	r := agent.Report{
		Model: h.model, Version: h.version, Turns: h.steps(), ToolCalls: h.toolCalls, Tokens: h.tokens,
		LastWords: h.lastWords, Denials: h.denials, Unreadable: h.unreadable, Began: h.began(),
	}
	r.CostUSD, r.CostKnown = h.cost(price)
	r.SetEnd(&h.profile.Profile, h.trace(), d)
	return r
}
