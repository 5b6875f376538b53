package ralph

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"ralph/internal/lazy"
)

// Tools of a session that plans, as ralph names them.
const (
	PlanTaskTool = "plan.task"
	PlanAskTool  = "plan.ask"
	PlanDoneTool = "plan.done"
)

// PlanSource begins the [Task.ExternalSource] of a planned task; its feature follows. The task's ExternalID is its name
// in the plan.
const PlanSource = "plan/"

// A PlannedTask is a task in the form that a planning session proposes. Named after an existing task, or TASK-3, it
// changes that task: omitted fields stay unchanged.
type PlannedTask struct {
	Name        string   `json:"name"` // one word, which other tasks use to wait for it
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description,omitempty"`
	Acceptance  []string `json:"acceptance,omitempty"`
	Verify      []string `json:"verify,omitempty"`
	DependsOn   []string `json:"depends_on,omitempty"` // names
	Files       []string `json:"files,omitempty"`      // globs
	Discipline  string   `json:"discipline,omitempty"`
	Allow       []string `json:"allow,omitempty"`
	Estimate    string   `json:"estimate,omitempty"` // in the planner's words
	Drop        string   `json:"drop,omitempty"`     // why the named task is no longer wanted
}

// A Plan is the proposal of a planning session so far.
type Plan struct {
	Tasks  []PlannedTask       `json:"tasks,omitempty"`
	Marks  map[string][]string `json:"marks,omitempty"`  // notes on a task for people, by its name
	Mended int                 `json:"mended,omitempty"` // number of times that commands were given back to the planner

	// Told has a digest of each task of the feature, by id, as the planner last saw it.
	Told map[int64]string `json:"told,omitempty"`
}

// Limits of a planned task's lists.
const maxPlanned = 50

var planName = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Check returns nil, or an error that names the wrong field of the planned task.
func (t PlannedTask) Check() error {
	if !planName().MatchString(t.Name) {
		return &FieldError{Field: "name", Problem: "must be a word of letters, digits, dots and dashes, at most 64 of them"}
	}
	if t.Title != "" {
		if err := CheckTitle("title", t.Title); err != nil {
			return err
		}
	}
	lists := []struct {
		name string
		list []string
	}{
		{"acceptance", t.Acceptance},
		{"verify", t.Verify},
		{"depends_on", t.DependsOn},
		{"files", t.Files},
		{"allow", t.Allow},
	}
	for _, l := range lists {
		if len(l.list) > maxPlanned {
			return &FieldError{Field: l.name, Problem: fmt.Sprintf("has more than %d entries", maxPlanned)}
		}
		for _, s := range l.list {
			if err := checkPlain(l.name, s, true); err != nil {
				return err
			}
		}
	}
	for _, f := range []struct{ name, text string }{
		{"title", t.Title},
		{"description", t.Description},
		{"discipline", t.Discipline},
		{"estimate", t.Estimate},
		{"drop", t.Drop},
	} {
		if err := checkPlain(f.name, f.text, false); err != nil {
			return err
		}
	}
	return CheckText("description", t.Task("").Description, false) // with the estimate
}

// checkPlain is [CheckText] for text that people read first: the only control characters are line ends and tabs.
func checkPlain(field, s string, required bool) error {
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
		return &FieldError{Field: field, Problem: "must not contain control characters, such as terminal escapes"}
	}
	return CheckText(field, s, required)
}

// Task returns the planned task, with its extra fields added to its description.
func (t PlannedTask) Task(feature string) Task {
	n := Task{
		Title: t.Title, Description: strings.TrimSpace(t.Description), Acceptance: t.Acceptance, Verify: t.Verify,
		Files: t.Files, Discipline: t.Discipline, Allow: t.Allow, Priority: DefaultPriority, Feature: feature,
		Status: Proposed, Origin: ByAgent, ExternalSource: PlanSource + feature, ExternalID: t.Name,
	}
	if t.Estimate != "" {
		n.Description = strings.TrimSpace(n.Description + "\n\nEstimate: " + t.Estimate)
	}
	return n
}

// Put adds a task to the plan, or replaces the one with its name.
func (p *Plan) Put(t PlannedTask) {
	if i := p.Find(t.Name); i >= 0 {
		p.Tasks[i] = t
		return
	}
	p.Tasks = append(p.Tasks, t)
}

// Find returns the index of the task with a name; -1 if there is none.
func (p Plan) Find(name string) int {
	return slices.IndexFunc(p.Tasks, func(t PlannedTask) bool { return t.Name == name })
}
