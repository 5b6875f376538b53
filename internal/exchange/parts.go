package exchange

import (
	"fmt"
	"slices"
	"strings"

	"ralph"
	"ralph/internal/text"
)

// Into puts everything in a file into one feature: its tasks, and the descriptions and learnings of its features.
func Into(in *ralph.Import, feature string) {
	one := ralph.ImportedFeature{Line: 1, Feature: ralph.Feature{Name: feature}}
	var about []string
	for _, f := range in.Features {
		about = append(about, strings.TrimSpace(f.Description))
	}
	one.Description = strings.TrimSpace(strings.Join(about, "\n\n"))
	cut(in, one.Line, "the description of the feature "+feature, &one.Description)
	in.Features = []ralph.ImportedFeature{one}
	for i := range in.Tasks {
		in.Tasks[i].Feature = feature
	}
	for i := range in.Learnings {
		if in.Learnings[i].Scope == ralph.ScopeFeature {
			in.Learnings[i].Feature = feature
		}
	}
}

// Take makes a file's commands verify its tasks, either through their feature or, without one, task
// by task.
func Take(in *ralph.Import) {
	for _, o := range in.Offers {
		for i := range in.Features {
			if f := &in.Features[i]; o.Task == "" && !slices.Contains(f.Taken, o.Command) {
				f.Taken = append(f.Taken, o.Command)
			}
		}
		for i := range in.Tasks {
			t := &in.Tasks[i]
			if (t.Key == o.Task || o.Task == "" && t.Feature == "") && !slices.Contains(t.Verify, o.Command) {
				t.Verify = append(t.Verify, o.Command)
			}
		}
	}
}

// About adds a text about a checklist, from a file of this name, to the description of its feature.
func About(in *ralph.Import, name, about string) {
	for i := range in.Features {
		f := &in.Features[i]
		f.Description = strings.TrimSpace(f.Description + "\n\n# From " + name + "\n\n" + strings.TrimSpace(about))
		cut(in, f.Line, "the description of the feature "+text.Line(f.Name, 60), &f.Description)
	}
}

// A Splitting is a task to be split, and an agent's suggestion for it.
type Splitting struct {
	Task      ralph.Task
	Suggested bool   // an agent suggested it
	What, Why string // the agent's words
}

// Form returns the text that the editor shows at first.
func (s Splitting) Form() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# The parts of TASK-%d: %s\n#\n", s.Task.ID, text.Line(s.Task.Title, 200))
	if s.Suggested {
		words := "An agent suggests: " + strings.TrimSpace(s.What) + "\nWhy: " + strings.TrimSpace(s.Why)
		for line := range strings.Lines(words) {
			fmt.Fprintf(&b, "# %s\n", strings.TrimRight(text.Visible(line), "\n"))
		}
		b.WriteString("#\n")
	}
	b.WriteString("# A part begins with \"- \" and its title; the indented lines below it are its description.\n" +
		"# The last part waits for the others. Lines that begin with # are left out; without\n" +
		"# parts nothing is changed.\n\n")
	for _, title := range suggestedParts(s.What) {
		fmt.Fprintf(&b, "- %s\n", title)
	}
	return b.String()
}

// suggestedParts returns the items of a list in an agent's suggestion, or its lines if there is no
// list.
func suggestedParts(what string) (titles []string) {
	var lines []string
	for line := range strings.Lines(text.Visible(what)) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		item := strings.TrimLeft(line, "0123456789.)-*• \t")
		if item != line && item != "" {
			titles = append(titles, item)
		}
		lines = append(lines, line)
	}
	if len(titles) == 0 {
		return lines
	}
	return titles
}

// ParseParts parses the parts that a person wrote.
func ParseParts(written string) (parts []ralph.Part, err error) {
	n := 0
	for line := range strings.Lines(written) {
		n++
		line = strings.TrimRight(line, "\r\n")
		title, part := strings.CutPrefix(line, "- ")
		switch {
		case strings.HasPrefix(line, "#"):
		case part:
			if err := ralph.CheckTitle(fmt.Sprintf("line %d: the title", n), strings.TrimSpace(title)); err != nil {
				return nil, err
			}
			parts = append(parts, ralph.Part{Title: strings.TrimSpace(title)})
		case strings.TrimSpace(line) == "" && len(parts) == 0:
		case len(parts) == 0 || line != "" && line[0] != ' ' && line[0] != '\t':
			return nil, fmt.Errorf("line %d is neither a part (\"- title\") nor indented below one: %s", n, text.Line(line, 60))
		default:
			p := &parts[len(parts)-1]
			p.Description += strings.TrimSpace(line) + "\n"
		}
	}
	for i := range parts {
		parts[i].Description = strings.TrimSpace(parts[i].Description)
	}
	return parts, nil
}
