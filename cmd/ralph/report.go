package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"ralph/internal/project"
	"ralph/internal/report"
	"ralph/store"
)

func newReport(a *app) *cobra.Command {
	var since string
	var run int64
	var format, output, by string
	var verbose bool
	cmd := newCommand("report", func(cmd *cobra.Command, _ []string) (err error) {
		f := cmd.Flags()
		if f.Changed("since") && f.Changed("run") {
			return usage(errors.New("--since and --run exclude each other"))
		}
		if f.Changed("run") && run < 1 {
			return usage(errors.New("--run must be the number of a run, from 1"))
		}
		var from time.Time
		if f.Changed("since") {
			if from, err = a.since(cmd.Context(), since); err != nil {
				return err
			}
		}
		if by != "" {
			return a.reportCosts(cmd.Context(), by, from, run)
		}
		if !f.Changed("format") && output != "" {
			if format = report.FormatOf(output); format == "" {
				return usage(fmt.Errorf("--output %s: its ending tells no format (.md, .json, .xml); give --format", output))
			}
		}
		if err := oneOf("--format", format, report.Formats...); err != nil {
			return err
		}
		if a.json && output == "" {
			format = "json"
		}
		var r report.Report
		if err := a.with(cmd.Context(), func(p *project.Project, db *store.DB) error {
			return db.View(cmd.Context(), func(tx *store.Tx) (err error) {
				if f.Changed("since") {
					r, err = report.Since(tx, from)
				} else {
					r, err = report.OfRun(tx, run)
				}
				r.Forge = p.ForgeLine(time.Now())
				return err
			})
		}); err != nil {
			return err
		}
		if output == "" && format == "text" {
			return r.WriteText(a.out, a.screen(), verbose)
		}
		if output == "" {
			return r.Write(a.out, format)
		}
		path, err := a.path(output)
		if err != nil {
			return err
		}
		return r.WriteFile(path, format)
	})
	f := cmd.Flags()
	f.StringVar(&since, "since", "", "of all runs since this "+sinceUsage)
	f.StringVar(&by, "by", "", "sum up costs by `WHAT`: model, agent, day or feature")
	f.Int64Var(&run, "run", 0, "of the run of this `NUMBER`; the last one if it is not given")
	f.StringVar(&format, "format", "text", "`FORMAT`: text, md, json or junit")
	f.BoolVarP(&verbose, "verbose", "v", false, "add agents, tokens and proofs")
	f.StringVarP(&output, "output", "o", "", "write to `FILE` instead of printing; its ending chooses the format")
	return cmd
}

// checkReport finds problems that would lose the report at the end, before anything starts.
func (o runOptions) checkReport(a *app) error {
	if o.report == "" {
		return nil
	}
	if report.FormatOf(o.report) == "" {
		return usage(fmt.Errorf("--report %s: its ending tells no format; name it .xml, .md or .json", o.report))
	}
	path, err := a.path(o.report)
	if err != nil {
		return err
	}
	if i, err := os.Stat(filepath.Dir(path)); err != nil || !i.IsDir() {
		return usage(fmt.Errorf("--report %s: there is no folder %s; make it first", o.report, filepath.Dir(path)))
	}
	return nil
}

// leaving returns where a run writes its report.
func (o runOptions) leaving(a *app) (l report.Leaving, err error) {
	if err := o.checkReport(a); err != nil || o.report == "" && o.format != formatGitHub {
		return l, err
	}
	l = report.Leaving{Actions: o.format == formatGitHub, Out: a.out, Err: a.err, Summary: a.getenv("GITHUB_STEP_SUMMARY")}
	if o.report != "" {
		l.File, err = a.path(o.report)
	}
	return l, err
}
