package report

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"ralph"
	"ralph/internal/advice"
	"ralph/internal/files"
	"ralph/signals"
	"ralph/store"
)

// OfRun reports on a run, and on what waits for people; 0 is the last run.
func OfRun(tx *store.Tx, id int64) (Report, error) {
	r, err := Worked(tx, id)
	if err == nil && r.RunID != 0 {
		r, err = WithWaiting(tx, r)
	}
	return r, err
}

// Worked is as [OfRun], without what waits for people.
func Worked(tx *store.Tx, id int64) (Report, error) {
	var run ralph.Run
	var err error
	if id == 0 {
		ok := false
		if run, ok, err = tx.LastRun(); err == nil && !ok {
			return New(nil, nil, nil), nil
		}
	} else {
		run, err = tx.Run(id)
	}
	if err != nil {
		return Report{}, err
	}
	r, err := gather(tx, store.SessionFilter{Run: run.ID})
	r.RunID, r.ExitStatus, r.Reason, r.Since, r.Until = run.ID, run.ExitStatus, run.Reason, run.StartedAt, run.EndedAt
	r.Sandbox = run.Sandbox
	return r, err
}

// Since reports on everything since a moment.
func Since(tx *store.Tx, since time.Time) (Report, error) {
	r, err := gather(tx, store.SessionFilter{Since: ralph.At(since)})
	if err == nil {
		r, err = WithWaiting(tx, r)
	}
	r.Since, r.Until = ralph.At(since), tx.Now()
	return r, err
}

// OfTask returns the receipt of a task over all its sessions.
func OfTask(tx *store.Tx, t ralph.Task) (Receipt, error) {
	r, err := gather(tx, store.SessionFilter{Task: t.ID})
	if err != nil || len(r.Tasks) == 0 {
		return receiptOf(t), err
	}
	return r.Tasks[0], nil
}

// nightGap is the longest time between two runs of one night.
const nightGap = 4 * time.Hour

// nightRuns is the most runs of a night.
const nightRuns = 50

// Night returns, of runs that are given newest first, those of the last night: the newest, and before it those that
// ended at most nightGap before the next one began.
func Night(runs []ralph.Run) []ralph.Run {
	for i := 1; i < len(runs); i++ {
		ended := runs[i].EndedAt
		if ended.IsZero() { // it was lost
			ended = runs[i].StartedAt
		}
		if runs[i-1].StartedAt.Sub(ended.Time) > nightGap {
			return runs[:i]
		}
	}
	return runs
}

// MorningOf returns the summary of everything since a moment, or of the last night if that is zero, given how many
// items wait and what sessions in progress have spent so far (USD), and the sessions that it counts. It reads less than
// a full report, for frequent use.
func MorningOf(
	tx *store.Tx, since ralph.Time, waiting int, spending float64,
) (lines []string, f store.SessionFilter, err error) {
	runs, err := tx.RunEnds(nightRuns)
	if err != nil || len(runs) == 0 {
		return nil, f, err
	}
	last := runs[0]
	f.Active = since
	if since.IsZero() {
		runs = Night(runs)
		f.Active = runs[len(runs)-1].StartedAt
		if len(runs) == 1 {
			f = store.SessionFilter{Run: last.ID}
		}
	} else {
		runs = slices.DeleteFunc(runs, func(r ralph.Run) bool { return !r.EndedAt.IsZero() && r.EndedAt.Before(since.Time) })
	}
	sessions, err := tx.Outlines(f)
	if err != nil {
		return nil, f, err
	}
	tasks, err := tx.TasksOf(f)
	if err != nil {
		return nil, f, err
	}
	changes, err := tx.ChangesBeside(f)
	if err != nil {
		return nil, f, err
	}
	r := New(sessions, tasks, nil)
	err = r.change(tx, f, sessions, changes)
	r.spending, r.runs = spending, len(runs)
	if r.runs > 0 {
		r.ExitStatus, r.Reason = last.ExitStatus, last.Reason
	}
	switch {
	case !since.IsZero():
		r.Since, r.named = since, "since "+moment(since, tx.Now())
	case r.runs > 1:
		r.Since = runs[len(runs)-1].StartedAt
		r.named = "since " + moment(r.Since, tx.Now())
	default:
		r.Since, r.Until = last.StartedAt, last.EndedAt
	}
	r.Waiting = make([]Waiting, waiting)
	return r.Morning(), f, err
}

