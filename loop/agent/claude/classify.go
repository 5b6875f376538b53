package claude

import (
	"cmp"
	"fmt"
	"strings"

	"ralph/internal/text"
	"ralph/loop/agent"
)

// trace returns the observations of the conversation for the verdict. It relies on structure only: prose, and a
// result's subtype "success", do not count.
func (h *history) trace() agent.Trace {
	_, cost, _ := h.usage()
	t := agent.Trace{
		Open: h.turnOpen && !h.over || h.last == nil && h.started, Calls: h.toolCalls, Said: cost > 0,
		Words:   cmp.Or(h.said(), h.lastWords),
		Nothing: h.nothing,
	}
	t.Tokens, _, _ = h.usage()
	t.Asking = len(h.stream.open) == 0 && (h.last == nil || h.last.TerminalReason != "aborted_tools")
	switch {
	case h.overTurns:
		t.Last, t.Open, t.Limit = agent.Limited, false, fmt.Sprintf("reached the limit of turns after %d", h.turns)
	case h.last == nil:
	case !h.last.IsError:
		t.Last = agent.Completed
	case h.last.TerminalReason == "max_turns" || strings.HasPrefix(h.last.Subtype, "error_max_"):
		t.Last, t.Limit = agent.Limited, h.said() // only the subtype reveals that the budget is used up
	case strings.HasPrefix(h.last.TerminalReason, "aborted"):
		t.Last = agent.Aborted
	default:
		t.Last = agent.Failed
	}
	if t.Last != agent.Completed || t.Open {
		t.Failure = h.failure(t)
	}
	return t
}

// failure returns the error of the service that ended the conversation, or that it was retrying after; nil if there is
// none.
func (h *history) failure(t agent.Trace) *agent.Failure {
	f := &agent.Failure{Code: h.apiError, Text: h.said(), ResetAt: h.resetAt}
	terminal := ""
	if h.last != nil && !t.Open {
		f.Status, terminal = status(h.last.APIErrorStatus), h.last.TerminalReason
	}
	if f.Status == 0 && h.apiError == "" && h.retrying {
		f.Status = h.retry // it ended during a retry
	}
	switch {
	case h.rejected:
		f.Code = "rate_limit"
	case h.unreached(f.Status):
		f.Code, f.Status = "connection", 0
		if h.apiError == "" {
			f.Code = agent.NoAnswer
		}
	case terminal == "prompt_too_long":
		f.Code = terminal
	case f.Code == "" && f.Status == 0 && t.Last != agent.Failed:
		return nil
	}
	return f
}

// unreached reports whether the service did not respond, or something else did
// in its place. A refused connection is a "server_error" without a status, as
// was the last attempt before it; a broken stream is "unknown" without a status.
func (h *history) unreached(code int) bool {
	if code == 408 {
		return true
	}
	if code != 0 {
		return false
	}
	switch h.apiError {
	case "":
		return h.retrying
	case "unknown":
		return true
	case "server_error":
		return h.retrying && h.retry == 0
	}
	return false
}

// said returns the agent's own words about its failure; "" for none.
func (h *history) said() string {
	if h.apiText != "" {
		return h.apiText
	}
	if h.last != nil && !h.turnOpen {
		said := []string{h.last.Result}
		for _, s := range h.last.Errors {
			if !strings.HasPrefix(s, "[ede_diagnostic]") { // its own developers' words
				said = append(said, s)
			}
		}
		if s := text.Flat(strings.Join(said, " ")); s != "" {
			return s
		}
	}
	if h.retrying {
		return "it ended while it tried to reach the service again"
	}
	return h.rubbish
}
