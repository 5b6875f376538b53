package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ralph"
	"ralph/internal/tools/messagesapi"
	"ralph/loop/gate/gatetest"
)

// TestGateWithAgents: agents' changes of the tests of small projects have the results that gatetest lists. Each
// change is a task of one run of a project. Told that tests refuse its work, the agent says that the task asks for
// that.
//
// RALPH_TEST_CHEATS=all (`make storm`) has all of them played by the scripted agent, the real claude and codex. Else
// the scripted one plays a project: the findings are the same without an agent (TestGateOfRealProjects in
// loop/merging).
func TestGateWithAgents(t *testing.T) {
	long(t)
	t.Parallel()
	projects, err := gatetest.Read()
	if err != nil {
		t.Fatal(err)
	}
	played := map[string][]string{"scripted": {"script"}}
	if os.Getenv("RALPH_TEST_CHEATS") == "all" {
		var all []string
		for _, p := range projects {
			all = append(all, p.Name)
		}
		played = map[string][]string{"scripted": all, "claude": all, "codex": {"make", "python"}}
	}
	for _, agent := range slices.Sorted(maps.Keys(played)) {
		for _, p := range projects {
			if !slices.Contains(played[agent], p.Name) {
				continue
			}
			t.Run(agent+" "+p.Name, func(t *testing.T) {
				if _, err := exec.LookPath(p.Needs); err != nil {
					t.Skip(p.Needs + " is not installed")
				}
				playCases(t, agent, p)
			})
		}
	}
}

// caseOf finds the case in the title of a task.
var caseOf = regexp.MustCompile(`\bCase (G\d+)\b`)

// playCases has an agent work on all cases of a project in one run.
func playCases(t *testing.T, agent string, p gatetest.Project) {
	requests := map[string]int{} // of a case
	answer := func(_ int, r messagesapi.Request) messagesapi.Turn {
		m := caseOf.FindStringSubmatch(r.Text)
		if m == nil {
			return finished
		}
		requests[m[1]]++
		switch c := p.Cases[slices.IndexFunc(p.Cases, func(c gatetest.Case) bool { return c.ID == m[1] })]; requests[m[1]] {
		case 1:
			return bash(covertly(c.Shell()))
		case 2:
			return done("made it")
		case 4:
			return tools(say("done", map[string]any{"summary": "made it", "tests_changed": "the task says so"}))
		}
		return finished
	}
	files := maps.Clone(p.Files)
	const each = "#test: {retries: 1, refused: 1}\nmerge: {mode: branch}\n" // so that each begins with the project as it is
	s := newStage(t, answer)
	switch agent {
	case "codex":
		s = newCodexStage(t, answer)
	case "scripted":
		s.write(map[string]string{"ralph.yaml": "agent: {command: [ralph, scripted-agent]}\n"})
		var script strings.Builder
		for _, c := range p.Cases {
			fmt.Fprintf(&script, "task Case %s:\nrun %s\ndone {\"summary\": \"made it\"}\n"+
				"turn\ndone {\"summary\": \"made it\", \"tests_changed\": \"the task says so\"}\n", c.ID, c.Shell())
		}
		files["claude.script"], files[".gitignore"] = script.String(), "claude.script.sessions\n"
	}
	s.configure(each + "verify: {commands: ['" + p.Command + "']}")
	if p.Needs == "go" {
		s.environ = append(s.environ, warmGo(s.t))
	}
	s.write(files)
	s.commit()
	tip := s.git("rev-parse", "main")
	for _, c := range p.Cases {
		add := []string{"task", "add", "Case " + c.ID + ": " + c.Name}
		for _, a := range c.Allows {
			add = append(add, "--allow", a)
		}
		s.run(0, add...)
	}
	ran := s.command("run")
	text, _ := ran.CombinedOutput() // its status depends on the trial's verdicts
	out := string(text)
	inbox := s.run(0, "inbox")
	var list []ralph.Task
	if err := json.Unmarshal([]byte(s.run(0, "task", "list", "--all", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	exit := ralph.ExitWaiting
	if slices.ContainsFunc(list, func(t ralph.Task) bool { return t.State == (ralph.Task{Status: ralph.Failed}).Key() }) {
		exit = ralph.ExitFailed
	}
	if got := ran.ProcessState.ExitCode(); got != exit {
		t.Errorf("ralph run: exit status %d, want %d\n%s", got, exit, out)
	}
	for i, c := range p.Cases {
		id, status, sentence, item := "TASK-"+strconv.Itoa(i+1), ralph.NeedsInput, "waits for approval of changed tests (", "tests changed TASK-%d"
		kind, name, _ := strings.Cut(c.Found, " ")
		at := slices.IndexFunc(list, func(t ralph.Task) bool { return t.ID == int64(i+1) })
		if at >= 0 && kind != "" && strings.Contains((hostile{}).told(out, i+1), "can be changed without it failing") {
			kind = "refused" // by the trial, before the gate
		}
		switch kind {
		case "":
			status, sentence, item = ralph.Completed, "done and verified", ""
		case "refused":
			status, sentence, item = ralph.Failed, "done was refused: ", `(?m)^TASK-%d +failed`
		case "guarded":
			sentence, item = "waits for approval of guarded files ("+name+")", "review TASK-%d"
		default:
			sentence += name + " " + kind
		}
		if at < 0 || list[at].State != (ralph.Task{Status: status}).Key() {
			t.Errorf("%s %s: the task is %v, want %s\n%s", c.ID, c.Name, list[at], status, out)
			continue
		}
		if told := (hostile{}).told(out, i+1); !strings.Contains(told, sentence) {
			t.Errorf("%s %s: want %q, and it says\n%s", c.ID, c.Name, sentence, told)
		}
		if item == "" {
			item = id + " " // nothing of it
		} else {
			item = fmt.Sprintf(item, i+1)
		}
		if is := regexp.MustCompile(item + `\b`).MatchString(inbox); is != (c.Found != "") {
			t.Errorf("%s %s: it is %t that the inbox has %q:\n%s", c.ID, c.Name, is, item, inbox)
		}
		if branch := s.git("for-each-ref", "refs/heads/ralph/"+id+"-*"); (branch != "") != (status == ralph.Completed) {
			t.Errorf("%s %s: its branch is %q", c.ID, c.Name, branch)
		}
	}
	if s.git("rev-parse", "main") != tip {
		t.Error("main has moved")
	}
}
