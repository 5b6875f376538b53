package claude_test

import (
	"strings"
	"testing"

	"ralph"
	"ralph/loop/agent"
)

// The charge for an agent without a reported cost depends on whether it may have called its model.
func TestAgentsThatBegan(t *testing.T) {
	noServer := `{"type":"system","subtype":"init","tools":[],"mcp_servers":[]}` + "\n"
	for _, tt := range []struct {
		name   string
		stream string
		want   bool
	}{
		{"one that said nothing", "", false},
		{"one that printed no event", "node:internal/modules/cjs/loader:1\n", false},
		{"a hook before its start", `{"type":"system","subtype":"hook_response"}` + "\n", false},
		{"its tools did not reach it", noServer, false},
		{"they did", initOK, true},
		{"the model answered all the same", noServer + work, true},
		{"it answered without a start", work, true},
		{"it reported", success, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := read(t, tt.stream, agent.Death{Code: 1}).Began; got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}

// The report names the cause of an agent's end. An end that ralph did not ask for is a lost session, which is counted.
func TestEndsOfAnAgent(t *testing.T) {
	aborted := `{"type":"result","is_error":true,"terminal_reason":"aborted_tools"}` + "\n"
	for _, tt := range []struct {
		name   string
		stream string
		death  agent.Death
		ending ralph.Ending
		why    string
	}{
		{"it closed its output and hung", initOK + work, agent.Death{Code: -1, Signal: "SIGINT", Stderr: "KeyboardInterrupt", Mute: true}, ralph.Lost, "Claude Code closed its output and did not end, so that ralph ended it"},
		{"somebody else killed it", initOK + work, agent.Death{Code: -1, Signal: "SIGINT", Stderr: "KeyboardInterrupt"}, ralph.Lost, "Claude Code was killed by SIGINT: KeyboardInterrupt"},
		{"somebody else interrupted it", initOK + work + aborted, agent.Death{Code: 1}, ralph.Lost, "the agent was interrupted, and not by ralph"},
		{"ralph stopped it", initOK + work + aborted, agent.Death{Code: 1, Stopped: true}, ralph.Interrupted, "stopped by ralph"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if r := read(t, tt.stream, tt.death); r.Ending != tt.ending || !strings.HasPrefix(r.Reason, tt.why) {
				t.Errorf("got %s: %s", r.Ending, r.Reason)
			}
		})
	}
}
