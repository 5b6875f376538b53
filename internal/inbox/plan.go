package inbox

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ralph"
	"ralph/internal/exchange"
	"ralph/store"
)

// A Plan is a feature's plan, with its open parts.
type Plan struct {
	Feature ralph.Feature     `json:"feature"`
	Tasks   []PlanTask        `json:"tasks"` // planned tasks, and tasks that it would change; oldest first
	Waits   []store.InboxItem `json:"waits"` // proposed tasks, amendments, and proposals to cancel a task
	State   string            `json:"state"` // state of the editable parts; for `ralph plan edit --state`
}

// A PlanTask is a task of a plan.
type PlanTask struct {
	Name string `json:"name"` // in the plan; "" for a task that it only changes
	ralph.Task
	Description string   `json:"description"`
	Acceptance  []string `json:"acceptance"`
	Verify      []string `json:"verify"`
	Files       []string `json:"files"`
	Marks       []string `json:"marks"` // notes from its planning
}

// ReadPlan reads the plan of a feature; "" for the waiting one.
func ReadPlan(tx *store.Tx, feature string) (p Plan, err error) {
	if feature == "" {
		if feature, err = waiting(tx); err != nil {
			return p, err
		}
	}
	if p.Feature, err = tx.Feature(feature); err != nil {
		if errors.Is(err, ralph.ErrNotFound) {
			err = ralph.NotFound("there is no feature %q; `ralph plan \"IDEA\" --feature NAME` plans one", feature)
		}
		return p, err
	}
	if p.Waits, err = WaitsOfPlan(tx, p.Feature.ID); err != nil {
		return p, err
	}
	tasks, err := tx.Tasks(store.TaskFilter{Feature: feature})
	slices.SortFunc(tasks, func(a, b ralph.Task) int { return cmp.Compare(a.ID, b.ID) })
	for _, t := range tasks {
		planned := strings.HasPrefix(t.ExternalSource, ralph.PlanSource)
		waits := slices.ContainsFunc(p.Waits, func(i store.InboxItem) bool { return i.TaskID == t.ID })
		if !planned && !waits {
			continue
		}
		of := PlanTask{
			Task: t, Description: t.Description, Acceptance: t.Acceptance, Verify: t.Verify, Files: t.Files, Marks: t.Marks,
		}
		if planned {
			of.Name = t.ExternalID
		}
		p.Tasks = append(p.Tasks, of)
	}
	if err == nil {
		p.State, err = stateOf(p.Tasks)
	}
	return p, err
}

// waiting returns the only feature with an open plan.
func waiting(tx *store.Tx) (string, error) {
	plans, err := tx.InboxOf("plan")
	if err != nil {
		return "", err
	}
	var names []string
	for _, p := range plans {
		names = append(names, p.Title)
	}
	switch len(names) {
	case 0:
		return "", ralph.NotFound("no plan waits for you; `ralph plan show FEATURE` shows that of a feature")
	case 1:
		return names[0], nil
	}
	return "", ralph.Usage(fmt.Errorf("several plans wait: name the feature, %s", strings.Join(names, " or ")))
}

// Markdown returns a plan as people read and edit it.
func (p Plan) Markdown() string {
	q := exchange.Queue{Project: p.Feature.Name, Notes: map[int64][]string{}}
	for _, t := range p.Tasks {
		t.Task.Feature = "" // the whole text is of it
		q.Tasks = append(q.Tasks, t.Task)
		note := func(s string) { q.Notes[t.ID] = append(q.Notes[t.ID], s) }
		if t.Status == ralph.Proposed {
			note("proposed" + map[bool]string{true: " as " + t.Name}[t.Name != ""])
		}
		for _, m := range t.Marks {
			note(m)
		}
		for _, i := range p.Waits {
			switch {
			case i.TaskID != t.ID:
			case i.Kind == "amendment":
				note("to be changed (" + i.Item + "):")
				for _, l := range i.Diff {
					note(l)
				}
			case i.Kind == "nack":
				note("to be dropped (" + i.Item + "): " + i.Text)
			}
		}
	}
	var b strings.Builder
	exchange.WriteChecklist(&b, q, p.Feature.Description)
	return b.String()
}

// stateOf names the state of the editable parts of a plan's tasks: it changes once a task was added, taken out or
// edited. Work on a task is not an edit.
func stateOf(tasks []PlanTask) (string, error) {
	type content struct {
		ID                               int64
		Title, Description               string
		Acceptance, Verify, Files, Allow []string
		DependsOn                        []int64
	}
	var list []content
	for _, t := range tasks {
		if t.Status != ralph.Rejected && t.Status != ralph.Cancelled {
			list = append(list, content{
				t.ID, t.Title, t.Task.Description, t.Task.Acceptance, t.Task.Verify, t.Task.Files, t.Allow, t.DependsOn,
			})
		}
	}
	b, err := json.Marshal(list)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6]), err
}

