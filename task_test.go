package ralph_test

import (
	"slices"
	"strings"
	"testing"

	"ralph"
)

func TestEditsThatEndASession(t *testing.T) {
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

// TestOneWordForEachTask: people read it on every screen.
func TestOneWordForEachTask(t *testing.T) {
	blocked := ralph.Waits{Blockers: 1}
	for _, tt := range []struct {
		task ralph.Task
		word string
	}{
		{ralph.Task{Status: ralph.Proposed}, "needs you"},
		{ralph.Task{Status: ralph.Pending}, "queued"},
		{ralph.Task{Status: ralph.InProgress}, "running"},
		{ralph.Task{Status: ralph.Merging}, "merging"},
		{ralph.Task{Status: ralph.Merging, InReview: true}, "in review"},
		{ralph.Task{Status: ralph.NeedsInput}, "needs you"},
		{ralph.Task{Status: ralph.Blocked}, "waiting"},
		{ralph.Task{Status: ralph.Blocked, Waits: blocked}, "needs you"},
		{ralph.Task{Status: ralph.Blocked, Waits: blocked, InReview: true}, "needs you"},
		{ralph.Task{Status: ralph.Completed, InReview: true}, "merged"},
		{ralph.Task{Status: ralph.Failed}, "failed"},
		{ralph.Task{Status: ralph.Rejected}, "cancelled"},
		{ralph.Task{Status: ralph.Cancelled}, "cancelled"},
	} {
		look := ralph.WordLook(tt.word).Label
		if got := tt.task.Word(); got != tt.word || !slices.Contains(ralph.Words, got) || !strings.EqualFold(look, got) {
			t.Errorf("%s, in review: %t: %q, shown as %q, want %q", tt.task.Status, tt.task.InReview, got, look, tt.word)
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
