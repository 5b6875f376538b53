package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/store"
)

func newTaskGraph(a *app) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:     "graph",
		Short:   "Show what depends on what",
		Example: "  ralph task graph --format mermaid",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains([]string{"text", "dot", "mermaid"}, format) {
				return fieldError("--format", format, "text", "dot", "mermaid")
			}
			var tasks []ralph.Task
			if err := a.read(cmd.Context(), func(tx *store.Tx) (err error) {
				tasks, err = tx.Tasks(store.TaskFilter{})
				return err
			}); err != nil {
				return err
			}
			slices.SortFunc(tasks, func(x, y ralph.Task) int { return int(x.ID - y.ID) })
			_, err := io.WriteString(a.out, drawGraph(tasks, format))
			return err
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text, dot or mermaid")
	return cmd
}

func drawGraph(tasks []ralph.Task, format string) string {
	var b strings.Builder
	label := func(t ralph.Task) string { return fmt.Sprintf("TASK-%d %s (%s)", t.ID, oneLine(t.Title, 60), t.Status) }
	switch format {
	case "dot":
		b.WriteString("digraph tasks {\n")
		for _, t := range tasks {
			fmt.Fprintf(&b, "  %d [label=%q];\n", t.ID, label(t))
			for _, d := range t.DependsOn {
				fmt.Fprintf(&b, "  %d -> %d;\n", t.ID, d)
			}
		}
		b.WriteString("}\n")
	case "mermaid":
		b.WriteString("graph TD\n")
		for _, t := range tasks {
			fmt.Fprintf(&b, "  t%d[\"%s\"]\n", t.ID, strings.ReplaceAll(label(t), `"`, "#quot;"))
			for _, d := range t.DependsOn {
				fmt.Fprintf(&b, "  t%d --> t%d\n", t.ID, d)
			}
		}
	default:
		for _, t := range tasks {
			b.WriteString(label(t) + "\n")
			for _, d := range t.DependsOn {
				fmt.Fprintf(&b, "  needs TASK-%d\n", d)
			}
		}
	}
	return b.String()
}
