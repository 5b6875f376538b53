package merging

import (
	"testing"

	"ralph/loop/gate/gatetest"
)

// TestTrialOfRealProjects plays changes that keep tests from failing without touching them, by hooks, helpers, replaced
// assertions, exits and values that are equal to all, and honest changes that look like them.
func TestTrialOfRealProjects(t *testing.T) {
	t.Parallel()
	projects, err := gatetest.Trials()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range projects {
		if testing.Short() && p.Name != "shell" && p.Name != "c" {
			continue // make check has them
		}
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			playGate(t, p)
		})
	}
}
