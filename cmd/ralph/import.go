package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/exchange"
	"ralph/internal/files"
	"ralph/internal/project"
	"ralph/internal/show"
	"ralph/internal/text"
	"ralph/store"
)

// errDryRun rolls back a transaction whose effects are only shown.
var errDryRun = errors.New("dry run")

// imported is what `ralph import --json` prints.
type imported struct {
	Format string `json:"format"`
	DryRun bool   `json:"dry_run"`
	store.ImportResult
	unproved int // new tasks without verification commands of their own
}

// A taskFile is a file to import.
type taskFile struct {
	name string // name for people
	path string // "" for standard input
	data []byte
	in   ralph.Import
}

func newImport(a *app) *cobra.Command {
	var format, feature string
	var dry, ordered, sync bool
	cmd := newCommand("import FILE|FOLDER|-", func(cmd *cobra.Command, args []string) error {
		list, err := a.taskFiles(args[0], format)
		if err != nil {
			return err
		}
		out := imported{Format: list[0].in.Format, DryRun: dry}
		for i := range list {
			f := &list[i]
			if sync && (f.path == "" || f.in.Format != exchange.Checklist) {
				return usage(fmt.Errorf("--sync ticks the boxes of a checklist in a file, and %s is none", f.name))
			}
			if feature != "" {
				exchange.Into(&f.in, feature)
			}
			if ordered {
				exchange.InOrder(f.in.Tasks)
			}
		}
		change := add[any]
		if dry {
			change = alter[any]
		}
		done := make([]map[int]bool, len(list))
		var name string
		take := func(tx *store.Tx) error {
			for i, f := range list {
				name = f.name
				result, err := tx.Import(f.in)
				if err != nil {
					return err
				}
				out.add(f.in, result)
				done[i] = map[int]bool{}
				for _, t := range result.Tasks {
					done[i][t.Line] = t.Status == ralph.Completed
				}
			}
			return nil
		}
		_, err = change(cmd.Context(), a, func(tx *store.Tx) (any, error) {
			if !dry {
				return nil, take(tx)
			}
			return nil, cmp.Or(tx.Trial(func() error { return take(tx) }), errDryRun)
		})
		var line *store.ImportError
		switch {
		case errors.As(err, &line):
			return inFile(name, err)
		case err != nil && !errors.Is(err, errDryRun):
			return err
		}
		if out.unproved > 0 {
			out.Notes = append(out.Notes, fmt.Sprintf("new tasks without a command that proves them: %d; "+
				"`ralph task edit ID --verify COMMAND` adds one", out.unproved))
		}
		for i, f := range list {
			if sync {
				if err := out.tick(f, done[i]); err != nil {
					return err
				}
			}
		}
		return a.print(out, func(w io.Writer) { show.Import(w, out.Format, dry, out.ImportResult) })
	})
	cmd.Flags().StringVar(&format, "format", "", "read it as this `FORMAT`: "+strings.Join(exchange.Formats(), ", "))
	cmd.Flags().StringVar(&feature, "feature", "", "put all tasks into this `FEATURE`, which is made if there is none")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only show what would be added and changed")
	cmd.Flags().BoolVar(&ordered, "in-order", false, "have each task wait for the one before it in its file")
	cmd.Flags().BoolVar(&sync, "sync", false, "afterwards tick the boxes of tasks that are completed here, in the file")
	return cmd
}

// add adds the result of a file, and counts its new tasks without commands of their own.
func (o *imported) add(in ralph.Import, r store.ImportResult) {
	for i, t := range r.Tasks {
		if t.Action == store.ImportAdded && !t.Status.Ended() && len(in.Tasks[i].Verify) == 0 {
			o.unproved++
		}
	}
	o.Tasks, o.Notes = append(o.Tasks, r.Tasks...), append(o.Notes, r.Notes...)
	o.Learnings += r.Learnings
}

