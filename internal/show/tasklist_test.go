package show_test

import (
	"strings"
	"testing"

	"ralph"
	"ralph/internal/show"
	"ralph/internal/term"
)

// TestTaskList: a header and colours, where there is something to look at, and a note on omitted tasks.
func TestTaskList(t *testing.T) {
	tasks := []ralph.Task{
		{ID: 3, Status: ralph.Failed, Priority: 2, Title: "Back off"},
		{ID: 12, Status: ralph.NeedsInput, Priority: 0, Title: "Bad \x1b[2J", Origin: ralph.ByAgent},
	}
	const rows = "TASK-3   failed     P2  Back off\nTASK-12  needs you  P0  Bad <U+001B>[2J, suggested by an agent\n"
	for _, c := range []struct {
		name  string
		list  show.TaskList
		tasks []ralph.Task
		want  string
	}{
		{"nothing at all", show.TaskList{}, nil, "no tasks\n"},
		{"all over", show.TaskList{Closed: 2}, nil, "no task is open; 2 merged or cancelled: --all shows them\n"},
		{"open ones", show.TaskList{}, tasks, rows},
		{
			"more, and some that are over", show.TaskList{More: 7, Closed: 4}, tasks, rows +
				"… and 7 more: --limit 0 shows all, --status and --feature fewer\n4 more, merged or cancelled: --all shows them\n",
		},
		{
			"colours",
			show.TaskList{Screen: term.Screen{Columns: 80, Colours: true}},
			tasks[:1],
			"\x1b[1mTASK\x1b[0m    \x1b[1mSTATUS\x1b[0m  \x1b[1mPRI\x1b[0m  \x1b[1mTITLE\x1b[0m\n" +
				"TASK-3  \x1b[31mfailed\x1b[0m  P2   Back off\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b strings.Builder
			c.list.Write(&b, c.tasks)
			if b.String() != c.want {
				t.Errorf("got\n%s\nwant\n%s", b.String(), c.want)
			}
		})
	}
}
