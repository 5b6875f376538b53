package show

import (
	"fmt"
	"io"
	"strings"

	"ralph/internal/text"
	"ralph/store"
)

// Import lists the result for each task; unchanged ones are only counted.
func Import(w io.Writer, format string, dry bool, r store.ImportResult) {
	counts := map[string]int{}
	for _, t := range r.Tasks {
		counts[t.Action]++
		if t.Action == store.ImportUnchanged {
			continue
		}
		fmt.Fprintf(w, "%-8s TASK-%-4d %-10s %s", t.Action, t.ID, t.Status, text.Line(t.Title, 100))
		switch {
		case t.Action == store.ImportKept:
			fmt.Fprintf(w, " (its %s changed there, but it is %s here)", strings.Join(t.Changes, ", "), t.Status)
		case len(t.Changes) > 0:
			fmt.Fprintf(w, " (%s)", strings.Join(t.Changes, ", "))
		}
		fmt.Fprintln(w)
	}
	for _, n := range r.Notes {
		fmt.Fprintln(w, text.Line(n, 300))
	}
	var sums []string
	for _, action := range []string{store.ImportAdded, store.ImportUpdated, store.ImportUnchanged, store.ImportKept} {
		if n := counts[action]; n > 0 {
			sums = append(sums, fmt.Sprintf("%d %s", n, action))
		}
	}
	if r.Learnings > 0 {
		sums = append(sums, fmt.Sprintf("%d learnings", r.Learnings))
	}
	if len(sums) == 0 {
		sums = []string{"nothing new"}
	}
	fmt.Fprintf(w, "%s: %s\n", format, strings.Join(sums, ", "))
	if dry {
		fmt.Fprintln(w, "This was a dry run: nothing has been changed.")
	}
}
