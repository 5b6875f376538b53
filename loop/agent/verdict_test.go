package agent_test

import (
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/loop/agent"
)

// TestOddEnds has ends of agents that no recording has. None but the first of the finished ones says anything of its task.
func TestOddEnds(t *testing.T) {
	failed := func(f agent.Failure) agent.Trace {
		return agent.Trace{Last: agent.Failed, Failure: &f, Calls: 2, Said: true, Tokens: ralph.Tokens{Input: 1}}
	}
	text := func(said string) agent.Trace { return failed(agent.Failure{Text: said}) }
	silent := agent.Death{Stopped: true, After: time.Minute, Silent: true, Code: -1}
	retried := agent.Trace{Open: true, Asking: true, Failure: &agent.Failure{Code: agent.NoAnswer}}
	for _, tt := range []struct {
		name  string
		trace agent.Trace
		death agent.Death
		want  ralph.Ending
	}{
		{"what the task is about", text("Claude Code is unable to respond to this request, which appears to violate our Usage Policy"), agent.Death{}, ralph.Finished},
		{"a model that speaks of a limit", agent.Trace{Last: agent.Completed, Said: true, Calls: 1, Words: "I fixed the 429 rate limit"}, agent.Death{}, ralph.Finished},

		{"429 in Chinese", failed(agent.Failure{Status: 429, Text: "请求过于频繁，请稍后再试"}), agent.Death{}, ralph.RateLimited},
		{"429 in German, in words alone", text("Fehler 429: Kontingent erschöpft"), agent.Death{}, ralph.RateLimited},
		{"401 in French, in words alone", text("Accès refusé (erreur 401)"), agent.Death{}, ralph.AuthFailed},
		{"200 with an event of an error", failed(agent.Failure{Status: 200, Text: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}), agent.Death{}, ralph.Overloaded},
		{"200 with words of an error", failed(agent.Failure{Status: 200, Text: "Overloaded"}), agent.Death{}, ralph.Overloaded},
		{"a line of JSON that is cut", text("Unexpected end of JSON input"), agent.Death{}, ralph.Network},
		{"a text in it that is cut", text("Unterminated string in JSON at position 5120"), agent.Death{}, ralph.Network},
		{"a body that is cut", text("Invalid response body while trying to fetch: Premature close"), agent.Death{}, ralph.Network},
		{"undici's word for it", text("terminated"), agent.Death{}, ralph.Network},
		{"a page of a gateway", text("<html><head><title>503 Service Temporarily Unavailable</title></head></html>"), agent.Death{}, ralph.Overloaded},
		{"a status that no table has", text("524: A timeout occurred"), agent.Death{}, ralph.Overloaded},
		{"nginx's 413", text("413 Request Entity Too Large"), agent.Death{}, ralph.PromptTooLong},
		{"logged out in the middle", text("Session expired. Please run /login"), agent.Death{}, ralph.AuthFailed},
		{"an account that was closed", text("Your organization has been disabled."), agent.Death{}, ralph.AuthFailed},
		{"a subscription's limit", text("You've hit your limit · resets 3pm"), agent.Death{}, ralph.RateLimited},
		{"a limit of money", text("Monthly spending limit reached"), agent.Death{}, ralph.Billing},
		{"the disk of this machine", text("429 files: ENOSPC: no space left on device"), agent.Death{}, ralph.Lost},

		{"status 0 after a call, and no word", agent.Trace{Open: true, Calls: 1}, agent.Death{Code: 0}, ralph.Lost},
		{"status 0, and nothing at all", agent.Trace{}, agent.Death{Code: 0}, ralph.NoWork},
		{"killed for its memory", agent.Trace{Open: true, Calls: 1, Said: true}, agent.Death{Code: 137}, ralph.Lost},
		{"a turn of nothing", agent.Trace{Last: agent.Completed, Nothing: true}, agent.Death{}, ralph.NoWork},
		{"a turn of nothing but an error", agent.Trace{Last: agent.Completed, Nothing: true, Words: "Error: 429 You exceeded it"}, agent.Death{}, ralph.RateLimited},
		{"silence while it tries again", retried, silent, ralph.RateLimited},
		{"silence while it says what it tries again", agent.Trace{Open: true, Asking: true, Failure: &agent.Failure{Code: "connection", Text: "Reconnecting..."}}, silent, ralph.Network},
		{"silence of a tool", agent.Trace{Open: true, Calls: 1, Said: true}, silent, ralph.Interrupted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := agent.EndOf(&agent.Profile{Title: "It", Tokens: agent.WithRequest}, tt.trace, tt.death)
			if v.Ending != tt.want || v.Reason == "" || strings.Contains(v.Reason, "\n") {
				t.Errorf("%s (%s), not %s", v.Ending, v.Reason, tt.want)
			}
		})
	}
}