// tick ticks the boxes of finished tasks in a file.
func (o *imported) tick(f taskFile, done map[int]bool) error {
	ticked, n := exchange.Tick(f.data, done)
	if n == 0 {
		return nil
	}
	o.Notes = append(o.Notes, fmt.Sprintf("%s: boxes ticked: %d", f.name, n))
	if o.DryRun {
		return nil
	}
	path, err := filepath.EvalSymlinks(f.path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return files.Write(path, ticked, info.Mode().Perm())
}

// taskFiles reads a file, standard input, or the checklists of a folder in the order of their
// names; it skips those of a folder that contain no task.
func (a *app) taskFiles(arg, format string) (list []taskFile, err error) {
	path, err := a.path(arg)
	if err != nil {
		return nil, err
	}
	names := []string{arg}
	info, err := os.Stat(path)
	folder := arg != "-" && err == nil && info.IsDir()
	if folder {
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, usage(err)
		}
		names = nil
		for _, e := range entries {
			if filepath.Ext(e.Name()) == ".md" {
				names = append(names, filepath.Join(arg, e.Name()))
			}
		}
	}
	in := map[string]string{} // the file that contains a task
	for _, name := range names {
		f := taskFile{}
		if f.name, f.data, err = a.readInput(name); err != nil {
			return nil, err
		}
		f.in, err = exchange.Parse(f.data, format)
		if folder && errors.Is(err, exchange.ErrNoTask) {
			continue
		}
		if err != nil {
			return nil, usage(inFile(f.name, err))
		}
		if arg != "-" {
			if f.path, err = a.path(name); err != nil {
				return nil, err
			}
		}
		for _, t := range f.in.Tasks {
			if other := in[t.Key]; other != "" {
				return nil, usage(fmt.Errorf("%s:%d: %s is in %s already; a heading tells two files apart",
					f.name, t.Line, t.ExternalID, other))
			}
			in[t.Key] = f.name
		}
		list = append(list, f)
	}
	if len(list) == 0 {
		return nil, usage(fmt.Errorf("%s: no file *.md there holds a task", arg))
	}
	if format := list[0].in.Format; folder && exchange.Linked(format) {
		all := make([]ralph.Import, len(list))
		for i, f := range list {
			if all[i] = f.in; f.in.Format != format {
				return nil, usage(fmt.Errorf("%s is %s, and %s %s: import them one by one", f.name, f.in.Format,
					list[0].name, format))
			}
		}
		list = []taskFile{{name: arg, in: exchange.Join(all)}}
	}
	return list, nil
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
	data, err = io.ReadAll(io.LimitReader(in, exchange.MaxOwn+1))
	if err != nil {
		return "", nil, usage(fmt.Errorf("%s: %w", name, err))
	}
	return name, data, nil
}

// inFile prefixes an error with the name of a file, and its line as "FILE:LINE:".
func inFile(name string, err error) error {
	var bad *exchange.Error
	var line *store.ImportError
	switch {
	case errors.As(err, &bad) && bad.Line > 0:
		return fmt.Errorf("%s:%d: %s", name, bad.Line, text.Line(bad.Problem, 500))
	case errors.As(err, &line) && line.Line > 0:
		return fmt.Errorf("%s:%d: %w", name, line.Line, line.Err)
	}
	return fmt.Errorf("%s: %w", name, err)
}

func newExport(a *app) *cobra.Command {
	var format, output string
	cmd := newCommand("export", func(cmd *cobra.Command, _ []string) error {
		if err := oneOf("--format", format, exchange.ExportFormats()...); err != nil {
			return err
		}
		var text strings.Builder
		err := a.with(cmd.Context(), func(p *project.Project, db *store.DB) error {
			q, err := p.Queue(cmd.Context(), db)
			if err != nil {
				return err
			}
			return exchange.Write(&text, format, q)
		})
		if err != nil {
			return err
		}
		if output == "" {
			_, err := io.WriteString(a.out, text.String())
			return err
		}
		path, err := a.path(output)
		if err != nil {
			return err
		}
		return files.Write(path, []byte(text.String()), 0o644)
	})
	cmd.Flags().StringVar(&format, "format", "jsonl", "`FORMAT`: "+strings.Join(exchange.ExportFormats(), ", "))
	cmd.Flags().StringVarP(&output, "output", "o", "", "write to this `FILE` instead of standard output")
	return cmd
}
