package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/exchange"
	"ralph/store"
)

// errDryRun ends a transaction whose effects were only to be seen.
var errDryRun = errors.New("dry run")

func newImport(a *app) *cobra.Command {
	var format, feature string
	var dry bool
	cmd := &cobra.Command{
		Use: "import FILE|-", Short: "Take over tasks from a checklist, prd.json, beads, GitHub issues, …",
		Long: `Take over the tasks of a file, or of standard input. The format is found by the
text. Importing the same file again adds nothing twice: what has changed in it is
changed here too, as long as nobody has begun the task. See docs/import.md.`,
		Example: "  ralph import PLAN.md --dry-run\n  gh issue list --json number,title,body,labels,milestone,state,url | ralph import -",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, data, err := a.readInput(args[0])
			if err != nil {
				return err
			}
			in, err := exchange.Parse(data, format)
			if err != nil {
				return usage(inFile(name, err))
			}
			if feature != "" {
				into(&in, feature)
			}
			var result store.ImportResult
			write := a.add
			if dry {
				write = a.write
			}
			err = write(cmd.Context(), func(tx *store.Tx) error {
				if result, err = tx.Import(in); err == nil && dry {
					return errDryRun
				}
				return err
			})
			var line *store.ImportError
			switch {
			case errors.As(err, &line):
				return inFile(name, err)
			case err != nil && !errors.Is(err, errDryRun):
				return err
			}
			return a.print(imported{in.Format, dry, result}, func(w io.Writer) error { return sayImport(w, in.Format, dry, result) })
		},
	}
	cmd.Flags().StringVar(&format, "format", "", "read it as this `FORMAT`: "+strings.Join(exchange.Formats(), ", "))
	cmd.Flags().StringVar(&feature, "feature", "", "put all tasks into this `FEATURE`, which is made if there is none")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only show what would be added and changed")
	return cmd
}

// into puts all that a file has into one feature: its tasks, and what it knows of
// features of its own.
func into(in *ralph.Import, feature string) {
	in.Features = []ralph.ImportedFeature{{Feature: ralph.Feature{Name: feature}}}
	for i := range in.Tasks {
		in.Tasks[i].Feature = feature
	}
	for i := range in.Learnings {
		if in.Learnings[i].Scope == ralph.ScopeFeature {
			in.Learnings[i].Feature = feature
		}
	}
}

// imported is what `ralph import --json` prints.
type imported struct {
	Format string `json:"format"`
	DryRun bool   `json:"dry_run"`
	store.ImportResult
}

// readInput reads a file, or standard input for "-".
func (a *app) readInput(arg string) (name string, data []byte, err error) {
	var in io.Reader
	in, name = a.in, "standard input"
	if arg != "-" {
		path, err := a.path(arg)
		if err != nil {
			return "", nil, err
		}
		f, err := os.Open(path)
		if err != nil {
			return "", nil, usage(err)
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		in, name = f, arg
	}
	data, err = io.ReadAll(io.LimitReader(in, exchange.MaxFile+1))
	if err != nil {
		return "", nil, usage(fmt.Errorf("%s: %w", name, err))
	}
	return name, data, nil
}

// inFile puts the name of a file before an error, and its line as "FILE:LINE:".
func inFile(name string, err error) error {
	var bad *exchange.Error
	var line *store.ImportError
	switch {
	case errors.As(err, &bad) && bad.Line > 0:
		return fmt.Errorf("%s:%d: %s", name, bad.Line, oneLine(bad.Problem, 500))
	case errors.As(err, &line) && line.Line > 0:
		return fmt.Errorf("%s:%d: %w", name, line.Line, line.Err)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// sayImport lists what became of each task; those that are as they were are only counted.
func sayImport(w io.Writer, format string, dry bool, r store.ImportResult) error {
	counts := map[string]int{}
	for _, t := range r.Tasks {
		counts[t.Action]++
		if t.Action == store.ImportUnchanged {
			continue
		}
		fmt.Fprintf(w, "%-8s TASK-%-4d %-10s %s", t.Action, t.ID, t.Status, oneLine(t.Title, 100))
		switch {
		case t.Action == store.ImportKept:
			fmt.Fprintf(w, " (its %s changed there, but it is %s here)", strings.Join(t.Changes, ", "), t.Status)
		case len(t.Changes) > 0:
			fmt.Fprintf(w, " (%s)", strings.Join(t.Changes, ", "))
		}
		fmt.Fprintln(w)
	}
	for _, n := range r.Notes {
		fmt.Fprintln(w, oneLine(n, 300))
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
		_, err := fmt.Fprintln(w, "This was a dry run: nothing has been changed.")
		return err
	}
	return nil
}

func newExport(a *app) *cobra.Command {
	var format, output string
	cmd := &cobra.Command{
		Use: "export", Short: "Write the tasks for another tool, or for another project",
		Long: `Write all tasks. jsonl is ralph's own format: importing it elsewhere makes the
same queue. The others are for other tools. See docs/import.md.`,
		Example: "  ralph export --format jsonl > queue.jsonl\n  ralph export --format markdown --output PLAN.md", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(exchange.ExportFormats(), format) {
				return fieldError("--format", format, exchange.ExportFormats()...)
			}
			q, err := a.queue(cmd)
			if err != nil {
				return err
			}
			if output == "" {
				return exchange.Write(a.out, format, q)
			}
			var text strings.Builder
			if err := exchange.Write(&text, format, q); err != nil {
				return err
			}
			path, err := a.path(output)
			if err != nil {
				return err
			}
			return writeWhole(path, []byte(text.String()), 0o644)
		},
	}
	cmd.Flags().StringVar(&format, "format", "jsonl", "`FORMAT`: "+strings.Join(exchange.ExportFormats(), ", "))
	cmd.Flags().StringVarP(&output, "output", "o", "", "write to this `FILE` instead of standard output")
	return cmd
}

// queue reads all that can be exported.
func (a *app) queue(cmd *cobra.Command) (q exchange.Queue, err error) {
	err = a.with(cmd.Context(), func(p *project, db *store.DB) error {
		q.Project = filepath.Base(p.root)
		return db.View(cmd.Context(), func(tx *store.Tx) error {
			if q.Features, err = tx.Features(); err != nil {
				return err
			}
			if q.Disciplines, err = tx.Disciplines(); err != nil {
				return err
			}
			if q.Tasks, err = tx.Tasks(store.TaskFilter{}); err != nil {
				return err
			}
			q.IDs = map[int64]string{}
			for _, t := range q.Tasks {
				q.IDs[t.ID] = store.ExportKey(t)
			}
			q.Learnings, err = tx.Learnings(store.LearningFilter{})
			q.Learnings = slices.DeleteFunc(q.Learnings, func(l ralph.Learning) bool { return l.Scope == ralph.ScopeTask })
			return err
		})
	})
	return q, err
}
