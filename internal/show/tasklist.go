package show

import (
	"fmt"
	"io"

	"ralph"
	"ralph/internal/term"
	"ralph/internal/text"
)

// A TaskList has the output of `task list` in addition to its tasks.
type TaskList struct {
	Screen term.Screen
	More   int // tasks beyond the limit
	Closed int // closed tasks that are not listed
}

// Write writes a header and a line for each task, and the command for the rest.
func (l TaskList) Write(w io.Writer, tasks []ralph.Task) {
	t := term.Table{Head: []string{"TASK", "STATUS", "PRI", "TITLE"}, Flex: 3}
	for _, task := range tasks {
		t.Rows = append(t.Rows, []string{
			fmt.Sprintf("TASK-%d", task.ID), l.Screen.Paint(term.Looks[task.Look().Colour], task.Word()),
			fmt.Sprintf("P%d", task.Priority), text.Line(task.Title, 100) + Suggested(task),
		})
	}
	if len(tasks) > 0 {
		l.Screen.Table(w, t)
	}
	if l.More > 0 {
		fmt.Fprintf(w, "… and %d more: --limit 0 shows all, --status and --feature fewer\n", l.More)
	}
	switch {
	case l.Closed > 0 && len(tasks) == 0:
		fmt.Fprintf(w, "no task is open; %d merged or cancelled: --all shows them\n", l.Closed)
	case l.Closed > 0:
		fmt.Fprintf(w, "%d more, merged or cancelled: --all shows them\n", l.Closed)
	case len(tasks) == 0:
		fmt.Fprintln(w, "no tasks")
	}
}