// Named returns the open parts with some names, each once; all open parts without names. A name is that of an item of
// the inbox, as A3, or of a task, in the plan or as TASK-3. If several plannings changed one task, only the names of
// items find its parts: a person may have seen the first of them only.
func (p Plan) Named(names []string) (list []store.InboxItem, err error) {
	if len(names) == 0 {
		if len(p.Waits) == 0 {
			return nil, ralph.NotFound("nothing of the plan of %s waits for you", p.Feature.Name)
		}
		return p.Waits, nil
	}
	for _, name := range names {
		found := p.named(name)
		if len(found) == 0 {
			return nil, ralph.NotFound("%q has no open part in the plan of %s; `ralph plan show` lists them",
				name, p.Feature.Name)
		}
		if err := oneTime(p.Feature.Name, found); err != nil {
			return nil, err
		}
		for _, i := range found { // a task may be named both ways
			if !slices.ContainsFunc(list, func(o store.InboxItem) bool { return o.Item == i.Item }) {
				list = append(list, i)
			}
		}
	}
	return list, nil
}

// named returns the open parts with a name.
func (p Plan) named(name string) (list []store.InboxItem) {
	for _, i := range p.Waits {
		if strings.EqualFold(i.Item, name) {
			return []store.InboxItem{i}
		}
	}
	for _, i := range p.Waits {
		of := slices.IndexFunc(p.Tasks, func(t PlanTask) bool { return t.ID == i.TaskID })
		if strings.EqualFold(fmt.Sprintf("TASK-%d", i.TaskID), name) || of >= 0 && p.Tasks[of].Name == name {
			list = append(list, i)
		}
	}
	return list
}

// oneTime refuses to decide at once on parts planned at several times.
func oneTime(feature string, list []store.InboxItem) error {
	var times []string
	of := map[string][]string{}
	for _, i := range list {
		at := i.Created.Local().Format("15:04:05")
		if of[i.Created.String()] == nil {
			times = append(times, i.Created.String())
			of[i.Created.String()] = []string{at + ":"}
		}
		of[i.Created.String()] = append(of[i.Created.String()], i.Item)
	}
	if len(times) < 2 {
		return nil
	}
	slices.Sort(times)
	var parts []string
	for _, t := range times {
		parts = append(parts, strings.Join(of[t], " "))
	}
	return ralph.Usage(fmt.Errorf("the plan of %s was made at several times, and you may not have seen all of it: "+
		"name what you decide on (%s)", feature, strings.Join(parts, "; ")))
}

// DecidePlan approves or rejects the open parts of a plan for some tasks, and describes each result in a line.
// Without names it decides on all parts, unless several plannings made them. [Plan.Decide] decides on a plan that was
// shown.
func DecidePlan(tx *store.Tx, feature string, names []string, approve bool, words, person string) ([]string, error) {
	p, err := ReadPlan(tx, feature)
	if err != nil {
		return nil, err
	}
	items, err := p.Named(names)
	if err == nil && len(names) == 0 {
		err = oneTime(p.Feature.Name, items)
	}
	if err != nil {
		return nil, err
	}
	return decideAll(tx, items, approve, words, person)
}

// Decide approves or rejects the open parts of a shown plan for some tasks, or all of them without names, and
// describes each result in a line. If the plan has changed since, nothing is decided.
func (p Plan) Decide(tx *store.Tx, names []string, approve bool, words, person string) ([]string, error) {
	now, err := ReadPlan(tx, p.Feature.Name)
	if err != nil {
		return nil, err
	}
	if now.Markdown() != p.Markdown() {
		return nil, ralph.Conflict("the plan of %s was changed since it was shown, and nothing is decided: %s",
			p.Feature.Name, p.since(now))
	}
	items, err := now.Named(names)
	if err != nil {
		return nil, err
	}
	return decideAll(tx, items, approve, words, person)
}

// since describes the later changes of a plan in a clause.
func (p Plan) since(now Plan) string {
	was, is := itemNames(p.Waits), itemNames(now.Waits)
	without := func(a, b []string) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(a), func(n string) bool { return slices.Contains(b, n) }), ", ")
	}
	var said []string
	if gone := without(was, is); gone != "" {
		said = append(said, "decided: "+gone)
	}
	if more := without(is, was); more != "" {
		said = append(said, "added: "+more)
	}
	if len(said) == 0 {
		return "a text in it is another one"
	}
	return strings.Join(said, "; ")
}

// itemNames returns the names of items.
func itemNames(list []store.InboxItem) (names []string) {
	for _, i := range list {
		names = append(names, i.Item)
	}
	return names
}
