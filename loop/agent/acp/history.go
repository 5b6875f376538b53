package acp

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"ralph"
	"ralph/internal/jsonrpc"
	"ralph/internal/text"
	"ralph/loop/agent"
	"ralph/loop/agent/conversation"
)

// Bounds of what is remembered of a conversation, however long it lasts.
const (
	maxWords   = 2000 // characters of the last words
	maxReason  = 400  // characters of a reason
	maxDenials = 100
	maxCalls   = 1000 // tool calls that are known by their ids
	maxID      = 100  // characters of an id
)

// A history is what was seen of one conversation. It grows by the messages, in order.
type history struct {
	profile *Profile

	version   string
	model     string
	requests  int // of the model, where they are told
	calls     []string
	toolCalls int
	tokens    ralph.Tokens
	told      bool     // tokens were
	costUSD   *float64 // of the whole session; nil if it does not tell
	lastWords string
	said      bool // the last thing that was seen is a part of what it says
	denials   []string
	refused   bool // the last use of a tool was

	open   bool // a turn is under way
	active bool // something was seen of one
	worked bool // and of this one
	untold bool // nobody has told what one of them has used
	turns  int
	last   ended          // of the turn that has ended last
	failed *jsonrpc.Error // why the last turn, or what came before the first, did

	unreadable int
}

// add takes in what the agent says.
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
	if used := now.Meta.Usage; used != nil {
		h.requests++
		h.tokens, h.told = sum(h.tokens, used.tokens()), true
	}
	switch now.Kind {
	case "agent_message_chunk":
		words := now.Contents.text()
		if h.said {
			words = h.lastWords + words
		}
		if strings.TrimSpace(words) != "" {
			h.lastWords, h.said = text.ClipEnd(words, maxWords), true
		}
		return
	case "tool_call", "tool_call_update":
		h.call(now.ID)
	case "usage_update":
		if c := now.Cost; c != nil && c.Currency == "USD" && c.Amount >= 0 && c.Amount < maxCost {
			h.costUSD = &c.Amount
		}
		return
	}
	h.said = false
}

// maxCost is what no conversation costs, in USD: whoever writes to the agent's output may
// write of costs, too.
const maxCost = 1e5

// call notes a use of a tool, of which there are several messages.
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

// begin notes that a turn begins.
func (h *history) begin() { h.open, h.worked, h.failed, h.said = true, false, nil, false }

// end notes that a turn has ended.
func (h *history) end(e ended, err error) {
	h.open, h.last, h.failed = false, e, nil
	h.turns++
	if err != nil {
		_ = errors.As(err, &h.failed)
		h.untold = h.untold || h.worked && h.costUSD == nil && h.profile.Tokens == agent.AtTurnsEnd
		return
	}
	for _, m := range e.Meta.Quota.Models {
		h.model = text.Clip(m.Model, maxID)
	}
	switch quota := e.Meta.Quota.Tokens; {
	case e.Usage != nil && h.profile.Total:
		h.tokens, h.told = e.Usage.tokens(), true
	case e.Usage != nil:
		h.tokens, h.told = sum(h.tokens, e.Usage.tokens()), true
	case quota != nil:
		h.tokens, h.told = sum(h.tokens, ralph.Tokens{Input: count(quota.Input), Output: count(quota.Output)}), true
	}
}

// sum adds up.
func sum(a, b ralph.Tokens) ralph.Tokens {
	a.Input += b.Input
	a.Output += b.Output
	a.CacheRead += b.CacheRead
	a.CacheCreation += b.CacheCreation
	return a
}

// steps are how many requests of the model there were, as far as one can see.
func (h *history) steps() int { return max(h.requests, h.toolCalls+h.turns) }

// spent is what the conversation has cost so far, as far as that is told.
func (h *history) spent(price agent.Pricing) (usd float64, known bool) {
	switch {
	case h.costUSD != nil:
		return *h.costUSD, true
	case price == nil || !h.told || h.profile.LastOnly:
		return 0, false
	}
	return price(h.model, h.tokens)
}

