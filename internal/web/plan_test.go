package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"ralph"
	"ralph/store"
)

// plan has a session plan a feature that has an open task "old" already, which it changes.
func (s *site) plan(feature string) {
	s.t.Helper()
	task := int64(0)
	s.write(func(tx *store.Tx) (err error) {
		if err = tx.PutFeature(ralph.Feature{Name: feature, Description: "All of it."}); err != nil {
			return err
		}
		old := ralph.PlannedTask{Name: "old", Title: "Old", Verify: []string{"test -f old"}}.Task(feature)
		old.Status = ralph.Pending
		if _, err = tx.AddTask(old, "agent"); err != nil {
			return err
		}
		task, err = tx.AddTask(ralph.Task{Title: "Plan: all", Feature: feature, Role: ralph.RolePlan}, "human")
		return err
	})
	s.start(task, session)
	s.write(func(tx *store.Tx) error {
		by, err := tx.Session(session)
		if err != nil {
			return err
		}
		known, err := tx.KnownToPlan(feature)
		if err != nil {
			return err
		}
		return tx.ProposePlan(by, feature, ralph.Plan{
			Tasks: []ralph.PlannedTask{
				{Name: "first", Title: "First <b>", Description: "All that it says.", Files: []string{"a/**"}, Acceptance: []string{"it holds"}},
				{Name: "second", Title: "Second", Verify: []string{"test -f second"}, DependsOn: []string{"first"}},
				{Name: "third", Title: "Third"},
				{Name: "old", Title: "New"},
			},
			Marks: map[string][]string{"third": {"names no file and no check"}},
		}, known)
	})
}

// TestAPlanIsOneItem: a plan of any size is one row, which opens to all of it, and the approved tasks are the shown
// ones.
func TestAPlanIsOneItem(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.plan(`a "plan"`)
	b := s.browser()
	if page := b.get("/inbox"); strings.Contains(page, `name="verdict"`) || strings.Contains(page, "checkbox") {
		t.Error("a stranger can decide")
	}
	b.signIn()
	has(t, b.get("/"), "a &#34;plan&#34;: adds 3 tasks, changes 1 task; 1 marked")
	page := b.inbox()
	if n := strings.Count(page, `class="to"`); n != 1 {
		t.Errorf("%d rows", n)
	}
	all := "?item=A1%20TASK-3%20TASK-4%20TASK-5"
	has(t, page, "First &lt;b&gt;", "All that it says.", "it holds", "a/**", "test -f second", "TASK-3 first", "names no file and no check",
		`<span class="del">-`, `<span class="add">&#43;`, `value="TASK-3"`, `formaction="/inbox/many`+all+`"`, "Approve all 4", "Approve chosen", "Reject all 4")
	has(t, b.get("/feature?name="+url.QueryEscape(`a "plan"`)), "Approve all 4", "All that it says.")
	has(t, b.get("/inbox/many?item=PLAN-1"), "All that it says.", `name="item" value="A1 TASK-3 TASK-4 TASK-5"`)

	if w := b.post("/inbox/many", "verdict", "approve"); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("nothing chosen: %d", w.Code)
	}
	b.done("/inbox/many", "item", "TASK-4", "verdict", "approve")
	if first, second := s.taskNow(3).Status, s.taskNow(4).Status; first != ralph.Proposed || second != ralph.Blocked && second != ralph.Pending {
		t.Errorf("the first is %s, and the second, which alone was approved, %s", first, second)
	}
	// The shown plan is incomplete now: nothing is decided, and the person sees why.
	if w := b.post("/inbox/many"+all, "verdict", "approve"); w.Code != http.StatusConflict {
		t.Errorf("what is decided already: %d", w.Code)
	}
	if got := s.taskNow(3).Status; got != ralph.Proposed {
		t.Errorf("the first is %s, though not all was there", got)
	}
	has(t, b.inbox(), "1 task decided", "Approve all 3")
	b.done("/inbox/many?item=A1+TASK-3+TASK-5", "verdict", "reject", "text", "not this year")
	if got := s.taskNow(5); got.Status != ralph.Rejected || !strings.Contains(got.StatusReason, "not this year") {
		t.Errorf("the third is %s: %s", got.Status, got.StatusReason)
	}
	if got := s.taskNow(1).Title; got != "Old" {
		t.Errorf("a change that was rejected is made: %s", got)
	}
	if page := b.inbox(); strings.Contains(page, "Approve all") || !strings.Contains(page, "waits for TASK-3") {
		t.Error("the plan still waits, or the dependency on what was rejected does not")
	}
}
