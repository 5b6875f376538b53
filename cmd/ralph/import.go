package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"ralph/internal/text"

	"github.com/spf13/cobra"

	"ralph/internal/exchange"
	"ralph/internal/files"
	"ralph/internal/project"
	"ralph/internal/show"
	"ralph/store"
)

// errDryRun ends a transaction whose effects were only to be seen.
var errDryRun = errors.New("dry run")

// imported is what `ralph import --json` prints.
type imported struct {
	Format string `json:"format"`
	DryRun bool   `json:"dry_run"`
	store.ImportResult
}

func newImport(a *app) *cobra.Command {
	var format, feature string
	var dry bool
	cmd := newCommand("import FILE|-", func(cmd *cobra.Command, args []string) error {
		name, data, err := a.readInput(args[0])
		if err != nil {
			return err
		}
		in, err := exchange.Parse(data, format)
		if err != nil {
			return usage(inFile(name, err))
		}
		if feature != "" {
			exchange.Into(&in, feature)
		}
		var result store.ImportResult
		change := add[any]
		if dry {
			change = alter[any]
		}
		_, err = change(cmd.Context(), a, func(tx *store.Tx) (any, error) {
			if result, err = tx.Import(in); err == nil && dry {
				err = errDryRun
			}
			return nil, err
		})
		var line *store.ImportError
		switch {
		case errors.As(err, &line):
			return inFile(name, err)
		case err != nil && !errors.Is(err, errDryRun):
			return err
		}
		return a.print(imported{in.Format, dry, result}, func(w io.Writer) { show.Import(w, in.Format, dry, result) })
	})
	cmd.Flags().StringVar(&format, "format", "", "read it as this `FORMAT`: "+strings.Join(exchange.Formats(), ", "))
	cmd.Flags().StringVar(&feature, "feature", "", "put all tasks into this `FEATURE`, which is made if there is none")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only show what would be added and changed")
	return cmd
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
