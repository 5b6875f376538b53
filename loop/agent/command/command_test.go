package command

import (
	"testing"

	"ralph"
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
		{"by itself", false, 0, "", "noise", ralph.Finished, "the command ended"},
		{"stopped", true, -1, "SIGKILL", "", ralph.Interrupted, "stopped by ralph"},
		{"killed by somebody", false, -1, "SIGKILL", "", ralph.Lost, "the command was killed by SIGKILL"},
		{"nobody knows", false, -1, "", "", ralph.Lost, "the command is gone, and how it ended is unknown"},
		{"it failed", false, 3, "", "one\ntwo\n", ralph.Lost, "the command exited with status 3: two"},
		{"there is none", false, 127, "", "", ralph.NoWork, "the command exited with status 127"},
	} {
		if ending, reason := ending(tt.stopped, tt.code, tt.signal, tt.stderr); ending != tt.ending || reason != tt.reason {
			t.Errorf("%s: got %s %q", tt.name, ending, reason)
		}
	}
}
