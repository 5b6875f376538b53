package exchange

import (
	"strings"

	"github.com/goccy/go-yaml/parser"

	"ralph"
	"ralph/internal/lazy"
)

var (
	frontMatter = lazy.Regexp(`(?s)\A---[ \t]*\n(.*?\n)---[ \t]*(?:\n|\z)`)
	criterion   = lazy.Regexp(`^#\d+\s+`)
)

var backlogStatus = map[string]ralph.Status{
	"": ralph.Pending, "to do": ralph.Pending, "todo": ralph.Pending, "in progress": ralph.Pending,
	"done": ralph.Completed, "completed": ralph.Completed,
}

// isBacklog reports whether a text is a task file of Backlog.md: Markdown below a head with id, title and status.
func isBacklog(data []byte) bool {
	m := frontMatter().FindSubmatch(data)
	if m == nil {
		return false
	}
	head := "\n" + string(m[1])
	return strings.Contains(head, "\nid:") && strings.Contains(head, "\ntitle:") && strings.Contains(head, "\nstatus:")
}

// readBacklog reads a task file of Backlog.md: one task. Its criteria are the unticked boxes; fields without a place in
// ralph go into the description. A person decides on a status of a project's own.
func readBacklog(data []byte) (in ralph.Import, err error) {
	m := frontMatter().FindSubmatch(data)
	if m == nil {
		return in, wrong(1, `a task file of Backlog.md begins with "---", an id, a title and a status`)
	}
	if err := flat(m[1]); err != nil {
		return in, err
	}
	file, err := parser.ParseBytes(m[1], 0)
	if err != nil {
		return in, yamlError(err)
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return in, wrong(1, "the head of the file is empty")
	}
	r, err := recordOf(file.Docs[0].Body)
	if err != nil {
		return in, err
	}
	t := ralph.ImportedTask{Line: 1, Task: ralph.Task{Title: r.text("title")}}
	id := r.text("id")
	if id == "" || t.Title == "" {
		return in, wrong(1, `the task has no "id" or no "title"`)
	}
	t.Key = backlogKey(id)
	said := r.text("status")
	var known bool
	if t.Status, known = backlogStatus[strings.ToLower(said)]; !known {
		t.Status = ralph.Proposed
		in.Notes = append(in.Notes, id+" is "+said+" there: approve it here to have it done")
	}
	if t.Priority, err = r.asPriority(); err != nil {
		return in, err
	}
	for _, on := range r.list("dependencies") {
		t.Needs = append(t.Needs, ralph.Need{Key: backlogKey(on), Optional: true})
	}
	if parent := r.text("parent_task_id"); parent != "" {
		t.Parent = backlogKey(parent)
	}
	if milestone := r.text("milestone"); milestone != "" {
		t.Feature = featureOf(&in, milestone, "")
	}
	about, _ := readBody(&in, &t, string(data[len(m[0]):]))
	about = strings.TrimSpace(strings.TrimPrefix(about, "## Description\n"))
	for i, c := range t.Acceptance {
		t.Acceptance[i] = criterion().ReplaceAllString(c, "")
	}
	t.Description = paragraphs([2]string{"", about}, [2]string{"Also in the file", r.rest()})
	in.Tasks = []ralph.ImportedTask{t}
	return in, nil
}

// backlogKey returns the key of a task: ids are written in either case.
func backlogKey(id string) string { return ralph.ExternalKey("backlog.md", strings.ToUpper(id)) }

// Join makes one import of several files whose tasks name each other, and makes tasks wait for
// their parts.
func Join(list []ralph.Import) (in ralph.Import) {
	features, at := map[string]bool{}, map[string]int{}
	for _, one := range list {
		in.Format = one.Format
		for _, f := range one.Features {
			if !features[f.Name] {
				features[f.Name] = true
				in.Features = append(in.Features, f)
			}
		}
		in.Tasks, in.Notes = append(in.Tasks, one.Tasks...), append(in.Notes, one.Notes...)
	}
	for i, t := range in.Tasks {
		at[t.Key] = i
	}
	for _, t := range in.Tasks {
		if i, ok := at[t.Parent]; ok && t.Parent != "" {
			in.Tasks[i].Needs = append(in.Tasks[i].Needs, ralph.Need{Key: t.Key, Optional: true})
		}
	}
	return in
}
