package main

import (
	"slices"
	"strings"
	"testing"
)

// planning returns a project in which a session has planned three tasks of the feature "files".
func planning(t *testing.T) *scriptedProject {
	t.Helper()
	s := newScriptedProject(t, `task Plan: Make files
  call plan.task {"name": "one", "title": "Make one", "description": "With a line.", "verify": ["test -f one"], "files": ["one"]}
  call plan.task {"name": "two", "title": "Make two", "verify": ["true"], "depends_on": ["one"]}
  call plan.task {"name": "three", "title": "Make three", "verify": ["test -f three"], "files": ["three"]}
  call plan.done {"summary": "three files"}
`, "verify: ['true']\n")
	s.has(s.ralph(0, "plan", "Make files", "--feature", "files"), "planned: 3 tasks")
	return s
}

// TestAChatDecidesOnAPlan: the person sees everything in the question, a model cannot say yes for them, and a task that
// changed meanwhile is not decided.
func TestAChatDecidesOnAPlan(t *testing.T) {
	t.Parallel()
	s := planning(t)
	c := s.chat(nil)
	c.want("agentic_plan_show", `{}`, "With a line.", false)
	c.want("agentic_plan_show", `{"feature":"none"}`, "there is no feature", true)
	c.want("agentic_plan_decide", `{"verdict":"approve"}`, "a person has to say so, and this client cannot ask them: `ralph plan approve`", true)
	p := &person{answer: "decline"}
	c = s.chat(p)
	c.want("agentic_plan_decide", `{"verdict":"approve","names":["two","TASK-4"]}`, "the person did not confirm it: the plan stays as it is", true)
	asked := "Approve 2 parts of the plan of files?\n\nadds TASK-3 Make two\n  (ralph: `true` passes before any work: proves nothing)\nadds TASK-4 Make three"
	if want := []string{asked}; !slices.Equal(p.asked, want) {
		t.Errorf("the person was asked %q, want %q", p.asked, want)
	}
	p.answer, p.slow = "accept", func() { s.ralph(0, "task", "edit", "4", "--title", "Make 3") }
	c.want("agentic_plan_decide", `{"verdict":"approve"}`, "was changed", true)
	p.slow = nil
	c.want("agentic_plan_decide", `{"verdict":"maybe"}`, "verdict", true)
	c.want("agentic_plan_decide", `{"verdict":"approve","names":["four"]}`, "has no open part", true)
	c.want("agentic_plan_decide", `{"verdict":"approve","names":["one"],"feature":"files"}`, "approved TASK-2: it is in the queue", false)
	c.want("agentic_plan_decide", `{"verdict":"reject","reason":"not now"}`, "rejected TASK-4", false)
	s.has(s.ralph(0, "task", "show", "4"), "rejected", "not now")
	c.want("agentic_plan_decide", `{"verdict":"approve"}`, "no plan waits for you", true)
}

// TestABrowserDecidesOnAPlan: it shows all of a task, and approves the chosen parts, and nothing else.
func TestABrowserDecidesOnAPlan(t *testing.T) {
	t.Parallel()
	needChromium(t)
	s := planning(t)
	d := serveProject(t, s, "127.0.0.1:0")
	p := newTab(t)
	p.signIn(s, d)
	p.open(d.url)
	p.click(`#waits-h + ul a.to`)
	p.reads("#pane .crumbs", "Plan")
	p.click(`#plan-2 summary`)
	p.reads("#plan-2 .whole", "With a line.")
	p.open(d.url + "/feature?name=files")
	p.click(`#plan-2 input`)
	p.click(`form[id^=planform] button[value=approve]:not([formaction])`)
	p.reads(".flash, #corner", "TASK-2")
	if list := s.ralph(0, "task", "list"); !strings.Contains(list, "TASK-2  queued") || strings.Count(list, "needs you") != 2 {
		t.Errorf("the tasks are\n%s", list)
	}
}