// cost is what it has cost in the end. Of a turn that was cut off nothing is known.
func (h *history) cost(price agent.Pricing) (usd float64, known bool) {
	switch usd, known = h.spent(price); {
	case !h.began():
		return 0, true
	case h.open || h.untold:
		return 0, false
	}
	return usd, known
}

// began reports whether the agent may have called its model.
func (h *history) began() bool {
	return h.turns > 0 && h.failed == nil || h.open || h.active || h.turns > 1
}

// classify says how a session ended and why, in one sentence. It goes by structure only.
func (h *history) classify(d conversation.Death) (ralph.Ending, string) {
	name := h.profile.Title
	if d.Stopped {
		return ralph.Interrupted, "stopped by ralph"
	}
	if d.Over != "" {
		return ralph.TimedOut, d.Over
	}
	if h.failed != nil {
		if ending := serviceClass(h.failed); ending != "" {
			return ending, conversation.Sentence(h.failed.Message)
		}
	}
	if d.Toolless && d.Refusal == "" {
		return ralph.MCPFailed, conversation.Sentence(name+" was not told ralph's tools", text.LastLine(d.Stderr))
	}
	completed := h.turns > 0 && h.failed == nil && !h.open
	crashed := d.Signal != "" || d.Code > 128 || d.Code < 0
	switch {
	case d.Refusal != "":
		return ralph.NoWork, conversation.Sentence(name+" does not begin", d.Refusal, text.LastLine(d.Stderr))
	case completed && h.last.StopReason == "max_turn_requests":
		return ralph.TimedOut, name + " has reached its own limit of turns"
	case completed && h.last.StopReason == "cancelled":
		return ralph.Lost, "the agent was interrupted, and not by ralph"
	case !completed && h.failed == nil && crashed:
		return ralph.Lost, conversation.Sentence(d.About(name), text.LastLine(d.Stderr))
	case h.toolCalls == 0 && h.lastWords == "":
		why := ""
		if h.failed != nil {
			why = h.failed.Message
		}
		return ralph.NoWork, conversation.Sentence(name+" did nothing", why, d.About(name), text.LastLine(d.Stderr))
	case completed:
		return ralph.Finished, "the agent ended its turn"
	case h.failed != nil:
		return ralph.Lost, conversation.Sentence(name+" ended its turn with an error", h.failed.Message)
	}
	return ralph.Lost, conversation.Sentence(d.About(name)+" in the middle of its work", text.LastLine(d.Stderr))
}

// authRequired is the protocol's code of an agent that has no credentials.
const authRequired = -32000

// serviceClass is the class of the service's error that ended a turn; "" if it is none. The
// protocol has no word for it: agents give an HTTP status as the error's code, or a class in its data.
func serviceClass(e *jsonrpc.Error) ralph.Ending {
	var data struct {
		Kind  string  `json:"errorKind"`
		Codex string  `json:"codexErrorInfo"`
		Code  float64 `json:"status"`
	}
	_ = tolerant(json.Unmarshal(e.Data, &data)) // a text, say
	code := e.Code
	if code < 0 && data.Code > 0 {
		code = int(count(data.Code))
	}
	switch {
	case code == 429, data.Kind == "rate_limit", data.Codex == "usageLimitExceeded":
		return ralph.RateLimited
	case code == 401, code == 403, e.Code == authRequired, data.Kind == "authentication_failed",
		data.Codex == "unauthorized":
		return ralph.AuthFailed
	case code == 402, data.Kind == "billing_error":
		return ralph.Billing
	case code == 413:
		return ralph.PromptTooLong
	case code >= 500 && code < 600, data.Kind == "overloaded", data.Kind == "server_error":
		return ralph.Overloaded
	}
	return ""
}

// report is what the conversation and its end come to.
func (h *history) report(d conversation.Death, price agent.Pricing) agent.Report {
	r := agent.Report{
		Model: h.model, Version: h.version, Turns: h.steps(), ToolCalls: h.toolCalls, Tokens: h.tokens,
		LastWords: h.lastWords, Denials: h.denials, Unreadable: h.unreadable, Began: h.began(),
	}
	r.Ending, r.Reason = h.classify(d)
	r.CostUSD, r.CostKnown = h.cost(price)
	return r
}
