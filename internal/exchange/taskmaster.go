package exchange

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

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
	"":            ralph.Pending,
	"pending":     ralph.Pending,
	"todo":        ralph.Pending,
	"in-progress": ralph.Pending,
	"in_progress": ralph.Pending,
	"blocked":     ralph.Proposed,
	"deferred":    ralph.Proposed,
	"review":      ralph.Proposed,
	"done":        ralph.Completed,
	"completed":   ralph.Completed,
	"cancelled":   ralph.Cancelled,
}

var masterPriority = map[string]int{"critical": 0, "high": 1, "medium": 2, "": 2, "low": 3}

// readTaskMaster reads tasks.json of Task Master, with or without tags.
func readTaskMaster(data []byte) (in ralph.Import, err error) {
	if err := whole(data); err != nil {
		return in, err
	}
	doc, tags := located{data, 1}, gjson.ParseBytes(data)
	if !tags.IsObject() {
		return in, wrong(1, "an object is expected: {…}")
	}
	if tasks := tags.Get("tasks"); tasks.Exists() {
		return in, readMasterTag(&in, "master", doc.child(tasks))
	}
	found := false
	tags.ForEach(func(tag, group gjson.Result) bool {
		tasks := group.Get("tasks")
		if !group.IsObject() || !tasks.Exists() {
			return true // not a tag, such as metadata
		}
		found = true
		err = readMasterTag(&in, tag.Str, doc.child(tasks))
		return err == nil
	})
	if err != nil {
		return in, err
	}
	if !found {
		return in, wrong(1, `this JSON is none of the known formats: it has no "tasks", "userStories" or "stories"`)
	}
	return in, nil
}

func readMasterTag(in *ralph.Import, tag string, tasks located) error {
	feature := ""
	if tag != "master" {
		feature = featureOf(in, tag, "")
	}
	space, begin := sourceOf("taskmaster", tag), len(in.Tasks)
	if err := each(in, tasks, `"tasks"`, func(line int, t masterTask) error {
		return addMaster(in, line, space, feature, nil, t)
	}); err != nil {
		return err
	}
	notSiblings(space, in.Tasks[begin:])
	return nil
}

// notSiblings corrects a subtask's dependencies: if its task has no such subtask, the task of that
// number is meant.
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

// addMaster adds a task and its subtasks. The task waits for its subtasks, which come first.
func addMaster(in *ralph.Import, line int, space, feature string, above []string, v masterTask) error {
	if v.ID == "" {
		return wrong(line, `a task has no "id"`)
	}
	parts := strings.Split(string(v.ID), ".")
	if len(above) > 0 && len(parts) == 1 {
		parts = append(append([]string{}, above...), parts...) // subtasks are numbered from 1 within their task
	}
	id := strings.Join(parts, ".")
	t := ralph.ImportedTask{Line: line, Key: ralph.ExternalKey(space, id), Task: ralph.Task{
		Title: v.Title, Feature: feature,
		Description: paragraphs([2]string{"", v.Description}, [2]string{"Details", v.Details},
			[2]string{"How to test it", v.TestStrategy}),
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
		t.Needs = append(t.Needs, ralph.Need{Key: ralph.ExternalKey(space, on), Optional: true})
	}
	seen := map[ident]int{}
	for _, sub := range v.Subtasks {
		if seen[sub.ID]++; seen[sub.ID] > 1 && sub.ID != "" {
			sub.ID += ident(fmt.Sprintf(" (%d)", seen[sub.ID]))
			in.Notes = append(in.Notes, fmt.Sprintf("an id twice: a subtask of %s is %s.%s here", id, id, sub.ID))
		}
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
