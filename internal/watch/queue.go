package watch

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"ralph"
	"ralph/internal/advice"
	"ralph/internal/inbox"
	"ralph/internal/machine"
	"ralph/internal/report"
	"ralph/internal/retention"
	"ralph/internal/transcript"
	"ralph/loop/agent"
	"ralph/loop/agent/kinds"
	"ralph/loop/order"
	"ralph/store"
)

// A Queue is the [Source] of a project.
type Queue struct {
	Store   *store.DB
	Project string        // its name
	State   string        // state folder
	Forge   func() string // its state in a line; "" for none
	Limits  ralph.Limits  // limits of the next run
	Do      func(ctx context.Context, a Action) (said string, err error)
	Lines   func(ctx context.Context, i store.InboxItem) (string, error) // lines of a held change

	last    Snapshot // last read from the database
	changed <-chan struct{}
	number  int              // followed
	process string           // process of the run
	windows map[string]int64 // context sizes of models

	session string
	file    io.ReadCloser
	reader  transcript.Reader
	skip    bool // skip to the start of the next line
}

// watchedTasks is the maximum number of queued tasks on a screen.
const watchedTasks = 30

// Snapshot implements [Source]. It reads the database when it has changed, and every hour: some things
// wait for a person only after a while.
func (s *Queue) Snapshot(ctx context.Context, number int) (Snapshot, error) {
	now := ralph.At(time.Now())
	if s.number == number && s.unchanged(now) {
		s.last.At = now
	} else {
		s.changed, s.number = s.Store.Changed(), number
		last, err := s.snapshot(ctx)
		if err != nil {
			s.changed = nil
			return Snapshot{}, err
		}
		s.last = last
		s.last.Changed = s.changed
	}
	v := s.last
	if v.Session != nil && v.Session.ID == s.session {
		used, model := s.reader.Context()
		v.ContextUsed, v.ContextSize, v.SpentUSD = used, s.windows[model], s.reader.Used().CostUSD
	}
	return v, nil
}

// unchanged reports whether the last snapshot is still current.
func (s *Queue) unchanged(now ralph.Time) bool {
	select {
	case <-s.changed:
		return false
	default:
		return s.changed != nil && !(s.last.Running && machine.Look(s.process) == machine.Gone) &&
			s.last.At.Truncate(time.Hour).Equal(now.Truncate(time.Hour))
	}
}

// snapshot reads a snapshot from the database.
func (s *Queue) snapshot(ctx context.Context) (Snapshot, error) {
	v := Snapshot{Project: s.Project}
	if s.Forge != nil {
		v.Forge = s.Forge()
	}
	l := s.Limits
	err := s.Store.View(ctx, func(tx *store.Tx) error {
		v.At = tx.Now()
		run, ok, err := tx.LastRun()
		if err != nil {
			return err
		}
		if ok {
			v.State, v.Reason, v.Until = run.State, run.StateReason, run.WaitUntil
			v.Since, v.Exit = run.StartedAt, run.ExitStatus
			v.Sessions, v.CostUSD = run.Sessions, run.CostUSD
			if v.Running, s.process = tx.Alive(run), run.Process; v.Running {
				l, v.Control = run.Limits, run.Control
				if v.Parallel, err = advice.Sessions(tx, run); err != nil {
					return err
				}
			} else {
				v.Reason = run.Reason
			}
		}
		v.MaxSessions, v.MaxCostUSD, v.MaxDayUSD = l.MaxSessions, l.MaxCostUSD, l.MaxDayCostUSD
		v.SessionUSD, v.MaxWindow = l.SessionCostUSD, l.Usage
		if v.DayUSD, err = tx.CostSince(order.Midnight(v.At.Time)); err != nil {
			return err
		}
		if v.Counts, err = tx.Tally(); err != nil {
			return err
		}
		next := store.TaskFilter{Statuses: []ralph.Status{ralph.Pending}, Limit: watchedTasks}
		if v.Queue, err = tx.Tasks(next); err != nil {
			return err
		}
		if v.Merging, err = advice.Merging(tx); err != nil {
			return err
		}
		if v.Windows, err = tx.UsageWindows(); err != nil {
			return err
		}
		waits, err := inbox.All(tx)
		if err != nil {
			return err
		}
		for _, g := range inbox.Sorted(inbox.Groups(waits)) {
			v.Waiting = append(v.Waiting, Waiting{g[0], g[1:]})
		}
		m, err := report.MorningOf(tx, ralph.Time{}, 0)
		if err != nil {
			return err
		}
		v.Morning, v.Merged, v.Failed = m.Lines(), m.Figures.Merged, m.Figures.Failed
		return s.current(tx, &v)
	})
	return v, err
}

