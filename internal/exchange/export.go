package exchange

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"ralph"
	"ralph/internal/text"
)

// A Queue is the exported content of a project.
type Queue struct {
	Project     string // its name
	Features    []ralph.Feature
	Disciplines []ralph.Discipline
	Tasks       []ralph.Task       // in the order of the queue
	IDs         map[int64]string   // the ids that ralph's own import recognizes tasks by
	Learnings   []ralph.Learning   // learnings of the project and of features
	Notes       map[int64][]string // ralph's notes on a task: in Markdown, as a quotation
}

// writers are the export formats by name.
var writers = map[string]func(w io.Writer, q Queue) error{
	ownFormat: writeJSONL, "markdown": writeMarkdown, "prd.json": writePRD, "beads": writeBeads,
}

// ExportFormats lists the formats that [Write] supports.
func ExportFormats() []string { return slices.Sorted(maps.Keys(writers)) }

// Write writes a queue in one of [ExportFormats]; the error for an unknown format is a
// [*ralph.FieldError].
func Write(w io.Writer, format string, q Queue) error {
	write, ok := writers[format]
	if !ok {
		return &ralph.FieldError{Field: fmt.Sprintf("format %q", format), Problem: "is not known", Accepted: ExportFormats()}
	}
	return write(w, q)
}

func encoder(w io.Writer) *json.Encoder {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e
}

// writeJSONL writes everything, so that importing it recreates the queue.
func writeJSONL(w io.Writer, q Queue) error {
	e := encoder(w)
	var lines []Line
	for _, f := range q.Features {
		lines = append(lines, Line{
			Kind: "feature", Name: f.Name, Description: f.Description, Learnings: f.Learnings, Verify: f.Verify,
		})
	}
	for _, d := range q.Disciplines {
		lines = append(lines, Line{
			Kind: "discipline", Name: d.Name, Instructions: d.Instructions, Model: d.Model, Agent: d.Agent,
		})
	}
	for _, t := range q.Tasks {
		l := Line{
			Kind: "task", ID: q.IDs[t.ID],
			Title: t.Title, Description: t.Description, Acceptance: t.Acceptance, Verify: t.Verify,
			Files: t.Files, Priority: &t.Priority, Status: t.Status, StatusReason: t.StatusReason,
			Feature: t.Feature, Discipline: t.Discipline, Model: t.Model, Agent: t.Agent, Origin: t.Origin,
		}
		for _, on := range t.DependsOn {
			l.DependsOn = append(l.DependsOn, q.IDs[on])
		}
		lines = append(lines, l)
	}
	for _, k := range q.Learnings {
		lines = append(lines, Line{
			Kind: "learning", Text: k.Text, KindOf: k.Kind, Scope: k.Scope, Feature: k.Feature, Rationale: k.Rationale,
			Origin: k.Origin, Author: k.Author, Pinned: k.Pinned,
		})
	}
	for _, l := range lines {
		if err := e.Encode(l); err != nil {
			return err
		}
	}
	return nil
}

// WriteChecklist writes tasks as a new checklist, with its subject.
func WriteChecklist(b *strings.Builder, q Queue, about string) {
	fmt.Fprintf(b, "# %s\n\n", text.Flat(q.Project))
	if about = strings.TrimSpace(about); about != "" {
		fmt.Fprintf(b, "%s\n\n", indent(about, ""))
	}
	for _, t := range q.Tasks {
		checklistItem(b, t, q.Notes[t.ID])
	}
}

// toDo returns the tasks that are done or to be done, without dependencies on others.
func (q Queue) toDo() (list []ralph.Task) {
	out := map[int64]bool{}
	for _, t := range q.Tasks {
		out[t.ID] = t.Status == ralph.Rejected || t.Status == ralph.Cancelled
	}
	for _, t := range q.Tasks {
		if !out[t.ID] {
			t.DependsOn = slices.DeleteFunc(slices.Clone(t.DependsOn), func(on int64) bool { return out[on] })
			list = append(list, t)
		}
	}
	return list
}

