package inbox

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ralph"
	"ralph/internal/advice"
	"ralph/store"
)

// A Plan is what was planned for a feature, and what of it waits for a person.
type Plan struct {
	Feature ralph.Feature     `json:"feature"`
	Tasks   []PlanTask        `json:"tasks"` // oldest first, without those that plan
	Waits   []store.InboxItem `json:"waits"` // proposed tasks, amendments, and proposals to cancel a task
}

// A PlanTask is a task of a plan.
type PlanTask struct {
	Name string `json:"name"` // in the plan; "" for a task that was not planned
	ralph.Task
	Description string   `json:"description"`
	Acceptance  []string `json:"acceptance"`
	Verify      []string `json:"verify"`
	Files       []string `json:"files"`
	Marks       []string `json:"marks"` // what was noticed about it when it was planned
}

// ReadPlan reads the plan of a feature; "" is the one that waits.
func ReadPlan(tx *store.Tx, feature string) (p Plan, err error) {
	items, err := advice.Inbox(tx)
	if err != nil {
		return p, err
	}
	items, err = planned(tx, items)
	if err != nil {
		return p, err
	}
	if feature == "" {
		if feature, err = waiting(tx, items); err != nil {
			return p, err
		}
	}
	if p.Feature, err = tx.Feature(feature); err != nil {
		if errors.Is(err, ralph.ErrNotFound) {
			err = ralph.NotFound("there is no feature %q; `ralph plan \"IDEA\" --feature NAME` plans one", feature)
		}
		return p, err
	}
	tasks, err := tx.Tasks(store.TaskFilter{Feature: feature})
	slices.SortFunc(tasks, func(a, b ralph.Task) int { return cmp.Compare(a.ID, b.ID) })
	for _, t := range tasks {
		if t.Role == ralph.RolePlan {
			continue
		}
		of := PlanTask{
			Task: t, Description: t.Description, Acceptance: t.Acceptance, Verify: t.Verify, Files: t.Files, Marks: t.Marks,
		}
		if strings.HasPrefix(t.ExternalSource, ralph.PlanSource) {
			of.Name = t.ExternalID
		}
		p.Tasks = append(p.Tasks, of)
		for _, i := range items {
			if i.TaskID == t.ID {
				p.Waits = append(p.Waits, i)
			}
		}
	}
	return p, err
}

// planned returns the items that a session with role plan proposed. A worker proposes tasks and changes too, of which
// a person decides one by one.
func planned(tx *store.Tx, items []store.InboxItem) (list []store.InboxItem, err error) {
	for _, i := range items {
		var session string
		switch i.Kind {
		case "proposal":
			t, err := tx.Task(i.TaskID)
			if err != nil {
				return nil, err
			}
			if strings.HasPrefix(t.ExternalSource, ralph.PlanSource) {
				list = append(list, i)
			}
			continue
		case "amendment":
			m, err := tx.Amendment(i.Ref.ID)
			if err != nil {
				return nil, err
			}
			session = m.SessionID
		case "nack":
			c, err := tx.Comment(i.Ref.ID)
			if err != nil {
				return nil, err
			}
			session = c.SessionID
		}
		if session == "" {
			continue
		}
		of, err := planner(tx, session)
		if err != nil {
			return nil, err
		}
		if of {
			list = append(list, i)
		}
	}
	return list, nil
}

// planner reports whether a session belongs to a task that plans.
func planner(tx *store.Tx, session string) (bool, error) {
	s, err := tx.Session(session)
	if err != nil || s.TaskID == 0 {
		return false, err
	}
	t, err := tx.Task(s.TaskID)
	return t.Role == ralph.RolePlan, err
}

// waiting returns the only feature of which a plan waits.
func waiting(tx *store.Tx, items []store.InboxItem) (string, error) {
	waits := map[string]bool{}
	for _, i := range items {
		t, err := tx.Task(i.TaskID)
		if err != nil {
			return "", err
		}
		if t.Feature != "" {
			waits[t.Feature] = true
		}
	}
	names := slices.Sorted(maps.Keys(waits))
	switch len(names) {
	case 0:
		return "", ralph.NotFound("no plan waits for you; `ralph plan show FEATURE` shows that of a feature")
	case 1:
		return names[0], nil
	}
	return "", ralph.Usage(fmt.Errorf("several plans wait: name the feature, %s", strings.Join(names, " or ")))
}

// Named returns what waits of the tasks of some names, in the plan or TASK-3, each once; all that waits without names.
func (p Plan) Named(names []string) (list []store.InboxItem, err error) {
	if len(names) == 0 {
		if len(p.Waits) == 0 {
			return nil, ralph.NotFound("nothing of the plan of %s waits for you", p.Feature.Name)
		}
		return p.Waits, nil
	}
	taken := map[string]bool{} // a task may be named both ways
	for _, name := range names {
		found := false
		for _, t := range p.Tasks {
			if t.Name != name && !strings.EqualFold(fmt.Sprintf("TASK-%d", t.ID), name) {
				continue
			}
			for _, i := range p.Waits {
				if i.TaskID != t.ID {
					continue
				}
				if found = true; !taken[i.Item] {
					list = append(list, i)
				}
				taken[i.Item] = true
			}
		}
		if !found {
			return nil, ralph.NotFound("nothing waits of %q in the plan of %s; `ralph plan show` shows what does",
				name, p.Feature.Name)
		}
	}
	return list, nil
}

// DecidePlan approves or rejects what waits of some tasks of a plan, and says in a line each what came of it.
func DecidePlan(tx *store.Tx, feature string, names []string, approve bool, words, person string) ([]string, error) {
	p, err := ReadPlan(tx, feature)
	if err != nil {
		return nil, err
	}
	items, err := p.Named(names)
	if err != nil {
		return nil, err
	}
	var said []string
	for _, i := range items {
		one, err := Decide(tx, i, approve, words, person)
		if err != nil {
			return nil, err
		}
		said = append(said, one)
	}
	return said, nil
}
