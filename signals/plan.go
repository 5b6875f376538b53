package signals

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ralph"
	"ralph/internal/lazy"
	"ralph/internal/text"
)

// MaxPlanTasks is the maximum number of tasks of a plan.
const MaxPlanTasks = 50

// PlanTries is the number of times that a planner gets inconclusive commands back.
const PlanTries = 2

// Marks of a plan's tasks.
const (
	MarkPasses  = "passes before any work: proves nothing"
	MarkNothing = "names no file and no check"
)

// Nameable has the tasks that a plan may name in addition to its own: tasks of its feature by their names in its plan,
// and all existing tasks as TASK-3.
type Nameable map[string]ralph.Task

// Find returns the task with a name.
func (k Nameable) Find(name string) (ralph.Task, bool) {
	t, ok := k[name]
	if !ok {
		t, ok = k[strings.ToUpper(name)]
	}
	return t, ok
}

// Open reports whether a plan may change or drop the task with a name.
func (k Nameable) Open(name string) bool {
	t, ok := k.Find(name)
	return ok && t.Role == ralph.RoleWork && t.Status != ralph.Merging && (!t.Status.Ended() || t.Status == ralph.Failed)
}

// Overtaken names the tasks of a plan that revise a task which has changed since the planner saw it. Now maps the ids
// of the feature's tasks to their present states.
func Overtaken(p ralph.Plan, known Nameable, now map[int64]string) (names []string) {
	for _, t := range p.Tasks {
		old, exists := known.Find(t.Name)
		if is, ofFeature := now[old.ID]; exists && ofFeature && p.Told[old.ID] != is {
			names = append(names, t.Name)
		}
	}
	return names
}

// OvertakenBy describes, in a sentence, the changed task that a task of the plan revises.
func OvertakenBy(p ralph.Plan, name string, now ralph.Task) string {
	if _, told := p.Told[now.ID]; told {
		return fmt.Sprintf("%s: TASK-%d was changed by others meanwhile", name, now.ID)
	}
	return fmt.Sprintf("%s: TASK-%d, which was added meanwhile, has that name: as it is, yours would change that one. "+
		"Drop yours, which leaves TASK-%[2]d as it is, and plan the missing rest by another name", name, now.ID)
}

// PlanProblems returns the reasons why a plan cannot be proposed, one sentence each.
func PlanProblems(p ralph.Plan, known Nameable, disciplines []string) (list []string) {
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	switch n := len(p.Tasks); {
	case n == 0:
		add("it has no task: call plan.task for each")
	case n > MaxPlanTasks:
		add("it has %d tasks, and %d is the most: make it smaller, or plan a part of the idea", n, MaxPlanTasks)
	}
	for _, t := range p.Tasks {
		old, exists := known.Find(t.Name)
		switch {
		case exists:
			if why := unrevisable(t, old); why != "" {
				add("%s: %s", t.Name, why)
			}
		case t.Drop != "":
			add("%s: there is no task of that name to drop", t.Name)
		case strings.TrimSpace(t.Title) == "":
			add("%s: it has no title", t.Name)
		}
		if t.Discipline != "" && !slices.Contains(disciplines, t.Discipline) {
			among := "there is none"
			if len(disciplines) > 0 {
				among = "there are " + strings.Join(disciplines, ", ")
			}
			add("%s: the discipline %q is not known: %s", t.Name, t.Discipline, among)
		}
		for _, on := range t.DependsOn {
			old, ok := known.Find(on)
			i := p.Find(on)
			switch {
			case i >= 0 && p.Tasks[i].Drop != "":
				add("%s: it depends on %q, which the plan drops", t.Name, on)
			case ok && (old.Status == ralph.Cancelled || old.Status == ralph.Rejected):
				add("%s: it depends on %q, which is %s", t.Name, on, old.Status)
			case !ok && i < 0:
				add("%s: it depends on %q, and neither the plan nor the project has a task of that name", t.Name, on)
			}
		}
	}
	if c := cycle(p); len(c) > 0 {
		add("these wait for each other, so that none could begin: %s", strings.Join(c, " → "))
	}
	return list
}

// unrevisable returns why an existing task cannot be changed as planned; "" if it can.
func unrevisable(t ralph.PlannedTask, old ralph.Task) string {
	switch {
	case old.Role == ralph.RolePlan:
		return fmt.Sprintf("TASK-%d is a plan itself", old.ID)
	case old.Status == ralph.Completed || old.Status == ralph.Merging:
		return fmt.Sprintf("TASK-%d is done, and stays: plan the difference as a new task", old.ID)
	case old.Status == ralph.Cancelled || old.Status == ralph.Rejected:
		return fmt.Sprintf("TASK-%d is %s: plan it anew, by another name", old.ID, old.Status)
	case len(t.DependsOn)+len(t.Files)+len(t.Allow) > 0 || t.Discipline != "":
		return fmt.Sprintf("TASK-%d exists: its title, description, acceptance and verify can be changed; "+
			"for the rest drop it, and plan another one", old.ID)
	case t.Drop == "" && t.Title+t.Description+t.Estimate == "" && t.Acceptance == nil && t.Verify == nil:
		return "nothing of it is changed: leave it out"
	}
	return ""
}

// cycle returns names that wait for each other, the first once more at the end; nil without a cycle.
func cycle(p ralph.Plan) []string {
	done := map[string]bool{}
	var path []string
	var visit func(name string) []string
	visit = func(name string) []string {
		if done[name] {
			return nil
		}
		if i := slices.Index(path, name); i >= 0 {
			return append(slices.Clone(path[i:]), name)
		}
		path = append(path, name)
		if i := p.Find(name); i >= 0 {
			for _, on := range p.Tasks[i].DependsOn {
				if c := visit(on); c != nil {
					return c
				}
			}
		}
		path = path[:len(path)-1]
		done[name] = true
		return nil
	}
	for _, t := range p.Tasks {
		if c := visit(t.Name); c != nil {
			return c
		}
	}
	return nil
}

