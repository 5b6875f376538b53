package exchange

import (
	"fmt"

	"github.com/goccy/go-yaml/parser"

	"ralph"
)

var agenticStatus = map[string]ralph.Status{
	"": ralph.Pending, "pending": ralph.Pending, "in-progress": ralph.Pending, "in_progress": ralph.Pending,
	"done": ralph.Completed, "completed": ralph.Completed,
}

// readAgentic reads backlog.yaml, in-progress.yaml and done.yaml of agentic-agent. Fields without a place in ralph go
// into the description.
func readAgentic(data []byte) (in ralph.Import, err error) {
	if err := flat(data); err != nil {
		return in, err
	}
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return in, yamlError(err)
	}
	features := map[string]bool{}
	for _, doc := range file.Docs {
		list, err := yamlTasks(doc.Body)
		if err != nil {
			return in, err
		}
		for _, node := range list {
			r, err := recordOf(node)
			if err != nil {
				return in, err
			}
			if err := addAgentic(&in, r, features); err != nil {
				return in, err
			}
		}
	}
	return in, nil
}

// addAgentic adds a task after its subtasks, which it waits for.
func addAgentic(in *ralph.Import, r *record, features map[string]bool) (err error) {
	t := ralph.ImportedTask{Line: r.line, Task: ralph.Task{Title: r.text("title")}}
	id := r.text("id")
	if id == "" || t.Title == "" {
		return wrong(r.line, `a task has no "id" or no "title"`)
	}
	t.Key = ralph.ExternalKey("agentic-agent", id)
	if t.Status, err = r.asStatus(agenticStatus, "pending, in-progress or done"); err != nil {
		return err
	}
	if t.Priority, err = r.asPriority(); err != nil {
		return err
	}
	if t.Feature = r.text("track_id"); t.Feature != "" && !features[t.Feature] {
		features[t.Feature] = true
		t.Feature = featureOf(in, t.Feature, "")
	}
	subtasks, _ := r.take("subtasks").([]any)
	for i, v := range subtasks {
		part := &record{line: r.line}
		if err := part.from(v); err != nil {
			return err
		}
		name := part.text("id")
		if name == "" {
			name = fmt.Sprintf("%s.%d", id, i+1)
		}
		c := ralph.ImportedTask{Line: r.line, Key: ralph.ExternalKey("agentic-agent", name), Task: ralph.Task{
			Title: part.text("title"), Feature: t.Feature, Priority: t.Priority,
		}}
		if c.Status, err = part.asStatus(agenticStatus, "pending, in-progress or done"); err != nil {
			return err
		}
		c.Description = paragraphs([2]string{"Part of", t.Title}, [2]string{"Also in the file", part.rest()})
		t.Needs = append(t.Needs, ralph.Need{Key: c.Key})
		in.Tasks = append(in.Tasks, c)
	}
	about := r.text("description")
	t.Acceptance, t.Files = r.list("acceptance"), r.list("outputs")
	t.Description = paragraphs([2]string{"", about}, [2]string{"Also in the file", r.rest()})
	in.Tasks = append(in.Tasks, t)
	return nil
}
