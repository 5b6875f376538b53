package show

import (
	"fmt"
	"io"
	"strings"

	"ralph"
	"ralph/internal/text"
)

// A TaskList is what `task list` prints in addition to its tasks.
type TaskList struct {
	Screen Screen
	More   int // tasks beyond the limit
	Closed int // closed tasks that are not listed
}

// Write writes a header and a line for each task, and says how to see the rest.
func (l TaskList) Write(w io.Writer, tasks []ralph.Task) {
	if len(tasks) > 0 {
		fmt.Fprintln(w, l.Screen.Paint("1", fmt.Sprintf("%-10s %-11s %-3s %s", "TASK", "STATUS", "PRI", "TITLE")))
	}
	for _, t := range tasks {
		look := t.Look()
		said := string(t.Status)
		if look != t.Status.Look() {
			said = strings.ToLower(look.Label)
		}
		status := l.Screen.Paint(colours[look.Colour], fmt.Sprintf("%-11s", said))
		fmt.Fprintf(w, "TASK-%-5d %s P%d  %s\n", t.ID, status, t.Priority, text.Line(t.Title, 100)+Suggested(t))
	}
	if l.More > 0 {
		fmt.Fprintf(w, "… and %d more: --limit 0 shows all, --status and --feature fewer\n", l.More)
	}
	switch {
	case l.Closed > 0 && len(tasks) == 0:
		fmt.Fprintf(w, "no task is open; `ralph task list --all` shows those that are over (%d)\n", l.Closed)
	case l.Closed > 0:
		fmt.Fprintf(w, "over, and not shown: %d; `ralph task list --all` shows all\n", l.Closed)
	case len(tasks) == 0:
		fmt.Fprintln(w, "no tasks")
	}
}
