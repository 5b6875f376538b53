package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/show"
	"ralph/internal/text"
	"ralph/store"
)

func newTaskGraph(a *app) *cobra.Command {
	var format string
	cmd := newCommand("graph", func(cmd *cobra.Command, _ []string) error {
		if err := oneOf("--format", format, "text", "dot", "mermaid"); err != nil {
			return err
		}
		tasks, err := read(cmd.Context(), a, func(tx *store.Tx) ([]ralph.Task, error) {
			if !a.json {
				return tx.Graph()
			}
			tasks, err := tx.Tasks(store.TaskFilter{})
			slices.SortFunc(tasks, func(x, y ralph.Task) int { return int(x.ID - y.ID) })
			return tasks, err
		})
		if err != nil {
			return err
		}
		return a.verbatim(tasks, func(w io.Writer) { drawGraph(w, tasks, format) })
	})
	cmd.Flags().StringVar(&format, "format", "text", "`FORMAT`: text, dot or mermaid")
	return cmd
}

// A drawing is a format of graphs: its start and end, a task by its number and label, and an arrow
// by both numbers.
type drawing struct{ begin, task, arrow, end string }

var drawings = map[string]drawing{
	"dot":     {"digraph tasks {\n", "  %d [label=%q];\n", "  %d -> %d;\n", "}\n"},
	"mermaid": {"graph TD\n", "  t%d[\"%s\"]\n", "  t%d --> t%d\n", ""},
	"text":    {"", "%[2]s\n", "  needs TASK-%[2]d\n", ""},
}

func drawGraph(w io.Writer, tasks []ralph.Task, format string) {
	d := drawings[format]
	fmt.Fprint(w, d.begin)
	for _, t := range tasks {
		label := "TASK-" + strconv.FormatInt(t.ID, 10) + " " + text.Line(t.Title, 60) +
			" (" + t.Word() + show.Suggested(t) + ")"
		if format == "mermaid" {
			label = strings.ReplaceAll(label, `"`, "#quot;")
		}
		fmt.Fprintf(w, d.task, t.ID, label)
		for _, on := range t.DependsOn {
			fmt.Fprintf(w, d.arrow, t.ID, on)
		}
	}
	fmt.Fprint(w, d.end)
}
