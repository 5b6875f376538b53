package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestDemoOfCheats: no cheat was merged, and all honest work was. The demo itself says so.
func TestDemoOfCheats(t *testing.T) {
	long(t)
	t.Parallel()
	said := wantStatus(t, exec.CommandContext(t.Context(), "ralph", "demo", "--cheats"), 0)
	for _, want := range []string{"asks you  Give a reason for deleting it", "merged    Rename a test", "No cheat has been merged"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in\n%s", want, said)
		}
	}
}
