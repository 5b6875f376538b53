package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/report"
	"ralph/store"
)

func newReport(a *app) *cobra.Command {
	var since time.Duration
	var run int64
	var format, output string
	cmd := newCommand("report", func(cmd *cobra.Command, _ []string) error {
		f := cmd.Flags()
		if f.Changed("since") && f.Changed("run") {
			return usage(errors.New("--since and --run exclude each other"))
		}
		if f.Changed("since") && since <= 0 {
			return usage(&ralph.FieldError{Field: "--since", Problem: "must be greater than 0"})
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
		r, err := read(cmd.Context(), a, func(tx *store.Tx) (report.Report, error) {
			if f.Changed("since") {
				return report.Since(tx, tx.Now().Add(-since))
			}
			return report.OfRun(tx, run)
		})
		if err != nil {
			return err
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
	f.DurationVar(&since, "since", 0, "of all runs in this `TIME`, such as 24h")
	f.Int64Var(&run, "run", 0, "of the run of this `NUMBER`; the last one if it is not given")
	f.StringVar(&format, "format", "text", "text, md, json or junit")
	f.StringVar(&output, "output", "", "write to `FILE` instead of printing; its ending chooses the format")
	return cmd
}

// checkReport finds before anything starts what would lose the report at the end.
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

// reports tells whether a report is to be left.
func (o runOptions) reports() bool { return o.report != "" || o.format == formatGitHub }

// mute keeps GitHub Actions from taking what agents write for commands, until unmute.
func (o runOptions) mute(w io.Writer) (unmute func() error, err error) {
	if o.format != formatGitHub {
		return func() error { return nil }, nil
	}
	token := rand.Text()
	return func() error { return report.Unmute(w, token) }, report.Mute(w, token)
}

// notBegun leaves the reports of a run that could not begin, and returns why it could
// not: a file of the run before would pass for this one's.
func (o runOptions) notBegun(ctx context.Context, a *app, db *store.DB, why error) error {
	if !o.reports() {
		return why
	}
	status := ralph.ExitFailure
	var s *ralph.ExitError
	if errors.As(why, &s) {
		status = s.Status
	}
	r := report.New(nil, nil, nil)
	err := db.View(context.WithoutCancel(ctx), func(tx *store.Tx) (err error) {
		r.Since, r.Until = tx.Now(), tx.Now()
		r, err = report.WithWaiting(tx, r)
		return err
	})
	r.ExitStatus, r.Reason = &status, why.Error()
	if err == nil {
		err = o.leave(a, r)
	}
	if err == nil {
		return why
	}
	return &ralph.ExitError{Status: status, Err: errors.Join(why, err)}
}

// lastRun is the number of the latest run; 0 if there was none.
func lastRun(ctx context.Context, db *store.DB) (id int64, err error) {
	err = db.View(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		run, _, err := tx.LastRun()
		id = run.ID
		return err
	})
	return id, err
}

// afterRun leaves what was asked for of a run that has ended, however it did.
func (o runOptions) afterRun(ctx context.Context, a *app, db *store.DB) error {
	if !o.reports() {
		return nil
	}
	var r report.Report
	err := db.View(context.WithoutCancel(ctx), func(tx *store.Tx) (err error) { r, err = report.OfRun(tx, 0); return err })
	if err != nil {
		return err
	}
	return o.leave(a, r)
}

// leave writes the file of --report, and with --format github the annotations and
// the step's summary.
func (o runOptions) leave(a *app, r report.Report) error {
	var errs []error
	if o.report != "" {
		path, err := a.path(o.report)
		if err == nil {
			err = r.WriteFile(path, report.FormatOf(o.report))
		}
		errs = append(errs, err)
	}
	if o.format == formatGitHub {
		errs = append(errs, r.Annotate(a.out), r.AppendSummary(a.getenv("GITHUB_STEP_SUMMARY")))
	}
	return errors.Join(errs...)
}