// writeMarkdown writes a checklist for people, one section per feature.
func writeMarkdown(w io.Writer, q Queue) error {
	q.Tasks = q.toDo()
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", text.Flat(q.Project))
	names := []string{""}
	about := map[string]string{}
	for _, f := range q.Features {
		names, about[f.Name] = append(names, f.Name), f.Description
	}
	for _, name := range names {
		tasks := slices.DeleteFunc(slices.Clone(q.Tasks), func(t ralph.Task) bool { return t.Feature != name })
		if len(tasks) == 0 {
			continue
		}
		b.WriteString("\n")
		if name != "" {
			fmt.Fprintf(&b, "## %s\n\n", text.Flat(name))
			if text := strings.TrimSpace(about[name]); text != "" {
				fmt.Fprintf(&b, "%s\n\n", indent(text, ""))
			}
		}
		for _, t := range tasks {
			checklistItem(&b, t, q.Notes[t.ID])
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func checklistItem(b *strings.Builder, t ralph.Task, notes []string) {
	mark := " "
	switch t.Status {
	case ralph.Completed:
		mark = "x"
	case ralph.InProgress, ralph.Merging:
		mark = "/"
	case ralph.Rejected, ralph.Cancelled:
		return // not to be done
	}
	fmt.Fprintf(b, "- [%s] [TASK-%d] %s\n", mark, t.ID, text.Flat(t.Title))
	if text := strings.TrimSpace(t.Description); text != "" {
		fmt.Fprintf(b, "%s\n", indent(text, "  "))
	}
	for _, l := range labels {
		for _, v := range *l.of(&t) {
			fmt.Fprintf(b, "  - %s: %s\n", l.name, labelled(v))
		}
	}
	for _, on := range t.DependsOn {
		fmt.Fprintf(b, "  - %s: TASK-%d\n", dependsLabel, on)
	}
	for _, n := range notes {
		for line := range strings.Lines(n) {
			fmt.Fprintf(b, "  %s %s\n", NoteMark, strings.TrimRight(line, "\n"))
		}
	}
}

// NoteMark begins a line with ralph's note on a checklist or a task. The import ignores the line.
const NoteMark = "> ralph:"

// indent indents each line, and escapes lines with a meaning for the import by a backslash. Lines of code
// stay as they are, unless a fence has no end.
func indent(text, blanks string) string {
	var b strings.Builder
	open := ""
	for line := range strings.Lines(text) {
		open = fenced(quoted(open, line), strings.TrimRight(line, "\r\n"))
	}
	ends := open == ""
	open = ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		before := quoted(open, line)
		if open = before; ends {
			open = fenced(before, line)
		}
		if before == "" && open == "" && special(line) {
			t := strings.TrimLeft(line, " \t")
			line = line[:len(line)-len(t)] + `\` + t
		}
		fmt.Fprintf(&b, "%s%s\n", blanks, line)
	}
	return strings.TrimRight(b.String(), "\n")
}

// special reports whether the import would read a line, without backslashes before it, as more than text.
func special(line string) bool {
	line = strings.TrimLeft(strings.TrimLeft(line, " \t"), `\`)
	return box().MatchString(line) || strings.HasPrefix(line, "|") && rowBox().MatchString(line) ||
		strings.HasPrefix(line, "#") || underline().MatchString(line) || fenceLine().MatchString(line) ||
		labelLine().MatchString(line) || strings.HasPrefix(line, NoteMark) || strings.Contains(line, "<!--")
}

// unescaped returns a line of a description that [indent] may have escaped.
func unescaped(line string) string {
	t := strings.TrimLeft(line, " \t")
	if strings.HasPrefix(t, `\`) && special(line) {
		return line[:len(line)-len(t)] + t[1:]
	}
	return line
}

// writePRD writes prd.json in the format of snarktank/ralph and ralph-tui.
func writePRD(w io.Writer, q Queue) error {
	type story struct {
		ID                 string   `json:"id"`
		Title              string   `json:"title"`
		Description        string   `json:"description"`
		AcceptanceCriteria []string `json:"acceptanceCriteria"`
		Priority           int      `json:"priority"`
		Passes             bool     `json:"passes"`
		Notes              string   `json:"notes"`
		DependsOn          []string `json:"dependsOn,omitempty"`
	}
	stories := []story{}
	for _, t := range q.toDo() {
		s := story{
			ID:                 fmt.Sprintf("TASK-%d", t.ID),
			Title:              t.Title,
			Description:        t.Description,
			AcceptanceCriteria: append([]string{}, t.Acceptance...),
			Priority:           len(stories) + 1,
			Passes:             t.Status == ralph.Completed,
		}
		for _, c := range t.Verify {
			s.AcceptanceCriteria = append(s.AcceptanceCriteria, "`accept: "+c+"`")
		}
		for _, on := range t.DependsOn {
			s.DependsOn = append(s.DependsOn, fmt.Sprintf("TASK-%d", on))
		}
		stories = append(stories, s)
	}
	e := encoder(w)
	e.SetIndent("", "  ")
	return e.Encode(map[string]any{
		"project":     q.Project,
		"name":        q.Project,
		"branchName":  "",
		"description": "",
		"userStories": stories,
	})
}

// writeBeads writes one issue per line in the format of beads.
func writeBeads(w io.Writer, q Queue) error {
	type dependency struct {
		IssueID   string     `json:"issue_id"`
		DependsOn string     `json:"depends_on_id"`
		Type      string     `json:"type"`
		Created   ralph.Time `json:"created_at"`
	}
	type issue struct {
		ID           string       `json:"id"`
		Title        string       `json:"title"`
		Description  string       `json:"description,omitempty"`
		Acceptance   string       `json:"acceptance_criteria,omitempty"`
		Status       string       `json:"status"`
		Priority     int          `json:"priority"`
		IssueType    string       `json:"issue_type"`
		Created      ralph.Time   `json:"created_at"`
		Updated      ralph.Time   `json:"updated_at"`
		Closed       *ralph.Time  `json:"closed_at,omitempty"`
		CloseReason  string       `json:"close_reason,omitempty"`
		Labels       []string     `json:"labels,omitempty"`
		Dependencies []dependency `json:"dependencies,omitempty"`
	}
	ids, taken := map[int64]string{}, map[string]bool{}
	for n, key := range q.IDs {
		if own, ok := strings.CutPrefix(key, "beads#"); ok {
			ids[n], taken[own] = own, true
		}
	}
	id := func(n int64) string {
		if ids[n] == "" {
			ids[n] = fmt.Sprintf("ralph-%d", n)
			for taken[ids[n]] { // by an imported issue of another ralph project
				ids[n] += "-here"
			}
		}
		return ids[n]
	}
	e := encoder(w)
	for _, t := range q.Tasks {
		i := issue{
			ID: id(t.ID), Title: t.Title, Description: t.Description, Status: beadsStatusOf(t.Status), Priority: t.Priority,
			IssueType: "task", Created: t.Created, Updated: t.Updated,
		}
		criteria := slices.Clone(t.Acceptance)
		for _, c := range t.Verify {
			criteria = append(criteria, "`accept: "+c+"`")
		}
		for _, c := range criteria {
			i.Acceptance += "- " + text.Flat(c) + "\n"
		}
		if i.Status == "closed" {
			closed := t.Updated
			i.Closed, i.CloseReason = &closed, t.StatusReason
		}
		if t.Feature != "" {
			i.Labels = []string{featureLabel + t.Feature}
		}
		for _, on := range t.DependsOn {
			i.Dependencies = append(i.Dependencies, dependency{id(t.ID), id(on), "blocks", t.Created})
		}
		if err := e.Encode(i); err != nil {
			return err
		}
	}
	for _, k := range q.Learnings {
		memory := map[string]string{"_type": "memory", "key": fmt.Sprintf("ralph-%d", k.ID), "value": k.Text}
		if err := e.Encode(memory); err != nil {
			return err
		}
	}
	return nil
}

func beadsStatusOf(s ralph.Status) string {
	switch s {
	case ralph.Completed, ralph.Cancelled, ralph.Rejected:
		return "closed"
	case ralph.InProgress, ralph.Merging:
		return "in_progress"
	case ralph.Proposed:
		return "deferred"
	}
	return "open" // its dependencies are the reason
}