// moment names a time, without the date if it is today.
func moment(at, now ralph.Time) string {
	if at.Local().Format(time.DateOnly) == now.Local().Format(time.DateOnly) {
		return at.Local().Format("15:04")
	}
	return at.Local().Format("Jan 2 15:04")
}

func gather(tx *store.Tx, f store.SessionFilter) (Report, error) {
	sessions, err := tx.Results(f)
	if err != nil {
		return Report{}, err
	}
	tasks, err := tx.TasksOf(f)
	if err != nil {
		return Report{}, err
	}
	flags, err := flagged(tx, f)
	if err != nil {
		return Report{}, err
	}
	changes, err := tx.ChangesBeside(f)
	if err != nil {
		return Report{}, err
	}
	r := New(sessions, tasks, flags)
	if err := r.merge(tx, f, sessions, changes); err != nil {
		return Report{}, err
	}
	err = r.change(tx, f, sessions, changes)
	return r, err
}

// merge adds how long the work of a filter's sessions waited to be merged, and how often it was sent back. changes are
// those of the sessions' tasks.
func (r *Report) merge(tx *store.Tx, f store.SessionFilter, sessions []ralph.Session, changes []ralph.Change) error {
	timesSentBack, err := tx.SentBack(f)
	own := map[string]bool{}
	for _, s := range sessions {
		own[s.ID] = true
	}
	waited := map[int64]time.Duration{}
	for _, c := range changes {
		if own[c.SessionID] && (c.State == ralph.Merged || c.State == ralph.SentBack) {
			waited[c.TaskID] += c.Updated.Sub(c.Created.Time)
		}
	}
	for i, t := range r.Tasks {
		r.Tasks[i].TimesSentBack, r.Tasks[i].MergeSeconds = timesSentBack[t.TaskID], waited[t.TaskID].Seconds()
	}
	return err
}

// change adds what sessions of a filter, oldest first, changed, given the changes of their tasks, newest first.
func (r *Report) change(tx *store.Tx, f store.SessionFilter, sessions []ralph.Session, changes []ralph.Change) error {
	changed, err := changedBy(tx, f, sessions, changes)
	if err != nil {
		return err
	}
	for i, t := range r.Tasks {
		r.Tasks[i].Changed = *changed[t.TaskID]
		r.Changed.merge(*changed[t.TaskID])
	}
	return nil
}

// flagged lists the unresolved problems that a filter's sessions reported, except infos, by session.
func flagged(tx *store.Tx, f store.SessionFilter) (map[string][]Flag, error) {
	list, err := tx.OpenFlags(f)
	flags := map[string][]Flag{}
	for _, c := range list {
		p, err := signals.Parse(c.Verb, c.Payload)
		if err != nil {
			return nil, fmt.Errorf("comment %d: %w", c.ID, err)
		}
		if f, ok := p.(signals.Flag); ok && f.Severity != "info" {
			flags[c.SessionID] = append(flags[c.SessionID],
				Flag{Comment: c.ID, Severity: f.Severity, Category: f.Category, What: f.What})
		}
	}
	return flags, err
}

// WithWaiting adds what waits for people.
func WithWaiting(tx *store.Tx, r Report) (Report, error) {
	inbox, err := advice.Inbox(tx)
	if err != nil {
		return Report{}, err
	}
	for _, i := range inbox {
		r.Waiting = append(r.Waiting, Waiting{Kind: i.Kind, TaskID: i.TaskID, Text: i.Text, Command: i.Command})
	}
	lines, err := advice.Merging(tx)
	r.Merging = append(r.Merging, lines...)
	return r, err
}

// WriteFile writes the report to a file atomically.
func (r Report) WriteFile(path, format string) error {
	var b bytes.Buffer
	if err := r.Write(&b, format); err != nil {
		return err
	}
	if err := files.Write(path, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("report %s: %w", path, err)
	}
	return nil
}

// AppendSummary appends the report to the summary of a GitHub Actions step.
func (r Report) AppendSummary(file string) (err error) {
	if file == "" {
		return nil // not in an action, or in an older runner
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

// LastRun returns the number of the latest run; 0 if there was none.
func LastRun(ctx context.Context, db *store.DB) (id int64, err error) {
	return store.Read(context.WithoutCancel(ctx), db, func(tx *store.Tx) (int64, error) {
		run, _, err := tx.LastRun()
		return run.ID, err
	})
}
