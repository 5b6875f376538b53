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

func TestWaits(t *testing.T) {
	for _, tt := range []struct {
		waits  ralph.Waits
		status ralph.Status
		person bool
		look   string
		says   string
	}{
		{ralph.Waits{}, ralph.Pending, false, "Queued", ""},
		{ralph.Waits{Questions: 2}, ralph.NeedsInput, true, "Needs you", "waits for an answer"},
		{ralph.Waits{Blockers: 3}, ralph.Blocked, true, "Needs you", "waits for a blocker to be resolved"},
		{ralph.Waits{Tasks: []int64{3, 4}}, ralph.Blocked, false, "Waiting", "waits for TASK-3 and TASK-4"},
		{
			ralph.Waits{Blockers: 1, Tasks: []int64{3}},
			ralph.Blocked, true, "Needs you", "waits for a blocker to be resolved and TASK-3",
		},
		{ralph.Waits{Questions: 1, Tasks: []int64{3}}, ralph.NeedsInput, true, "Needs you", "waits for an answer and TASK-3"},
	} {
		task := ralph.Task{Status: tt.waits.Status(), Waits: tt.waits}
		look := task.Look().Label
		if task.Status != tt.status || task.NeedsPerson() != tt.person || look != tt.look || tt.waits.String() != tt.says {
			t.Errorf("%+v: %s (%s), needs a person: %t, %q", tt.waits, task.Status, look, task.NeedsPerson(), tt.waits)
		}
	}
}
