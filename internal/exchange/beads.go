package exchange

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"ralph"
	"ralph/internal/text"
)

type beadsIssue struct {
	Kind                                      string `json:"_type"`
	Key, Value                                string // key and value of a memory
	ID                                        ident
	Title, Description, Design, Notes, Status string
	Acceptance                                string `json:"acceptance_criteria"`
	Priority                                  *int
	IssueType                                 string `json:"issue_type"`
	Labels                                    []string
	Template                                  bool `json:"is_template"`
	Dependencies                              []beadsDependency
	Comments                                  []struct{ Author, Text, Body string }
}

type beadsDependency struct {
	IssueID   ident  `json:"issue_id"`
	DependsOn ident  `json:"depends_on_id"`
	Type      string `json:"type"`
	DepType   string `json:"dep_type"` // the field's name in some versions
}

var beadsStatus = map[string]ralph.Status{
	"": ralph.Pending, "open": ralph.Pending, "in_progress": ralph.Pending, "hooked": ralph.Pending,
	"blocked": ralph.Proposed, "deferred": ralph.Proposed, "pinned": ralph.Proposed, "closed": ralph.Completed,
}

// holding are the kinds of dependencies that block an issue.
var holding = map[string]bool{"blocks": true, "parent-child": true, "conditional-blocks": true, "waits-for": true}

// readBeads reads the JSONL of beads, one issue per line.
func readBeads(data []byte) (in ralph.Import, err error) {
	left, features, blocked := map[string]int{}, map[string]bool{}, map[string]bool{}
	if err := eachLine(&in, data, func(line int, v beadsIssue) error {
		switch {
		case v.Kind == "memory":
			if strings.TrimSpace(v.Value) == "" {
				return wrong(line, `a memory has no "value"`)
			}
			in.Learnings = append(in.Learnings, learned(line, v.Value, "discovery"))
			return nil
		case v.Kind != "" && v.Kind != "issue":
			left["lines of the type "+v.Kind]++
			return nil
		case v.ID == "" && v.Title == "":
			return nil // the header of the file
		case strings.EqualFold(v.Status, "tombstone"):
			left["deleted issues"]++
			return nil
		case v.Template:
			left["templates"]++
			return nil
		case v.ID == "":
			return wrong(line, `an issue has no "id"`)
		}
		t, err := v.task(line)
		if err != nil {
			return err
		}
		if t.Feature != "" && !features[t.Feature] {
			features[t.Feature] = true
			featureOf(&in, t.Feature, "")
		}
		left["comments (they are not imported)"] += len(v.Comments)
		in.Tasks = append(in.Tasks, t)
		blocked[t.Key] = strings.EqualFold(v.Status, "blocked")
		return nil
	}); err != nil {
		return in, err
	}
	note(&in, left)
	// A blocked issue with a dependency needs no decision by a person.
	known := map[string]ralph.Status{}
	for _, t := range in.Tasks {
		known[t.Key] = t.Status
	}
	for i, t := range in.Tasks {
		if !blocked[t.Key] {
			continue
		}
		for _, n := range t.Needs {
			if s, ok := known[n.Key]; ok && s != ralph.Completed {
				in.Tasks[i].Status, in.Tasks[i].StatusReason = ralph.Pending, ""
			}
		}
	}
	return in, nil
}

// featureLabel is the prefix of the label with an issue's feature in ralph's export.
const featureLabel = "feature:"

// labels returns an issue's feature, if a label names one, and its other labels.
func (v beadsIssue) labels() (feature string, others []string) {
	for _, label := range v.Labels {
		name, ok := strings.CutPrefix(label, featureLabel)
		if ok && feature == "" && utf8.RuneCountInString(name) <= ralph.MaxTitle {
			feature = text.Flat(name)
			continue
		}
		others = append(others, label)
	}
	return feature, others
}

func (v beadsIssue) task(line int) (ralph.ImportedTask, error) {
	feature, labels := v.labels()
	t := ralph.ImportedTask{Line: line, Key: ralph.ExternalKey("beads", string(v.ID)), Task: ralph.Task{
		Title: v.Title, Feature: feature, Priority: ralph.DefaultPriority,
		Description: paragraphs([2]string{"", v.Description}, [2]string{"Design", v.Design}, [2]string{"Notes", v.Notes},
			[2]string{"Type", notTask(v.IssueType)}, [2]string{"Labels", strings.Join(labels, ", ")}),
	}}
	t.Acceptance, t.Verify = criteria(listed(v.Acceptance))
	var err error
	if t.Status, err = statusOf(line, v.Status, beadsStatus); err != nil {
		return t, err
	}
	if t.Status == ralph.Proposed {
		t.StatusReason = strings.ToLower(v.Status) + " where it was imported from"
	}
	if v.Priority != nil {
		if err := ralph.CheckPriority("priority", *v.Priority); err != nil {
			return t, wrong(line, "%v", err)
		}
		t.Priority = *v.Priority
	}
	for _, d := range v.Dependencies {
		if d.DependsOn == "" || d.IssueID != "" && d.IssueID != v.ID || !holding[d.Type+d.DepType] {
			continue
		}
		t.Needs = append(t.Needs, ralph.Need{Key: ralph.ExternalKey("beads", string(d.DependsOn)), Optional: true})
	}
	return t, nil
}

func notTask(kind string) string {
	if kind == "task" {
		return ""
	}
	return kind
}

// learned returns a project-wide learning that another tool stored.
func learned(line int, text, kind string) ralph.ImportedLearning {
	return ralph.ImportedLearning{Line: line, Learning: ralph.Learning{
		Text: strings.TrimSpace(text), Kind: kind, Scope: ralph.ScopeProject, Origin: ralph.ByAgent, Author: "import",
	}}
}

// note lists the parts left out, one sentence each.
func note(in *ralph.Import, left map[string]int) {
	for _, what := range slices.Sorted(maps.Keys(left)) {
		if n := left[what]; n > 0 {
			in.Notes = append(in.Notes, fmt.Sprintf("left out: %s: %d", what, n))
		}
	}
}