// PlanMarks returns notes on each new task that follow from the plan alone, by the task's name. Meet reports whether
// two lists of globs may match the same file.
func PlanMarks(p ralph.Plan, meet func(a, b []string) bool) map[string][]string {
	marks := map[string][]string{}
	waits := reach(p)
	for i, t := range p.Tasks {
		if t.Drop != "" {
			continue
		}
		if len(t.Files)+len(t.Verify) == 0 {
			marks[t.Name] = append(marks[t.Name], MarkNothing)
		}
		for _, u := range p.Tasks[:i] {
			if u.Drop != "" || waits[t.Name][u.Name] || waits[u.Name][t.Name] || !meet(t.Files, u.Files) {
				continue
			}
			hint := "touches files of %s and waits for nothing of it: in parallel they may conflict"
			marks[t.Name] = append(marks[t.Name], fmt.Sprintf(hint, u.Name))
			marks[u.Name] = append(marks[u.Name], fmt.Sprintf(hint, t.Name))
		}
	}
	return marks
}

// reach returns the direct and indirect dependencies of each task.
func reach(p ralph.Plan) map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for _, t := range p.Tasks {
		seen := map[string]bool{}
		todo := slices.Clone(t.DependsOn)
		for len(todo) > 0 {
			name := todo[0]
			todo = todo[1:]
			if i := p.Find(name); i >= 0 && !seen[name] {
				todo = append(todo, p.Tasks[i].DependsOn...)
			}
			seen[name] = true
		}
		all[t.Name] = seen
	}
	return all
}

// broken matches the output of commands and runners that could not begin, whether or not work is missing.
var broken = lazy.Regexp(`(?im)^(?:/bin/)?(?:ba|da)?sh: (?:line )?\d+: (?:syntax error|[^/\n]*syntax error)|` +
	`unterminated quoted string|unexpected EOF while looking for|unexpected end of file|` +
	`no module named ['"]?(?:pytest|unittest2|nose2?|tox|mypy|ruff|black|flake8|coverage)\b|` +
	`^error: no such (?:sub)?command|^go: unknown command|unknown command:? |^go [a-z]+: unknown command|` +
	`flag provided but not defined|unknown shorthand flag|unknown (?:option|flag)|unrecognized (?:option|arguments?)|` +
	`invalid option|illegal option|no such option|npm (?:err!|error) missing script`)

// notFound matches a shell's message about an unknown program in PATH. A program of the project may be the missing
// work.
var notFound = lazy.Regexp(`(?m)^(?:/bin/)?(?:ba|da)?sh: (?:line )?\d+: ([^:\s/]+): (?:command )?not found`)

// RedFirst judges a command's result before any work. It returns a note for people, "" for none, and whether the
// planner has to fix the command because missing work is not the cause.
func RedFirst(c ralph.Check, limit time.Duration) (mark string, mend bool) {
	said := func() string { return text.Short(text.FirstLine(lastLine(c.Tail)), 160) }
	switch {
	case c.Passed:
		return MarkPasses, false
	case strings.HasPrefix(c.Error, "took longer than"):
		return fmt.Sprintf("does not end: killed after %s", limit), false
	case notFound().MatchString(c.Tail):
		m := notFound().FindStringSubmatch(c.Tail)
		return fmt.Sprintf("cannot run: there is no command %s", m[1]), true
	case broken().MatchString(c.Tail):
		return "cannot run: " + said(), true
	case c.Exit == 126:
		return "cannot run: " + said(), true
	}
	return "", false
}

// A Broken is a command that could not tell whether a planned task is done.
type Broken struct {
	Task  string // its name in the plan
	Check ralph.Check
}

// PlanRed returns notes on the commands of a plan's tasks, by the tasks' names, and the commands that the planner has
// to fix: none after [PlanTries] tries. Results has the results before any work, by command.
func PlanRed(
	p ralph.Plan, results map[string]ralph.Check, limit time.Duration,
) (marks map[string][]string, mend []Broken) {
	marks = map[string][]string{}
	for _, t := range p.Tasks {
		for _, command := range t.Verify {
			r, ran := results[command]
			if t.Drop != "" || !ran {
				continue
			}
			mark, broken := RedFirst(r, limit)
			if mark != "" {
				marks[t.Name] = append(marks[t.Name], fmt.Sprintf("`%s` %s", text.Short(r.Command, 200), mark))
			}
			if broken && p.Mended < PlanTries {
				mend = append(mend, Broken{t.Name, r})
			}
		}
	}
	return marks, mend
}

// lastLine returns the last line of a text that is not blank.
func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

// PlanSaid summarises a plan in a line.
func PlanSaid(p ralph.Plan, known Nameable) string {
	var added, changed, dropped int
	for _, t := range p.Tasks {
		_, exists := known.Find(t.Name)
		switch {
		case t.Drop != "":
			dropped++
		case exists:
			changed++
		default:
			added++
		}
	}
	var parts []string
	if added > 0 {
		parts = append(parts, text.Count(added, "task"))
	}
	if changed > 0 {
		parts = append(parts, text.Count(changed, "change")+" of tasks")
	}
	if dropped > 0 {
		parts = append(parts, text.Count(dropped, "task")+" to drop")
	}
	return "planned: " + strings.Join(parts, ", ") + ", for you to approve"
}
