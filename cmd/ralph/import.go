package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/exchange"
	"ralph/internal/files"
	"ralph/internal/project"
	"ralph/internal/show"
	"ralph/internal/term"
	"ralph/internal/text"
	"ralph/signals"
	"ralph/store"
)

// errDryRun rolls back a transaction after its effects were shown.
var errDryRun = errors.New("dry run")

// imported is the output of `ralph import --json`.
type imported struct {
	Format string `json:"format"`
	DryRun bool   `json:"dry_run"`
	store.ImportResult
	Read   *ralph.Reading `json:"read,omitempty"`   // the counts of a checklist
	Offers []ralph.Offer  `json:"offers,omitempty"` // verification commands that the file offers, not yet accepted

	unproved int // new tasks without their own verification commands
}

// A taskFile is a file to import.
type taskFile struct {
	name string // its name for people
	path string // "" for standard input
	data []byte
	in   ralph.Import
}

func newImport(a *app) *cobra.Command {
	var format, feature string
	var dry, ordered, sync, gates bool
	cmd := newCommand("import FILE|FOLDER|-", func(cmd *cobra.Command, args []string) error {
		list, err := a.taskFiles(cmd.Context(), args[0], format)
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
		if out.Offers = gatesOf(list); len(out.Offers) > 0 && (gates || !dry && !a.json && a.takes(out.Offers)) {
			for i := range list {
				exchange.Take(&list[i].in)
			}
			out.Offers = nil
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
			return out.gone(tx, list)
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
		out.note()
		for i := 0; i < len(list) && sync; i++ {
			if err := out.tick(list[i], done[i]); err != nil {
				return err
			}
		}
		return a.print(out, func(w io.Writer) { show.Import(w, out.Format, dry, out.ImportResult, out.Read) })
	})
	cmd.Flags().StringVar(&format, "format", "", "read it as this `FORMAT`: "+strings.Join(exchange.Formats(), ", "))
	cmd.Flags().StringVar(&feature, "feature", "", "put all tasks into this `FEATURE`; a missing one is created")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only show the additions and changes")
	cmd.Flags().BoolVar(&gates, "gates", false, "accept the file's commands as checks of its tasks")
	cmd.Flags().BoolVar(&ordered, "in-order", false, "have each task wait for the one before it in its file")
	cmd.Flags().BoolVar(&sync, "sync", false, "then tick the boxes of completed tasks in the file")
	return cmd
}

// exported adds the project's present export to each file that was exported from here, to find the edits in the file.
func (a *app) exported(ctx context.Context, list []taskFile) error {
	for i := range list {
		in := &list[i].in
		if !slices.ContainsFunc(in.Tasks, func(t ralph.ImportedTask) bool { return store.Exported(t.Key) }) ||
			!slices.Contains(exchange.ExportFormats(), in.Format) {
			continue
		}
		var now strings.Builder
		err := a.with(ctx, func(p *project.Project, db *store.DB) error {
			q, err := p.Queue(ctx, db)
			return cmp.Or(err, exchange.Write(&now, in.Format, q))
		})
		if err != nil {
			return err
		}
		if now.Len() == 0 {
			continue
		}
		here, err := exchange.Parse([]byte(now.String()), in.Format)
		if err != nil && !errors.Is(err, exchange.ErrNoTask) {
			return err
		}
		in.Here = map[string]ralph.ImportedTask{}
		for _, t := range here.Tasks {
			in.Here[t.Key], in.Here[t.ExternalID] = t, t
		}
	}
	return nil
}

// add adds the result of a file, and counts its new tasks without their own commands.
func (o *imported) add(in ralph.Import, r store.ImportResult) {
	for i, t := range r.Tasks {
		if t.Action == store.ImportAdded && !t.Status.Ended() && len(in.Tasks[i].Verify) == 0 {
			o.unproved++
		}
	}
	o.Tasks, o.Notes = append(o.Tasks, r.Tasks...), append(o.Notes, r.Notes...)
	o.Learnings += r.Learnings
	o.Features = append(o.Features, r.Features...)
	if in.Read != nil && o.Read == nil {
		o.Read = &ralph.Reading{}
	}
	if in.Read != nil {
		o.Read.Add(*in.Read)
	}
}

// gatesOf lists the commands that files offer as verification.
func gatesOf(list []taskFile) (all []ralph.Offer) {
	for _, f := range list {
		all = append(all, f.in.Offers...)
	}
	return all
}

// takes asks whether offered commands should verify the file's tasks; false without a terminal.
func (a *app) takes(list []ralph.Offer) bool {
	if !term.Is(a.in) {
		return false
	}
	for _, o := range list {
		fmt.Fprintf(a.out, "%s (line %d): %s\n", text.Line(o.Section, 60), o.Line, text.Line(o.Command, 500))
	}
	fmt.Fprint(a.out, "Run these commands to check each done of this file's tasks? [y/N] ")
	line, err := bufio.NewReader(a.in).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	return err == nil && (answer == "y" || answer == "yes")
}

// note names the tasks without verification, and the offered commands that were not accepted.
func (o *imported) note() {
	if o.unproved > 0 {
		o.Notes = append(o.Notes, fmt.Sprintf("new tasks without a command that proves them: %d; "+
			"`ralph task edit ID --verify COMMAND` adds one", o.unproved))
	}
	var names []string
	for _, offer := range o.Offers {
		names = append(names, "`"+offer.Command+"`")
	}
	if len(names) > 0 {
		o.Notes = append(o.Notes, "offered as verification, and not taken: "+strings.Join(names, ", ")+"; --gates takes them")
	}
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

// gone names the tasks of earlier imports of the files that are no longer in them. A box with another title is another
// task, and the former one would be done, too.
func (o *imported) gone(tx *store.Tx, list []taskFile) error {
	from, here := map[string]bool{}, map[int64]bool{}
	for _, f := range list {
		for _, t := range f.in.Tasks {
			source, _ := ralph.ExternalID(t.Key)
			from[source] = exchange.Whole(f.in.Format) && strings.Contains(source, "/")
		}
	}
	for _, t := range o.Tasks {
		here[t.ID] = true
	}
	tasks, err := tx.Tasks(store.TaskFilter{})
	var left []string
	for _, t := range tasks {
		if from[t.ExternalSource] && !here[t.ID] && !t.Status.Ended() {
			left = append(left, fmt.Sprintf("TASK-%d (%s)", t.ID, text.Line(t.Title, 60)))
		}
	}
	if len(left) > 0 {
		o.Notes = append(o.Notes, "no longer in the file, and still to do here: "+signals.FileList(left)+
			"; `ralph task cancel ID` drops one")
	}
	return err
}

// taskFiles reads a file, standard input, or the plans of a folder.
func (a *app) taskFiles(ctx context.Context, arg, format string) (list []taskFile, err error) {
	if list, err = a.readTasks(arg, format); err == nil {
		err = a.exported(ctx, list)
	}
	return list, err
}

func (a *app) readTasks(arg, format string) (list []taskFile, err error) {
	path, err := a.path(arg)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); arg != "-" && err == nil && info.IsDir() {
		return a.taskFolder(arg, path, format)
	}
	f, err := a.taskFile(arg, format)
	if err != nil {
		return nil, usage(err)
	}
	if arg != "-" {
		f.path = path
	}
	return []taskFile{f}, nil
}

// taskFile reads a file or standard input. A checklist "tasks.md" without a title gets its folder's
// name.
func (a *app) taskFile(name, format string) (f taskFile, err error) {
	if f.name, f.data, err = a.readInput(name); err != nil {
		return f, err
	}
	of := ""
	if filepath.Base(name) == exchange.TasksFile {
		path, err := a.path(name)
		if err != nil {
			return f, err
		}
		of = filepath.Base(filepath.Dir(path))
	}
	if f.in, err = exchange.ParseNamed(of, f.data, format); err != nil {
		err = inFile(f.name, err)
	}
	return f, err
}

// taskFolder reads the plans of a folder by name: files called tasks.md, in it or below, with the files beside them as
// context; otherwise the files *.md in it. It names files without tasks.
func (a *app) taskFolder(arg, path, format string) (list []taskFile, err error) {
	plans, err := exchange.Plans(os.DirFS(path))
	if err != nil {
		return nil, usage(err)
	}
	in := map[string]string{} // the file that contains a task
	var empty []string
	for _, plan := range plans {
		f, err := a.taskFile(filepath.Join(arg, plan.File), format)
		if errors.Is(err, exchange.ErrNoTask) {
			empty = append(empty, plan.File)
			continue
		}
		if err != nil {
			return nil, usage(err)
		}
		f.path = filepath.Join(path, plan.File)
		for _, t := range f.in.Tasks {
			if other := in[t.Key]; other != "" {
				return nil, usage(fmt.Errorf("%s:%d: %s is in %s already; a heading tells two files apart",
					f.name, t.Line, t.ExternalID, other))
			}
			in[t.Key] = f.name
		}
		for _, c := range plan.Context {
			_, data, err := a.readInput(filepath.Join(arg, c))
			if err != nil {
				return nil, err
			}
			if at := text.Invalid(data); at >= 0 {
				return nil, usage(fmt.Errorf("%s is not UTF-8 text; save the file as UTF-8", filepath.Join(arg, c)))
			}
			exchange.About(&f.in, c, string(data))
		}
		list = append(list, f)
	}
	if len(list) == 0 {
		return nil, usage(fmt.Errorf("%s: no file *.md there holds a task", arg))
	}
	if len(empty) > 0 {
		list[0].in.Notes = append(list[0].in.Notes, "left out, for they hold no task: "+strings.Join(empty, ", "))
	}
	if format := list[0].in.Format; exchange.Linked(format) {
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
			var why *fs.PathError
			if errors.As(err, &why) {
				err = why.Err
			}
			hint := ""
			if strings.Contains(arg, "://") {
				hint = "; `ralph import` reads files: download it, or pipe it into `ralph import -`"
			}
			return arg, nil, usage(fmt.Errorf("%s: %w%s", arg, err, hint))
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
