package ralph_test

import (
	"testing"

	"ralph"
)

func TestWhichChangesEndASession(t *testing.T) {
	before := ralph.Task{Title: "A", Description: "a", Acceptance: []string{"it works"}, Verify: []string{"make test"}, Priority: 2}
	for _, tt := range []struct {
		name   string
		change func(*ralph.Task)
		agents bool // ends an agent's session
		people bool // ends a person's session, if it is an amendment
	}{
		{"nothing", func(*ralph.Task) {}, false, false},
		{"the title", func(t *ralph.Task) { t.Title = "B" }, false, false},
		{"the description", func(t *ralph.Task) { t.Description = "b" }, true, false},
		{"the criteria", func(t *ralph.Task) { t.Acceptance = nil }, true, true},
		{"the verification", func(t *ralph.Task) { t.Verify = []string{"make"} }, true, true},
		{"the place in the queue", func(t *ralph.Task) { t.Priority = 0 }, false, false},
		{"who works on it, and how", func(t *ralph.Task) { t.Discipline, t.Model, t.Feature = "backend", "m", "f" }, false, false},
	} {
		after := before
		tt.change(&after)
		for _, amended := range []bool{true, false} {
			if got := ralph.NewContract(before, after, false, amended); got != tt.agents {
				t.Errorf("%s: ends an agent's session: %t, want %t", tt.name, got, tt.agents)
			}
			if got, want := ralph.NewContract(before, after, true, amended), tt.people && amended; got != want {
				t.Errorf("%s (amended: %t): ends a person's session: %t, want %t", tt.name, amended, got, want)
			}
		}
	}
}

// TestTheLookOfATaskThatWaits: what waits for another task needs no person, and does not look like what does.
func TestTheLookOfATaskThatWaits(t *testing.T) {
	for _, tt := range []struct {
		status ralph.Status
		reason string
		want   string
	}{
		{ralph.Blocked, "waits for TASK-3", "Waiting"},
		{ralph.Blocked, "waits for TASK-3, TASK-4", "Waiting"},
		{ralph.Blocked, "waits for a blocker to be resolved; stuck: no schema", "Blocked"},
		{ralph.Pending, "waits for TASK-3", "Pending"},
	} {
		if got := (ralph.Task{Status: tt.status, StatusReason: tt.reason}).Look().Label; got != tt.want {
			t.Errorf("%s, %s: %s, want %s", tt.status, tt.reason, got, tt.want)
		}
	}
}
