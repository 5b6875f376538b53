package exchange

import (
	"strings"

	"ralph"
)

type masterTask struct {
	ID                                        ident
	Title, Description, Details, TestStrategy string
	Status, Priority                          string
	Dependencies                              []ident
	Subtasks                                  []masterTask
}

var masterStatus = map[string]ralph.Status{
	"": ralph.Pending, "pending": ralph.Pending, "todo": ralph.Pending, "in-progress": ralph.Pending, "in_progress": ralph.Pending,
	"blocked": ralph.Proposed, "deferred": ralph.Proposed, "review": ralph.Proposed,
	"done": ralph.Completed, "completed": ralph.Completed, "cancelled": ralph.Cancelled,
}

var masterPriority = map[string]int{"critical": 0, "high": 1, "medium": 2, "": 2, "low": 3}

// readTaskMaster reads tasks.json of Task Master, with tags or without.
func readTaskMaster(data []byte) (in ralph.Import, err error) {
	doc, err := document(data)
	if err != nil {
		return in, err
	}
	names, values, err := members(doc)
	if err != nil {
		return in, err
	}
	if tasks, ok := values["tasks"]; ok {
		return in, readMasterTag(&in, "master", tasks)
	}
	found := false
	for _, tag := range names {
		_, group, err := members(values[tag])
		if err != nil {
			continue // what is no tag, such as metadata
		}
		tasks, ok := group["tasks"]
		if !ok {
			continue
		}
		found = true
		if err := readMasterTag(&in, tag, tasks); err != nil {
			return in, err
		}
	}
	if !found {
		return in, wrong(1, `this JSON is none of the known formats: it has no "tasks", "userStories" or "stories"`)
	}
	return in, nil
}

func readMasterTag(in *ralph.Import, tag string, tasks located) error {
	list, err := elements(tasks, `"tasks"`)
	if err != nil {
		return err
	}
	feature := ""
	if tag != "master" {
		feature = featureOf(in, tag, "")
	}
	space, begin := sourceOf("taskmaster", tag), len(in.Tasks)
	for _, l := range list {
		var t masterTask
		if err := l.decode(&t); err != nil {
			return err
		}
		if err := addMaster(in, l.line, space, feature, nil, t); err != nil {
			return err
		}
	}
	notSiblings(space, in.Tasks[begin:])
	return nil
}

// notSiblings mends what a subtask waits for where its task has no such subtask: a
// task of that number.
func notSiblings(space string, tasks []ralph.ImportedTask) {
	there := map[string]bool{}
	for _, t := range tasks {
		there[t.Key] = true
	}
	for _, t := range tasks {
		for i, n := range t.Needs {
			_, id := ralph.ExternalID(n.Key)
			task := ralph.ExternalKey(space, id[strings.LastIndexByte(id, '.')+1:])
			if !there[n.Key] && there[task] {
				t.Needs[i].Key = task
			}
		}
	}
}

// addMaster adds a task and what it consists of. A subtask comes before the task
// that it is part of, which waits for it.
func addMaster(in *ralph.Import, line int, space, feature string, above []string, v masterTask) error {
	if v.ID == "" {
		return wrong(line, `a task has no "id"`)
	}
	parts := strings.Split(string(v.ID), ".")
	if len(above) > 0 && len(parts) == 1 {
		parts = append(append([]string{}, above...), parts...) // a subtask counts from 1 within its task
	}
	id := strings.Join(parts, ".")
	t := ralph.ImportedTask{Line: line, Key: ralph.ExternalKey(space, id), Task: ralph.Task{
		Title: v.Title, Feature: feature,
		Description: paragraphs([2]string{"", v.Description}, [2]string{"Details", v.Details}, [2]string{"How to test it", v.TestStrategy}),
	}}
	var err error
	if t.Status, err = statusOf(line, v.Status, masterStatus); err != nil {
		return err
	}
	if t.Status == ralph.Proposed {
		t.StatusReason = strings.ToLower(v.Status) + " where it was imported from"
	}
	priority, ok := masterPriority[strings.ToLower(strings.TrimSpace(v.Priority))]
	if !ok {
		return wrong(line, "the priority %q is not known (accepted: critical, high, medium, low)", v.Priority)
	}
	t.Priority = priority
	for _, d := range v.Dependencies {
		on := string(d)
		if len(above) > 0 && !strings.Contains(on, ".") {
			on = strings.Join(above, ".") + "." + on // a sibling
		}
		t.Needs = append(t.Needs, ralph.Need{Key: ralph.ExternalKey(space, on)})
	}
	for _, sub := range v.Subtasks {
		if sub.Priority == "" {
			sub.Priority = v.Priority
		}
		sub.Description = paragraphs([2]string{"", sub.Description}, [2]string{"Part of", v.Title})
		if t.Status == ralph.Cancelled && (sub.Status == "" || strings.EqualFold(sub.Status, "pending")) {
			sub.Status = "cancelled"
		}
		if err := addMaster(in, line, space, feature, parts, sub); err != nil {
			return err
		}
		t.Needs = append(t.Needs, ralph.Need{Key: in.Tasks[len(in.Tasks)-1].Key})
	}
	in.Tasks = append(in.Tasks, t)
	return nil
}
