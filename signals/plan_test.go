package signals_test

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/signals"
)

func TestPlanProblems(t *testing.T) {
	task := func(name string, on ...string) ralph.PlannedTask {
		return ralph.PlannedTask{Name: name, Title: "Do " + name, DependsOn: on}
	}
	var many []ralph.PlannedTask
	var names []string
	for i := range signals.MaxPlanTasks + 1 {
		names = append(names, fmt.Sprintf("t%d", i))
		many = append(many, task(names[i], names[:i]...)) // visited twice, the first tasks would be visited for ever
	}
	known := signals.Nameable{
		"TASK-3": {ID: 3, Status: ralph.Completed, Role: ralph.RoleWork}, "done": {ID: 3, Status: ralph.Completed, Role: ralph.RoleWork},
		"TASK-4": {ID: 4, Status: ralph.Pending, Role: ralph.RoleWork}, "TASK-5": {ID: 5, Status: ralph.Rejected, Role: ralph.RoleWork},
		"TASK-1": {ID: 1, Status: ralph.InProgress, Role: ralph.RolePlan},
	}
	for _, tt := range []struct {
		name  string
		tasks []ralph.PlannedTask
		want  []string // how each problem begins
	}{
		{"tasks that wait for others", []ralph.PlannedTask{task("a"), task("b", "a"), task("c", "a", "b", "done", "task-4")}, nil},
		{"no task", nil, []string{"it has no task"}},
		{"as many as there may be", many[:signals.MaxPlanTasks], nil},
		{"one more", many, []string{"it has 51 tasks"}},
		{"an unknown name", []ralph.PlannedTask{task("a", "b")}, []string{`a: it depends on "b"`}},
		{"itself", []ralph.PlannedTask{task("a", "a")}, []string{"these wait for each other, so that none could begin: a → a"}},
		{
			"a cycle behind a task",
			[]ralph.PlannedTask{task("a", "b"), task("b", "c"), task("c", "b")},
			[]string{"these wait for each other, so that none could begin: b → c → b"},
		},
		{
			"a cycle beside a dead end",
			[]ralph.PlannedTask{task("a", "b", "c"), task("b"), task("c", "a")},
			[]string{"these wait for each other, so that none could begin: a → c → a"},
		},
		{"no title", []ralph.PlannedTask{{Name: "a"}}, []string{"a: it has no title"}},
		{
			"an unknown discipline",
			[]ralph.PlannedTask{{Name: "a", Title: "A", Discipline: "ops"}},
			[]string{`a: the discipline "ops" is not known: there are web`},
		},
		{"an open task changed", []ralph.PlannedTask{{Name: "TASK-4", Title: "Other"}}, nil},
		{"an open task dropped", []ralph.PlannedTask{{Name: "TASK-4", Drop: "no need"}}, nil},
		{"an open task not changed", []ralph.PlannedTask{{Name: "TASK-4"}}, []string{"TASK-4: nothing of it is changed"}},
		{"another order of an open task", []ralph.PlannedTask{task("TASK-4", "done")}, []string{"TASK-4: TASK-4 exists"}},
		{"with files", []ralph.PlannedTask{{Name: "TASK-4", DependsOn: []string{"done"}, Files: []string{"a"}}}, []string{"TASK-4: TASK-4 exists"}},
		{"with files, and tests that may change", []ralph.PlannedTask{{Name: "TASK-4", Files: []string{"a"}, Allow: []string{"b"}}}, []string{"TASK-4: TASK-4 exists"}},
		{"a done task changed", []ralph.PlannedTask{{Name: "done", Title: "Other"}}, []string{"done: TASK-3 is done, and stays"}},
		{"a done task dropped", []ralph.PlannedTask{{Name: "done", Drop: "no need"}}, []string{"done: TASK-3 is done, and stays"}},
		{"a rejected task changed", []ralph.PlannedTask{{Name: "TASK-5", Title: "Other"}}, []string{"TASK-5: TASK-5 is rejected"}},
		{"a plan changed", []ralph.PlannedTask{{Name: "TASK-1", Title: "Other"}}, []string{"TASK-1: TASK-1 is a plan itself"}},
		{"behind a rejected task", []ralph.PlannedTask{task("a", "TASK-5")}, []string{`a: it depends on "TASK-5", which is rejected`}},
		{
			"behind what it drops",
			[]ralph.PlannedTask{task("a", "TASK-4"), {Name: "TASK-4", Drop: "no need"}},
			[]string{`a: it depends on "TASK-4", which the plan drops`},
		},
		{
			"behind the first task, which it drops",
			[]ralph.PlannedTask{{Name: "TASK-4", Drop: "no need"}, task("a", "TASK-4")},
			[]string{`a: it depends on "TASK-4", which the plan drops`},
		},
		{"nothing dropped", []ralph.PlannedTask{{Name: "z", Drop: "no need"}}, []string{"z: there is no task of that name to drop"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := signals.PlanProblems(ralph.Plan{Tasks: tt.tasks}, known, []string{"web"})
			if !slices.EqualFunc(got, tt.want, strings.HasPrefix) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestADisciplineWhereThereIsNone(t *testing.T) {
	p := ralph.Plan{Tasks: []ralph.PlannedTask{{Name: "a", Title: "A", Discipline: "ops"}}}
	if got := signals.PlanProblems(p, nil, nil); len(got) != 1 || !strings.HasSuffix(got[0], "is not known: there is none") {
		t.Errorf("got %q", got)
	}
}

func TestTasksThatAPlanMayChange(t *testing.T) {
	open := []ralph.Status{ralph.Proposed, ralph.Pending, ralph.InProgress, ralph.NeedsInput, ralph.Blocked, ralph.Failed}
	for _, status := range ralph.Statuses {
		known := signals.Nameable{"TASK-3": {Role: ralph.RoleWork, Status: status}, "plan": {Role: ralph.RolePlan, Status: status}}
		if got, want := known.Open("task-3"), slices.Contains(open, status); got != want {
			t.Errorf("%s: %t", status, got)
		}
		if known.Open("plan") || known.Open("none") {
			t.Errorf("%s: a plan is open, or no task", status)
		}
	}
}

func TestPlanSaid(t *testing.T) {
	known := signals.Nameable{"TASK-3": {}, "TASK-4": {}, "TASK-5": {}}
	add, change, drop := ralph.PlannedTask{Name: "a"}, ralph.PlannedTask{Name: "TASK-3"}, ralph.PlannedTask{Name: "TASK-4", Drop: "no need"}
	for _, tt := range []struct {
		tasks []ralph.PlannedTask
		want  string
	}{
		{[]ralph.PlannedTask{add}, "1 task"},
		{[]ralph.PlannedTask{change}, "1 change of tasks"},
		{[]ralph.PlannedTask{drop}, "1 task to drop"},
		{[]ralph.PlannedTask{add, change, add, drop, change, add, drop}, "3 tasks, 2 changes of tasks, 2 tasks to drop"},
	} {
		if got, want := signals.PlanSaid(ralph.Plan{Tasks: tt.tasks}, known), "planned: "+tt.want+", for you to approve"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestOvertaken: the planner learns of others' changes and additions.
func TestOvertaken(t *testing.T) {
	known := signals.Nameable{"old": {ID: 1}, "TASK-1": {ID: 1}, "edited": {ID: 2}, "added": {ID: 3}, "TASK-9": {ID: 9}}
	now := map[int64]string{1: "a", 2: "b", 3: "c"} // TASK-9 is of another feature
	p := ralph.Plan{Told: map[int64]string{1: "a", 2: "a"}}
	for _, name := range []string{"old", "edited", "added", "new", "TASK-9", "task-1"} {
		p.Tasks = append(p.Tasks, ralph.PlannedTask{Name: name})
	}
	if got, want := signals.Overtaken(p, known, now), []string{"edited", "added"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for name, want := range map[string]string{
		"edited": "edited: TASK-2 was changed by others meanwhile",
		"added":  "added: TASK-3, which was added meanwhile, has that name",
	} {
		if got := signals.OvertakenBy(p, name, known[name]); !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestPlanMarks(t *testing.T) {
	meet := func(a, b []string) bool {
		return slices.ContainsFunc(a, func(p string) bool {
			return slices.ContainsFunc(b, func(q string) bool { ok, _ := path.Match(p, q); return ok || p == q })
		})
	}
	p := ralph.Plan{Tasks: []ralph.PlannedTask{
		{Name: "a", Files: []string{"x.go"}, DependsOn: []string{"done", "z"}},
		{Name: "g", Drop: "no need"},
		{Name: "b", Files: []string{"x.go"}, DependsOn: []string{"m"}},
		{Name: "m", Files: []string{"m.go"}, DependsOn: []string{"a"}},
		{Name: "c", Files: []string{"*.go"}, DependsOn: []string{"b"}},
		{Name: "d", Files: []string{"m.go"}},
		{Name: "e"},
		{Name: "f", Verify: []string{"true"}},
		{Name: "h", Files: []string{"h.go"}, Verify: []string{"true"}},
		{Name: "z", Files: []string{"x.go"}},
	}}
	got := signals.PlanMarks(p, meet)
	hint := "touches files of %s and waits for nothing of it: in parallel they may conflict"
	want := map[string][]string{
		"m": {fmt.Sprintf(hint, "d")}, "d": {fmt.Sprintf(hint, "m")}, "e": {signals.MarkNothing},
	}
	if len(got) != len(want) {
		t.Errorf("got %q", got)
	}
	for name, marks := range want {
		if !slices.Equal(got[name], marks) {
			t.Errorf("%s: got %q, want %q", name, got[name], marks)
		}
	}
}

func TestRedFirst(t *testing.T) {
	for _, tt := range []struct {
		name  string
		check ralph.Check
		mark  string // how it begins
		mend  bool
	}{
		{"it passes", ralph.Check{Passed: true}, signals.MarkPasses, false},
		{"a test that is missing", ralph.Check{Exit: 1, Tail: "--- FAIL: TestPay\nFAIL"}, "", false},
		{"a file that is missing", ralph.Check{Exit: 2, Tail: "cat: pay.txt: No such file or directory"}, "", false},
		{"a program that is to be made", ralph.Check{Exit: 127, Tail: "/bin/sh: 1: ./bin/pay: not found"}, "", false},
		{"a module that is to be made", ralph.Check{Exit: 1, Tail: "/usr/bin/python3: No module named pay"}, "", false},
		{"dash knows no such program", ralph.Check{Exit: 127, Tail: "/bin/sh: 1: gotest: not found"}, "cannot run: there is no command gotest", true},
		{"bash knows no such program", ralph.Check{Exit: 127, Tail: "sh: line 1: gotest: command not found"}, "cannot run: there is no command gotest", true},
		{"a slip in its syntax", ralph.Check{Exit: 2, Tail: "/bin/sh: 1: Syntax error: Unterminated quoted string"}, "cannot run: ", true},
		{"another slip", ralph.Check{Exit: 2, Tail: "sh: -c: line 2: syntax error: unexpected end of file"}, "cannot run: ", true},
		{"no such runner", ralph.Check{Exit: 1, Tail: "/usr/bin/python3: No module named pytest"}, "cannot run: ", true},
		{"no such flag", ralph.Check{Exit: 2, Tail: "flag provided but not defined: -grep"}, "cannot run: ", true},
		{"no such script", ralph.Check{Exit: 1, Tail: "npm error Missing script: \"tests\""}, "cannot run: ", true},
		{"a long line is cut", ralph.Check{Exit: 2, Tail: "invalid option " + strings.Repeat("x", 200)}, "cannot run: invalid option " + strings.Repeat("x", 144) + "…", true},
		{"it may not be run", ralph.Check{Exit: 126, Tail: "/bin/sh: 1: ./x.sh: Permission denied"}, "cannot run: ", true},
		{"it hangs", ralph.Check{Exit: -1, Error: "took longer than 2s"}, "does not end: killed after 2s", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mark, mend := signals.RedFirst(tt.check, 2*time.Second)
			if (mark == "") != (tt.mark == "") || !strings.HasPrefix(mark, tt.mark) || mend != tt.mend {
				t.Errorf("got %q, %v", mark, mend)
			}
		})
	}
}

// TestPlanRed: a command that cannot run goes back to the planner twice, in one conversation, and is then only marked.
func TestPlanRed(t *testing.T) {
	check := func(command string, exit int, tail string) ralph.Check {
		return ralph.Check{Command: command, Exit: exit, Passed: exit == 0, Tail: tail}
	}
	long := strings.Repeat("x", 300)
	results := map[string]ralph.Check{long: check(long, 0, "")}
	for _, c := range []ralph.Check{
		check("gotest", 127, "/bin/sh: 1: gotest: not found"), check("npm run tests", 1, "npm error Missing script: \"tests\""),
		check("true", 0, ""), check("test -f a", 1, ""),
		{Command: "sleep 60", Error: "took longer than 2s", Exit: -1},
	} {
		results[c.Command] = c
	}
	p := ralph.Plan{Tasks: []ralph.PlannedTask{
		{Name: "two", Verify: []string{"gotest", "test -f a", "npm run tests"}},
		{Name: "same", Verify: []string{"gotest", "true"}},
		{Name: "hangs", Verify: []string{"was not run", "sleep 60"}},
		{Name: "long", Verify: []string{long}},
		{Name: "red", Verify: []string{"test -f a"}},
		{Name: "gone", Verify: []string{"gotest"}, Drop: "no need"},
	}}
	wantMarks := map[string][]string{
		"two":   {"`gotest` cannot run: there is no command gotest", "`npm run tests` cannot run: npm error Missing script: \"tests\""},
		"same":  {"`gotest` cannot run: there is no command gotest", "`true` " + signals.MarkPasses},
		"hangs": {"`sleep 60` does not end: killed after 2s"},
		"long":  {"`" + strings.Repeat("x", 199) + "…` " + signals.MarkPasses},
	}
	for mended, want := range map[int][]string{
		0: {"two gotest", "two npm run tests", "same gotest"},
		1: {"two gotest", "two npm run tests", "same gotest"},
		2: nil, 3: nil,
	} {
		p.Mended = mended
		marks, mend := signals.PlanRed(p, results, 2*time.Second)
		var got []string
		for _, b := range mend {
			got = append(got, b.Task+" "+b.Check.Command)
		}
		if !slices.Equal(got, want) {
			t.Errorf("given back %d times: got %q, want %q", mended, got, want)
		}
		if !maps.EqualFunc(marks, wantMarks, slices.Equal) {
			t.Errorf("given back %d times: marked %q, want %q", mended, marks, wantMarks)
		}
	}
}
