package show

import (
	"fmt"
	"io"
	"strings"

	"ralph"
	"ralph/internal/text"
	"ralph/store"
)

// Import lists the result for each task; unchanged ones are only counted. A dry run shows all of them as a tree: each
// task above its parts, with criteria, commands and dependencies.
func Import(w io.Writer, format string, dry bool, r store.ImportResult, read *ralph.Reading) {
	counts := map[string]int{}
	for _, t := range r.Tasks {
		counts[t.Action]++
		if !dry && t.Action != store.ImportUnchanged {
			importedLine(w, t, "")
		}
	}
	if dry {
		for _, f := range r.Features {
			fmt.Fprintf(w, "feature  %s%s\n", text.Line(f.Name, 100), described(f))
			for _, c := range f.Verify {
				fmt.Fprintf(w, "           runs %s\n", text.Line(c, 500))
			}
		}
		importedTree(w, r.Tasks, 0, "")
	}
	for _, n := range r.Notes {
		fmt.Fprintln(w, text.Line(n, 2000))
	}
	if read != nil {
		tallied(w, "boxes", read.Boxes)
		tallied(w, "headings", read.Headings)
		tallied(w, "other lines", read.Lines)
	}
	var sums []string
	for _, action := range []string{store.ImportAdded, store.ImportUpdated, store.ImportUnchanged, store.ImportKept} {
		if n := counts[action]; n > 0 {
			sums = append(sums, fmt.Sprintf("%d %s", n, action))
		}
	}
	if r.Learnings > 0 {
		sums = append(sums, text.Count(r.Learnings, "learning"))
	}
	if len(sums) == 0 {
		sums = []string{"nothing new"}
	}
	fmt.Fprintf(w, "%s: %s\n", format, strings.Join(sums, ", "))
	if dry {
		fmt.Fprintln(w, "This was a dry run: nothing has been changed.")
	}
}

// importedTree prints the tasks whose parent is one task, with their sources; 0 stands for
// top-level tasks.
func importedTree(w io.Writer, list []store.ImportedResult, of int64, indent string) {
	for _, t := range list {
		if t.Parent == of {
			importedLine(w, t, indent)
			importedMore(w, t)
			importedTree(w, list, t.ID, indent+"  ")
		}
	}
}

// importedLine prints the import of a task.
func importedLine(w io.Writer, t store.ImportedResult, indent string) {
	word := ralph.Task{Status: t.Status}.Word()
	fmt.Fprintf(w, "%-8s %sTASK-%-4d %-10s %s", t.Action, indent, t.ID, word, text.Line(t.Title, 100))
	switch {
	case t.Action == store.ImportKept:
		fmt.Fprintf(w, " (its %s changed there, but it is %s here)", strings.Join(t.Changes, ", "), word)
	case len(t.Changes) > 0:
		fmt.Fprintf(w, " (%s)", strings.Join(t.Changes, ", "))
	}
	fmt.Fprintln(w)
}

// importedMore prints the dependencies, criteria and commands of a task.
func importedMore(w io.Writer, t store.ImportedResult) {
	if len(t.DependsOn) > 0 {
		fmt.Fprintf(w, "           after %s\n", ralph.TaskNames(t.DependsOn, ", "))
	}
	for _, c := range t.Acceptance {
		fmt.Fprintf(w, "           when %s\n", text.Line(c, 200))
	}
	for _, c := range t.Verify {
		fmt.Fprintf(w, "           runs %s\n", text.Line(c, 500))
	}
}

// described tells the length of a feature's description.
func described(f ralph.Feature) string {
	if f.Description == "" {
		return ""
	}
	return " (" + text.Count(strings.Count(f.Description, "\n")+1, "line") + " about it)"
}

// tallied prints the counts of a kind of lines.
func tallied(w io.Writer, what string, t ralph.Tally) {
	if t.Read > 0 {
		fmt.Fprintf(w, "%s: %d read; %s, %s of tasks or of the feature, %d left out\n",
			what, t.Read, text.Count(t.Made, "task"), text.Count(t.Folded, "part"), t.Left)
	}
}
