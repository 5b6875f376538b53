package report

import (
	"bytes"
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

// OfRun reports on a run, the last one for 0.
func OfRun(tx *store.Tx, id int64) (Report, error) {
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
	return r, err
}

// Since reports on all that happened since a moment.
func Since(tx *store.Tx, since time.Time) (Report, error) {
	r, err := gather(tx, store.SessionFilter{Since: ralph.At(since)})
	r.Since, r.Until = ralph.At(since), tx.Now()
	return r, err
}

func gather(tx *store.Tx, f store.SessionFilter) (Report, error) {
	sessions, err := tx.Sessions(f)
	if err != nil {
		return Report{}, err
	}
	slices.Reverse(sessions)
	tasks, flags := map[int64]ralph.Task{}, map[string][]Flag{}
	for _, s := range sessions {
		if flags[s.ID], err = Flagged(tx, s.ID); err != nil {
			return Report{}, err
		}
		if _, ok := tasks[s.TaskID]; ok {
			continue
		}
		if tasks[s.TaskID], err = tx.Task(s.TaskID); err != nil {
			return Report{}, err
		}
	}
	return WithWaiting(tx, New(sessions, tasks, flags))
}

// Flagged are the problems that a session reported and that are for people to see.
func Flagged(tx *store.Tx, session string) (flags []Flag, err error) {
	said, err := tx.SessionSignals(session)
	for _, s := range said {
		if f, ok := s.Payload.(signals.Flag); ok && !s.Resolved && f.Severity != "info" {
			flags = append(flags, Flag{Comment: s.ID, Severity: f.Severity, Category: f.Category, What: f.What})
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
	return r, nil
}

// WriteFile writes the report to a file as a whole.
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

// AppendSummary adds the report to the summary of a step of GitHub Actions.
func (r Report) AppendSummary(file string) (err error) {
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
