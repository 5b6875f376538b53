package command

import (
	"testing"

	"ralph"
	"ralph/loop/agent"
)

func TestEnding(t *testing.T) {
	for _, tt := range []struct {
		name    string
		stopped bool
		code    int
		signal  string
		stderr  string
		ending  ralph.Ending
		reason  string
	}{
		{"by itself", false, 0, "", "noise", ralph.Finished, "the agent ended its turn"},
		{"stopped", true, -1, "SIGKILL", "", ralph.Interrupted, "stopped by ralph"},
		{"killed by somebody", false, -1, "SIGKILL", "", ralph.Lost, "the command was killed by SIGKILL"},
		{"nobody knows", false, -1, "", "", ralph.Lost, "the command is gone, and how it ended is unknown"},
		{"it failed", false, 3, "", "one\ntwo\n", ralph.Lost, "the command ended its turn with an error: it exited with status 3: two"},
		{"there is none", false, 127, "", "", ralph.NoWork, "the command does not begin: it exited with status 127"},
		{"it was limited", false, 1, "", "Error: 429 Too Many Requests", ralph.RateLimited, "it exited with status 1: Error: 429 Too Many Requests"},
	} {
		d := agent.Death{Stopped: tt.stopped, Code: tt.code, Signal: tt.signal, Stderr: tt.stderr}
		if v := agent.EndOf(&named, trace(&d), d); v.Ending != tt.ending || v.Reason != tt.reason {
			t.Errorf("%s: got %s %q", tt.name, v.Ending, v.Reason)
		}
	}
}
