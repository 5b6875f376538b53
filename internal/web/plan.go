package web

import (
	"fmt"
	"strings"

	"ralph/internal/inbox"
	"ralph/store"
)

// A plan is the plan of an idea, for a person's decision.
type plan struct {
	inbox.Plan
	Parts   []planPart // its open parts, in the order of the tasks
	Decided []inbox.PlanTask
	Items   string // the names of its open items, with spaces between
	Marked  int    // parts that are marked
}

// A planPart is an open part of a plan, about one task.
type planPart struct {
	inbox.PlanTask
	Items   string // the names of its open items, with spaces between
	Word    string // "new", "changed" or "dropped"
	Diff    []string
	Drop    string   // why the task is dropped
	Waits   []string // for the tasks of the plan that it waits for, by name; for others as TASK-3
	Special []string // its further fields
}

// readPlan reads the plan of a feature.
func readPlan(tx *store.Tx, feature string) (*plan, error) {
	read, err := inbox.ReadPlan(tx, feature)
	if err != nil {
		return nil, err
	}
	p := &plan{Plan: read}
	names := map[int64]string{}
	for _, t := range p.Tasks {
		names[t.ID] = t.Name
	}
	var all []string
	for _, t := range p.Tasks {
		part := planPart{PlanTask: t, Word: "new"}
		var items []string
		for _, i := range p.Plan.Waits {
			if i.TaskID != t.ID {
				continue
			}
			items = append(items, i.Item)
			switch i.Kind {
			case "amendment":
				part.Word, part.Diff = "changed", append(part.Diff, i.Diff...)
			case "nack":
				part.Word, part.Drop = "dropped", i.Text
			}
		}
		if len(items) == 0 {
			p.Decided = append(p.Decided, t)
			continue
		}
		for _, on := range t.DependsOn {
			name := fmt.Sprintf("TASK-%d", on)
			if names[on] != "" {
				name += " " + names[on]
			}
			part.Waits = append(part.Waits, name)
		}
		if t.Discipline != "" {
			part.Special = append(part.Special, "discipline "+t.Discipline)
		}
		for _, a := range t.Allow {
			part.Special = append(part.Special, "may change "+a+" unasked")
		}
		if len(t.Marks) > 0 {
			p.Marked++
		}
		part.Items = strings.Join(items, " ")
		all = append(all, items...)
		p.Parts = append(p.Parts, part)
	}
	p.Items = strings.Join(all, " ")
	return p, nil
}
