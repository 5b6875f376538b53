package main

import (
	"os"
	"os/exec"
	"regexp"
	"testing"
)

// TestWhatEachSessionStartsWaitsForNoCommand: ralph as a part of a session is done before the packages of its commands
// are initialized. Most of these wait for regexp. A package that it imports can undo that.
func TestWhatEachSessionStartsWaitsForNoCommand(t *testing.T) {
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
