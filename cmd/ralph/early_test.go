package main

import (
	"os"
	"os/exec"
	"regexp"
	"testing"
)

// TestHelpersStartBeforeTheCommands: ralph as a session's helper ends before the packages of its commands are
// initialized. Most of the wait is for regexp. A package that it imports can undo that.
func TestHelpersStartBeforeTheCommands(t *testing.T) {
	t.Parallel()
	initialized := regexp.MustCompile(`(?m)^init regexp `)
	for argument, early := range map[string]bool{
		"__supervise": true, "__confine": true, "--version": false,
	} {
		ralph := exec.CommandContext(t.Context(), "ralph", argument)
		ralph.Env = append(os.Environ(), "GODEBUG=inittrace=1", "RALPH_CHANNEL=/no/such/socket")
		out, err := ralph.CombinedOutput()
		if initialized.Match(out) == early {
			t.Errorf("`ralph %s` (%v), to be early: %v:\n%s", argument, err, early, out)
		}
	}
}