// current adds the session in progress.
func (s *Queue) current(tx *store.Tx, v *Snapshot) error {
	open, err := tx.OpenSessions()
	if err != nil {
		return err
	}
	session, ok := ralph.CurrentSession(open)
	for _, l := range v.Parallel {
		if l.Number == s.number {
			if ok = l.Session != nil; ok {
				session = *l.Session
			}
		}
	}
	if !ok || session.Worker == "" && !v.Running {
		return nil // from a lost run
	}
	v.Session = &session
	if v.Task, err = tx.Task(session.TaskID); err != nil {
		return err
	}
	s.windows, err = tx.ContextWindows()
	return err
}

// Read implements [Source].
func (s *Queue) Read(_ context.Context, session string) (entries []transcript.Entry, err error) {
	if session != s.session {
		if err := s.Close(); err != nil {
			return nil, err
		}
		s.session, s.reader, s.skip = session, transcript.NewReader(kinds.NewReader()), false
	}
	if s.file == nil {
		s.file, err = retention.Open(filepath.Join(s.State, "sessions", session, agent.TranscriptFile))
		if errors.Is(err, fs.ErrNotExist) {
			s.file = nil
			return nil, nil // it has not said anything yet
		}
		if err != nil {
			return nil, err
		}
		if entries, err = s.begin(); err != nil {
			return nil, err
		}
	}
	text, err := io.ReadAll(io.LimitReader(s.file, maxWatched))
	if err != nil {
		return nil, err
	}
	if s.skip {
		_, rest, found := bytes.Cut(text, []byte("\n"))
		s.skip, text = !found, rest
	}
	return append(entries, s.reader.Feed(text)...), nil
}

// begin skips the distant past of a long transcript, except for its first line, which contains the
// agent's working directory.
func (s *Queue) begin() ([]transcript.Entry, error) {
	file, ok := s.file.(*os.File)
	if !ok {
		return nil, nil
	}
	info, err := file.Stat()
	if err != nil || info.Size() <= maxWatched {
		return nil, err
	}
	first, err := bufio.NewReader(io.LimitReader(file, maxWatched/2)).ReadBytes('\n')
	switch {
	case errors.Is(err, io.EOF):
		first = nil // too long to be the expected one
	case err != nil:
		return nil, err
	}
	entries := append(s.reader.Feed(first),
		transcript.Entry{Kind: transcript.Note, Text: "… (`ralph session log` has all of it)"})
	if _, err := file.Seek(info.Size()-maxWatched/2, io.SeekStart); err != nil {
		return nil, err
	}
	s.skip = true
	return entries, nil
}

// maxWatched bounds the part of a transcript that is read at a time, so that a screen opens at
// once.
const maxWatched = 4 << 20

// Close closes the transcript.
func (s *Queue) Close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}

// Change implements [Source].
func (s *Queue) Change(ctx context.Context, i store.InboxItem) (string, error) {
	return s.Lines(ctx, i)
}

// Act implements [Source].
func (s *Queue) Act(ctx context.Context, a Action) (string, error) { return s.Do(ctx, a) }
