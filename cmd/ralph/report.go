package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/report"
	"ralph/signals"
	"ralph/store"
)

func newReport(a *app) *cobra.Command {
	var since time.Duration
	var run int64
	var format, output string
	cmd := &cobra.Command{
		Use: "report", Short: "Say what runs came to: a receipt for each task, and what waits for you",
		Long: `Say what the last run came to, or another one, or all that happened in a time: for
each task its attempts, minutes, tokens, cost, verification and why it ended.`,
		Example: "  ralph report\n  ralph report --since 24h\n  ralph report --format junit --output ralph.xml", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
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
			if !slices.Contains(report.Formats, format) {
				return usage(fieldError("--format", format, report.Formats...))
			}
			if a.json && output == "" {
				format = "json"
			}
			var r report.Report
			err := a.read(cmd.Context(), func(tx *store.Tx) (err error) {
				if f.Changed("since") {
					r, err = reportSince(tx, tx.Now().Add(-since))
				} else {
					r, err = reportRun(tx, run)
				}
				return err
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
			return writeReport(r, path, format)
		},
	}
	f := cmd.Flags()
	f.DurationVar(&since, "since", 0, "of all runs in this `TIME`, such as 24h")
	f.Int64Var(&run, "run", 0, "of the run of this `NUMBER`; the last one if it is not given")
	f.StringVar(&format, "format", "text", "text, md, json or junit")
	f.StringVar(&output, "output", "", "write to `FILE` instead of printing; its ending chooses the format")
	return cmd
}

// reportRun reports on a run, the last one for 0.
func reportRun(tx *store.Tx, id int64) (report.Report, error) {
	var run ralph.Run
	var err error
	if id == 0 {
		ok := false
		if run, ok, err = tx.LastRun(); err == nil && !ok {
			return report.New(nil, nil, nil), nil
		}
	} else {
		run, err = tx.Run(id)
	}
	if err != nil {
		return report.Report{}, err
	}
	r, err := reportOn(tx, store.SessionFilter{Run: run.ID})
	r.RunID, r.ExitStatus, r.Reason, r.Since, r.Until = run.ID, run.ExitStatus, run.Reason, run.StartedAt, run.EndedAt
	return r, err
}

// reportSince reports on all that happened since a moment.
func reportSince(tx *store.Tx, since time.Time) (report.Report, error) {
	r, err := reportOn(tx, store.SessionFilter{Since: ralph.At(since)})
	r.Since, r.Until = ralph.At(since), tx.Now()
	return r, err
}

func reportOn(tx *store.Tx, f store.SessionFilter) (report.Report, error) {
	sessions, err := tx.Sessions(f)
	if err != nil {
		return report.Report{}, err
	}
	slices.Reverse(sessions)
	tasks, flags := map[int64]ralph.Task{}, map[string][]report.Flag{}
	for _, s := range sessions {
		if flags[s.ID], err = flagged(tx, s.ID); err != nil {
			return report.Report{}, err
		}
		if _, ok := tasks[s.TaskID]; ok {
			continue
		}
		if tasks[s.TaskID], err = tx.Task(s.TaskID); err != nil {
			return report.Report{}, err
		}
	}
	return withWaiting(tx, report.New(sessions, tasks, flags))
}

// flagged are the problems that a session reported and that are for people to see.
func flagged(tx *store.Tx, session string) (flags []report.Flag, err error) {
	said, err := tx.SessionSignals(session)
	for _, s := range said {
		if f, ok := s.Payload.(signals.Flag); ok && !s.Resolved && f.Severity != "info" {
			flags = append(flags, report.Flag{Comment: s.ID, Severity: f.Severity, Category: f.Category, What: f.What})
		}
	}
	return flags, err
}

// withWaiting adds what waits for people.
func withWaiting(tx *store.Tx, r report.Report) (report.Report, error) {
	inbox, err := inboxOf(tx)
	if err != nil {
		return report.Report{}, err
	}
	for _, i := range inbox {
		r.Waiting = append(r.Waiting, report.Waiting{Kind: i.Kind, TaskID: i.TaskID, Text: i.Text, Command: i.Command})
	}
	return r, nil
}

func writeReport(r report.Report, path, format string) error {
	var b bytes.Buffer
	if err := r.Write(&b, format); err != nil {
		return err
	}
	if err := writeWhole(path, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("report %s: %w", path, err)
	}
	return nil
}

// writeWhole writes a file as a whole: nobody ever reads half of one.
func writeWhole(path string, text []byte, mode fs.FileMode) error {
	part, err := os.CreateTemp(filepath.Dir(path), ".ralph-part-*")
	if err != nil {
		return err
	}
	_, err = part.Write(text)
	if err = errors.Join(err, part.Chmod(mode), part.Close()); err == nil {
		err = os.Rename(part.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part.Name()))
	}
	return nil
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
	if o.report == "" && o.format != formatGitHub {
		return why
	}
	status := ralph.ExitFailure
	var s *statusError
	if errors.As(why, &s) {
		status = s.status
	}
	r := report.New(nil, nil, nil)
	err := db.View(context.WithoutCancel(ctx), func(tx *store.Tx) (err error) {
		r.Since, r.Until = tx.Now(), tx.Now()
		r, err = withWaiting(tx, r)
		return err
	})
	r.ExitStatus, r.Reason = &status, why.Error()
	if err == nil {
		err = o.leave(a, r)
	}
	if err == nil {
		return why
	}
	return &statusError{status, errors.Join(why, err)}
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
	if o.report == "" && o.format != formatGitHub {
		return nil
	}
	var r report.Report
	if err := db.View(context.WithoutCancel(ctx), func(tx *store.Tx) (err error) {
		r, err = reportRun(tx, 0)
		return err
	}); err != nil {
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
			err = writeReport(r, path, report.FormatOf(o.report))
		}
		errs = append(errs, err)
	}
	if o.format == formatGitHub {
		errs = append(errs, r.Annotate(a.out), appendSummary(a.getenv("GITHUB_STEP_SUMMARY"), r))
	}
	return errors.Join(errs...)
}

// appendSummary adds the report to the summary of a step of GitHub Actions.
func appendSummary(file string, r report.Report) (err error) {
	if file == "" {
		return nil // not in an action, or an older runner
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("summary of the step: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := r.Write(f, "md"); err != nil {
		return err
	}
	_, err = io.WriteString(f, "\n")
	return err
}
