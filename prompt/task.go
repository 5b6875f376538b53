package prompt

import (
	"fmt"
	"strings"

	"ralph"
	"ralph/internal/text"
)

// discipline shows how to work on tasks of this kind. It is never shortened.
func discipline(d Data) section {
	s := section{name: "discipline", head: "## Discipline\n\n"}
	if text.Clean(d.Discipline.Instructions) == "" {
		return s
	}
	label := "instructions"
	if d.Discipline.Name != "" {
		label += " of the discipline " + word(d.Discipline.Name, nameMarks)
	}
	s.groups = []group{{items: []item{{text: fence(label, d.Discipline.Instructions)}}}}
	return s
}

// task shows the work. It is never shortened, except for the summaries of the tasks that it depends on.
func task(d Data) section {
	t := d.Task
	s := section{name: "task", head: fmt.Sprintf("## Your task: TASK-%d %s\n\n", t.ID, text.Flat(t.Title))}
	var items []item
	add := func(s string) { items = append(items, item{text: s}) }
	if t.Origin == ralph.ByAgent {
		add("An agent suggested this task.\n\n")
	}
	if text.Clean(t.Description) == "" {
		add("It has no description: its title is the whole task.\n\n")
	} else {
		add(fence("description", t.Description))
	}
	if len(t.Acceptance) > 0 {
		add("It is done when all of this holds:\n\n" + fence("acceptance criteria", numbered(t.Acceptance)))
	}
	if d.FeatureName != "" {
		add("It belongs to the feature " + word(d.FeatureName, nameMarks) + ".\n\n")
		if text.Clean(d.FeatureText) != "" {
			add(fence("description of the feature", d.FeatureText))
		}
	}
	if d.Workspace != nil {
		add(workspace(*d.Workspace))
	}
	s.groups = []group{{items: items}}
	if len(d.DependsOn) > 0 {
		s.groups = append(s.groups, dependencies(d.DependsOn))
	}
	return s
}

// workspace describes the session's folder.
func workspace(s Workspace) string {
	target := word(s.Target, nameMarks+"/")
	said := "You work in a clone that is yours alone, with HEAD detached at the tip of " + target + ". Commit or leave " +
		"uncommitted as you like: all of it that git does not ignore is taken together, checked, and merged into " + target +
		" by ralph when it passes. Push nothing, and leave other folders alone.\n\n"
	if s.Kept {
		said += "What an earlier session of this task left is in it.\n\n"
	}
	switch {
	case s.SentBack != "" && s.Kept:
		said += "It was done, and could not be merged. Mend that, and call done again:\n\n" +
			fence("why", text.Flat(s.SentBack))
	case s.SentBack != "":
		said += "Earlier sessions did it, and their work could not be merged, so that you begin anew, without " +
			"their work:\n\n" + fence("why", text.Flat(s.SentBack))
	}
	if len(s.Conflicts) == 0 {
		return said
	}
	lines := make([]string, len(s.Conflicts))
	for i, f := range s.Conflicts {
		lines[i] = text.Flat(f)
	}
	return said + "It conflicts with commits that came into " + target + " since. Both are in these files, with " +
		"conflict " +
		"marks: resolve them first.\n\n" + fence("files with conflicts", strings.Join(lines, "\n"))
}

// numbered formats a numbered list. It does not indent further lines, so that a criterion
// of several lines keeps its bytes.
func numbered(criteria []string) string {
	lines := make([]string, len(criteria))
	for i, c := range criteria {
		lines[i] = fmt.Sprintf("%d. %s", i+1, text.Clean(c))
	}
	return strings.Join(lines, "\n")
}

func dependencies(all []Dependency) group {
	g := group{head: "It depends on:\n\n"}
	for i, dep := range all {
		line := fmt.Sprintf("- TASK-%d %s, which is %s", dep.ID, title(dep.Title), word(string(dep.Status), nameMarks))
		summary := quote(by(dep.Author, ralph.ByAgent, dep.At, "summary"), dep.Summary)
		if summary.text == "" {
			g.items = append(g.items, item{text: line + ".\n\n"})
			continue
		}
		g.items = append(g.items, item{
			text: line + ":\n\n" + summary.text, short: line + ".\n\n",
			cut: summary.cut, class: dependencySummaries, rank: len(all) - i,
		})
	}
	return g
}

// title returns another task's title for use in one of ralph's lines.
func title(s string) string { return word(text.Flat(s), nameMarks+" ,;:+/#'()") }
