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
	"ralph/internal/inbox"
	"ralph/internal/text"
	"ralph/signals"
	"ralph/store"
)

// OfRun reports on a run and on the inbox; 0 is the last run that had a session or merged something.
func OfRun(tx *store.Tx, id int64) (Report, error) {
	r, err := Worked(tx, id)
	if err == nil && r.RunID != 0 {
		r, err = WithWaiting(tx, r)
	}
	return r, err
}

// Worked is as [OfRun], without the inbox.
func Worked(tx *store.Tx, id int64) (Report, error) {
	later := ""
	if id == 0 {
		last, err := tx.RunEnds(1)
		if err != nil {
			return Report{}, err
		}
		if later, err = laterRun(tx, last); err != nil || len(last) == 0 {
			r := New(nil, nil, nil, nil)
			r.Later = later
			return r, err
		}
		id = last[0].ID
	}
	run, err := tx.Run(id)
	if err != nil {
		return Report{}, err
	}
	r, err := gather(tx, store.SessionFilter{Run: run.ID, Merges: true})
	r.of(run)
	r.Sandbox, r.Later = run.Sandbox, later
	return r, err
}

// laterRun describes the last run, if it did nothing although it had work: when it was, and why. worked is the last
// run that did something, if there is one.
func laterRun(tx *store.Tx, worked []ralph.Run) (string, error) {
	last, ok, err := tx.LastRun()
	if err != nil || !ok || last.ExitStatus == nil || *last.ExitStatus == ralph.ExitOK ||
		len(worked) > 0 && worked[0].ID >= last.ID {
		return "", err
	}
	return fmt.Sprintf("a later run did nothing (%s): %s (exit status %d)", moment(last.EndedAt, tx.Now()),
		line(last.Reason), *last.ExitStatus), nil
}

// of fills in a report's data about its run.
func (r *Report) of(run ralph.Run) {
	r.RunID, r.ExitStatus, r.Reason, r.Since, r.Until = run.ID, run.ExitStatus, run.Reason, run.StartedAt, run.EndedAt
}

