package claude

import (
	"fmt"
	"strings"
	"time"

	"ralph"
	"ralph/internal/text"
)

// A death says how the process ended, apart from its output.
type death struct {
	stopped bool   // ralph stopped it in the middle of its work
	code    int    // exit status; -1 if a signal ended it or it is unknown
	signal  string // the signal that ended it, such as "SIGKILL"
	stderr  string // the end of its standard error
	server  string // what may have kept the agent from ralph's MCP server
	mute    bool   // ralph stopped it because it had closed its output
}

// crashed reports whether it did not exit by itself.
func (d death) crashed() bool { return d.signal != "" || d.code > 128 || d.code < 0 }

func (d death) String() string {
	if d.mute {
		return "the agent closed its output and did not end, so that ralph ended it"
	}
	if d.signal != "" {
		return "the agent was killed by " + d.signal
	}
	if d.code < 0 {
		return "the agent is gone, and how it ended is unknown"
	}
	return fmt.Sprintf("the agent exited with status %d", d.code)
}

// classify says how a session ended and why, in one sentence. It tries the classes in the order
// of the table of agent errors (pipeline, "Agent errors") and relies on structure only: prose,
// and a result's subtype "success", do not count. The time is when a rate limit ends, if known.
func classify(h *history, d death) (ralph.Ending, string, time.Time) {
	if d.stopped {
		return ralph.Interrupted, "stopped by ralph", time.Time{}
	}
	completed := h.last != nil && !h.last.IsError && (!h.turnOpen || h.over)
	if !completed {
		if ending := h.apiClass(); ending != "" {
			var reset time.Time
			if ending == ralph.RateLimited {
				reset = h.resetAt
			}
			return ending, h.why(d), reset
		}
	}
	if h.mcpError != "" {
		return ralph.MCPFailed, sentence(h.mcpError, d.server), time.Time{}
	}
	if h.limitReached() {
		return ralph.TimedOut, h.why(d), time.Time{}
	}
	ending, reason := h.otherwise(d, completed)
	return ending, reason, time.Time{}
}

// otherwise handles sessions that fit no class of errors.
func (h *history) otherwise(d death, completed bool) (ralph.Ending, string) {
	_, cost, _ := h.usage()
	idle := h.toolCalls == 0 && cost == 0
	failed := h.last != nil && h.last.IsError && !h.turnOpen
	switch {
	case failed && strings.HasPrefix(h.last.TerminalReason, "aborted"):
		return ralph.Lost, "the agent was interrupted, and not by ralph"
	case d.mute && !completed && !failed:
		return ralph.Lost, d.String() // what it said while being ended explains nothing
	case !completed && !failed && d.crashed():
		return ralph.Lost, sentence(d.String(), text.LastLine(d.stderr))
	case idle:
		return ralph.NoWork, h.why(d)
	case completed:
		return ralph.Finished, "the agent ended its turn"
	case failed:
		return ralph.Lost, h.why(d)
	}
	return ralph.Lost, sentence(d.String()+" in the middle of its work", text.LastLine(d.stderr))
}

// apiClass returns the class of the API error that ended the conversation; "" if there is none.
func (h *history) apiClass() ralph.Ending {
	code, terminal := 0, ""
	if h.last != nil && !h.turnOpen {
		code, terminal = status(h.last.APIErrorStatus), h.last.TerminalReason
	}
	if code == 0 && h.apiError == "" && h.retrying {
		code = h.retry // it ended during a retry
	}
	switch {
	case h.rejected, h.apiError == "rate_limit", code == 429:
		return ralph.RateLimited
	case h.unreached(code):
		return ralph.Network
	case h.apiError == "server_error", h.apiError == "overloaded", code >= 500:
		return ralph.Overloaded
	case h.apiError == "authentication_failed", code == 401, code == 403:
		return ralph.AuthFailed
	case h.apiError == "billing_error", code == 402:
		return ralph.Billing
	case terminal == "prompt_too_long", code == 413:
		return ralph.PromptTooLong
	}
	return ""
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

// limitReached reports whether the session reached its own limit of turns
// or cost (decision 7). Only the subtype tells that the budget is used up.
func (h *history) limitReached() bool {
	if h.overTurns {
		return true
	}
	if h.last == nil || !h.last.IsError || h.turnOpen {
		return false
	}
	return h.last.TerminalReason == "max_turns" || strings.HasPrefix(h.last.Subtype, "error_max_")
}

// why returns the agent's own account of what went wrong, if it has one.
func (h *history) why(d death) string {
	if h.overTurns {
		return fmt.Sprintf("reached the limit of turns after %d", h.turns)
	}
	if h.apiText != "" {
		return sentence(h.apiText)
	}
	if h.last != nil && !h.turnOpen {
		if s := sentence(strings.Join(append([]string{h.last.Result}, h.last.Errors...), " ")); s != "" {
			return s
		}
	}
	if h.retrying {
		return sentence(d.String()+" while it tried to reach the service again", text.LastLine(d.stderr))
	}
	for _, s := range []string{text.LastLine(d.stderr), h.rubbish, h.lastWords} {
		if s != "" {
			return sentence(d.String(), s)
		}
	}
	return d.String() + " without having said anything"
}

// sentence joins the parts that are not empty with colons, on one line of limited length.
func sentence(parts ...string) string {
	var all []string
	for _, p := range parts {
		if p = text.Flat(p); p != "" {
			all = append(all, p)
		}
	}
	return text.Clip(strings.Join(all, ": "), maxReason)
}
