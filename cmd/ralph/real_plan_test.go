package main

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"ralph/internal/tools/messagesapi"
	"ralph/loop/agent/claude"
)

// planned is a call of a tool of sessions that plan or review.
func planned(tool string, input map[string]any) messagesapi.Tool {
	return messagesapi.Tool{Name: claude.Profile.Tool(tool), Input: input}
}

// plannedFile returns the call that plans a task which makes a file of its name.
func plannedFile(name, verify string, after ...string) messagesapi.Tool {
	return planned("plan.task", map[string]any{
		"name": name, "title": "Make file " + name, "files": []string{name + ".txt"}, "verify": []string{verify},
		"depends_on": append([]string{}, after...),
	})
}

// TestRealPlan: claude plans six tasks. A person approves some; two are worked on at once, codex reviews and objects to
// one, and a merged change is undone and made again.
func TestRealPlan(t *testing.T) {
	t.Parallel()
	summary := planned("plan.done", map[string]any{"summary": "six files"})
	approve := tools(planned("review.approve", map[string]any{"checked": "read the file"}))
	look := bash("cat *.txt")
	object := tools(planned("review.object", map[string]any{
		"file": "three.txt", "line": 1, "what": "it shouts", "why": "three is a quiet word", "severity": "blocking",
	}))
	scripts := map[string]func(int, messagesapi.Request) messagesapi.Turn{
		"plan": turns(tools(
			plannedFile("one", "grep one one.txt"), plannedFile("two", "nosuchprogram two.txt"),
			plannedFile("three", "grep -i three three.txt", "one", "two"), plannedFile("four", "test -d ."),
			plannedFile("five", "sleep 300"), plannedFile("six", "grep six six.txt", "five"),
		), tools(summary), finished, tools(plannedFile("two", "grep two two.txt")), tools(summary), finished),
		"work one":     turns(bash("echo one > one.txt"), done("made one"), finished),
		"work two":     turns(bash("echo two > two.txt"), done("made two"), finished),
		"review one":   turns(look, approve, finished),
		"review two":   turns(look, approve, finished),
		"review three": turns(look, object, finished, look, approve, finished, look, approve, finished),
		"work three": turns(bash("echo THREE > three.txt"), done("made three"), finished,
			bash("echo three > three.txt"), done("quiet now"), finished, bash("echo three again > three.txt"), done("again"), finished),
	}
	asked := map[string]int{}
	s := newStage(t, func(_ int, r messagesapi.Request) messagesapi.Turn {
		who := "plan"
		for id, name := range map[int]string{2: "one", 3: "two", 4: "three"} {
			switch {
			case strings.Contains(r.Text, "review of Make file "+name):
				who = "review " + name
			case strings.Contains(r.Text, fmt.Sprintf("Your task: TASK-%d Make file %s", id, name)):
				who = "work " + name
			}
		}
		asked[who]++
		return scripts[who](asked[who]-1, r)
	})
	s.codexHome()
	s.configure("agents:\n" + codexAgent(realCodex(t)) + "review: [{agent: codex}]\nverify: {timeout: 10s}")
	s.commit()
	s.has(s.run(0, "plan", "Make six files", "--feature", "files"), "planned: 6 tasks", "proposed as six",
		"`test -d .` passes before any work: proves nothing", "`sleep 300` does not end: killed after 10s", "Verify: grep two two.txt")
	s.has(s.run(0, "session", "log"), "→ plan_task name=six", "two: `nosuchprogram two.txt`", "the turn ended after 3 steps") // both turns
	s.has(s.api.Requests()[3].Text, "fail for another reason than that the work is missing")
	s.run(0, "plan", "approve", "one", "two", "three")
	s.has(s.run(0, "run", "--parallel", "2", "--no-wait"), "refused: codex (gpt-5.5) objects: three.txt:1: it shouts",
		"TASK-2 merged", "TASK-3 merged", "TASK-4 merged")
	s.has(s.git("show", "main:three.txt"), "three")
	s.has(s.run(0, "task", "show", "4"), "approved by codex (gpt-5.5): read the file")
	s.has(s.run(0, "report", "-v"), "codex (gpt-5.5): read the file", "claude "+claudeVersion, "codex "+codexVersion)
	if asked["plan"] != 6 || strings.Count(s.run(0, "session", "list", "--json"), `"role": "work"`) != 3 {
		t.Errorf("a plan or a task was mended in another conversation: %v\n%s", asked, s.run(0, "session", "list"))
	}

	s.has(s.run(0, "undo", "4"), "undone: TASK-4, commit")
	s.run(0, "retry", "4", "once more, please")
	s.has(s.run(0, "run", "--no-wait"), "TASK-4 merged")
	s.has(s.git("show", "main:three.txt"), "three again")
	s.has(s.run(0, "task", "list", "--all", "--json"), `"needs_you"`)
}

// TestRealGeminiPlans: the question of a plan that nobody attends waits in the inbox, and with its answer the plan goes on.
func TestRealGeminiPlans(t *testing.T) {
	t.Parallel()
	const question, answer = "red or blue?", "blue, of course"
	var step atomic.Int32 // once it is answered
	s := newGeminiStage(t, func(n int, r messagesapi.Request) messagesapi.Turn {
		if strings.Contains(r.Body, answer) {
			return turns(
				tools(plannedFile("blue", "grep blue blue.txt")),
				tools(planned("plan.done", map[string]any{"summary": "blue"})),
			)(int(step.Add(1))-1, r)
		}
		return turns(tools(planned("plan.ask", map[string]any{"question": question})))(n, r)
	})
	s.has(s.run(4, "plan", "Make a file", "--feature", "files"), "needs you")
	s.has(s.run(0, "inbox"), question)
	s.run(0, "answer", s.question(), answer)
	s.has(s.run(0, "run"), "planned: 1 task")
	s.has(s.run(0, "plan", "show"), "proposed as blue")
}