// Since reports on everything since a moment.
func Since(tx *store.Tx, since time.Time) (Report, error) {
	r, err := gather(tx, store.SessionFilter{Active: ralph.At(since), Merges: true})
	if err == nil {
		r, err = WithWaiting(tx, r)
	}
	if err != nil {
		return r, err
	}
	runs, err := tx.RunEnds(nightRuns)
	r.runs = len(slices.DeleteFunc(runs, func(r ralph.Run) bool { return !r.EndedAt.IsZero() && r.EndedAt.Before(since) }))
	r.Since, r.Until, r.named = ralph.At(since), tx.Now(), "since "+moment(ralph.At(since), tx.Now())
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

// Night returns the runs of the last night, from runs that are given newest first: the newest, and before it each run
// that ended at most nightGap before the next one began.
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

// A Morning sums up a time for people.
type Morning struct {
	Figures  Figures
	Headline []Part   // the figures in words
	Rest     []string // why it ended and its changes, by lines
	Night    []Part   // the figures of the night, if it had several runs; nil otherwise
	Changed  Changed
	CostUSD  float64    // cost of the sessions that have ended
	Since    ralph.Time // when a person looked last; zero if it is about the last run
	// of the sessions and merges that Headline counts
	Of store.SessionFilter
}

// Lines returns the morning as text.
func (m Morning) Lines() (lines []string) {
	if len(m.Headline) > 0 {
		lines = append(lines, joined(m.Headline))
	}
	lines = append(lines, m.Rest...)
	if len(m.Night) > 0 {
		lines = append(lines, joined(m.Night))
	}
	return lines
}

// MorningOf sums up everything since a moment, or the last run with results if that is zero, given the spending of
// sessions in progress so far (USD). It reads less than a full report, for frequent use. The sum of nothing is empty.
func MorningOf(tx *store.Tx, since ralph.Time, spending float64) (m Morning, err error) {
	runs, err := tx.RunEnds(nightRuns)
	if err != nil {
		return m, err
	}
	later, err := laterRun(tx, runs)
	if err != nil || len(runs) == 0 {
		if later != "" {
			m.Rest = []string{later}
		}
		return m, err
	}
	m.Of = store.SessionFilter{Run: runs[0].ID, Merges: true}
	if !since.IsZero() {
		m.Of = store.SessionFilter{Active: since, Merges: true}
		runs = slices.DeleteFunc(runs, func(r ralph.Run) bool { return !r.EndedAt.IsZero() && r.EndedAt.Before(since.Time) })
	}
	r, err := brief(tx, m.Of)
	if err != nil {
		return m, err
	}
	r.Later = later
	if r.spending = spending; len(runs) > 0 {
		r.of(runs[0])
	}
	night := Night(runs)
	if !since.IsZero() {
		r.named, r.runs, night = "since "+moment(since, tx.Now()), len(runs), nil
	}
	m.Figures, m.Headline, m.Rest = r.Figures, r.Headline(), r.Rest()
	m.Changed, m.CostUSD, m.Since = r.Changed, r.CostUSD, since
	if len(night) > 1 {
		began := night[len(night)-1].StartedAt
		all, err := brief(tx, store.SessionFilter{Active: began, Merges: true})
		if err != nil {
			return m, err
		}
		all.named, all.runs, all.spending = "since "+moment(began, tx.Now()), len(night), spending
		m.Night = all.Headline()
	}
	return m, nil
}

// brief gathers a report's figures, and the changes.
func brief(tx *store.Tx, f store.SessionFilter) (Report, error) {
	sessions, err := tx.Results(f)
	if err != nil {
		return Report{}, err
	}
	changes, err := tx.ChangesBeside(f)
	if err != nil {
		return Report{}, err
	}
	return assemble(tx, f, sessions, changes, nil)
}

// moment names a time, without the date if it is of the last hours.
func moment(at, now ralph.Time) string { return text.When(at.Time, now.Time) }

func gather(tx *store.Tx, f store.SessionFilter) (Report, error) {
	sessions, err := tx.Results(f)
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
	r, err := assemble(tx, f, sessions, changes, flags)
	if err != nil {
		return Report{}, err
	}
	return r, r.merge(tx, f, sessions, changes)
}

// assemble makes the report of a filter's sessions, given the changes of their tasks.
func assemble(
	tx *store.Tx, f store.SessionFilter, sessions []ralph.Session, changes []ralph.Change, flags map[string][]Flag,
) (Report, error) {
	tasks, err := tx.TasksOf(f)
	if err != nil {
		return Report{}, err
	}
	r := New(sessions, tasks, flags, f.Worked)
	if err := r.change(tx, f, sessions, changes); err != nil {
		return Report{}, err
	}
	r.Figures = figuresOf(r.Tasks)
	return r, nil
}

// merge adds how long the work of a filter's sessions waited for its merge, and how often it was sent back. changes
// are those of the sessions' tasks.
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

// change adds the changes of a filter's sessions, oldest first, given the changes of their tasks, newest first.
func (r *Report) change(tx *store.Tx, f store.SessionFilter, sessions []ralph.Session, changes []ralph.Change) error {
	changed, err := changedBy(tx, f, sessions, changes)
	if err != nil {
		return err
	}
	for i, t := range r.Tasks {
		r.Tasks[i].Changed = *changed[t.TaskID]
		if GroupOf(ralph.Task{Status: t.Status}) != Undone { // like the list and the count of merged tasks
			r.Changed.merge(*changed[t.TaskID])
		}
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

// WithWaiting adds the inbox.
func WithWaiting(tx *store.Tx, r Report) (Report, error) {
	waits, err := inbox.All(tx)
	if err != nil {
		return Report{}, err
	}
	for _, i := range waits {
		r.Waiting = append(r.Waiting, Waiting{
			Kind: i.Kind, TaskID: i.TaskID, Item: i.Item, Title: i.Title,
			Asks: inbox.Gist(i), Text: inbox.Said(i), Commands: i.Commands,
		})
	}
	lines, err := advice.Merging(tx)
	r.Merging = append(r.Merging, lines...)
	if err == nil {
		r.Flaky, err = tx.Flaky(ralph.FlakySince(tx.Now()))
	}
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
