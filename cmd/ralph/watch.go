package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"ralph"
	"ralph/internal/retention"
	"ralph/internal/transcript"
	"ralph/internal/watch"
	"ralph/loop"
	"ralph/loop/agent/claude"
	"ralph/store"
)

func newWatch(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "watch", Short: "Follow what goes on, on a screen from which you can comment, answer, pause and stop",
		Long: `Show the task that is worked on, its phase, what the agent does, what is spent, the
queue and what waits for you, and keep it up to date. ? shows the keys; leaving it
leaves the run alone. Where the output is no terminal, a line is printed for each event,
until Ctrl-C.`,
		Example: "  ralph watch", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.queued(cmd.Context(), func(p *project, db *store.DB) error {
				in, ok := a.in.(*os.File)
				if !ok || !onTerminal(a.out) || !term.IsTerminal(int(in.Fd())) || a.getenv("TERM") == "dumb" {
					return a.watchLines(cmd, db)
				}
				if err := a.refuseInSession(cmd.Context(), "read with `ralph status` and `ralph timeline`"); err != nil {
					return err
				}
				s := &watchSource{app: a, project: p, db: db}
				err := watch.Run(cmd.Context(), s, tea.WithInput(in), tea.WithOutput(a.out), tea.WithEnvironment(a.environ))
				if errors.Is(err, tea.ErrInterrupted) {
					err = nil
				}
				return errors.Join(err, s.close())
			})
		},
	}
}

// watchLines prints a line for each event, beginning with those of the last run.
func (a *app) watchLines(cmd *cobra.Command, db *store.DB) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r := eventReader{db: db, out: a.out, json: a.json}
	if err := db.View(ctx, func(tx *store.Tx) (err error) { r.after, err = tx.BeforeLastRun(); return err }); err != nil {
		return err
	}
	return r.follow(ctx)
}

// A watchSource is what a screen sees of a project.
type watchSource struct {
	app     *app
	project *project
	db      *store.DB

	last    watch.Snapshot // what was read of the database last
	changed <-chan struct{}
	windows map[string]int64 // of models' contexts

	session string
	file    io.ReadCloser
	reader  transcript.Reader
	skip    bool // up to the next line's beginning
}

// watchedTasks is how many tasks of the queue a screen may show.
const watchedTasks = 30

// Look implements watch.Source. The database is read when something has changed in it,
// and each hour: some things wait for a person only after a while.
func (s *watchSource) Look(ctx context.Context) (watch.Snapshot, error) {
	active, err := loop.Active(s.project.state)
	if err != nil {
		return watch.Snapshot{}, err
	}
	now := ralph.At(time.Now())
	if s.unchanged(active, now) {
		s.last.At = now
	} else {
		s.changed = s.db.Changed()
		if s.last, err = s.look(ctx, active); err != nil {
			s.changed = nil
			return watch.Snapshot{}, err
		}
	}
	v := s.last
	if v.Session != nil && v.Session.ID == s.session {
		used, model := s.reader.Context()
		v.ContextUsed, v.ContextSize = used, cmp.Or(s.windows[model], ralph.DefaultContextWindow)
	}
	return v, nil
}

// unchanged reports whether what was seen last is what there is to see.
func (s *watchSource) unchanged(active bool, now ralph.Time) bool {
	select {
	case <-s.changed:
		return false
	default:
		return s.changed != nil && s.last.Running == active &&
			s.last.At.Truncate(time.Hour).Equal(now.Truncate(time.Hour))
	}
}

// look reads what there is to see in the database.
func (s *watchSource) look(ctx context.Context, active bool) (watch.Snapshot, error) {
	v := watch.Snapshot{Project: filepath.Base(s.project.root), Running: active}
	l := limits(s.project.config.Limits)
	err := s.db.View(ctx, func(tx *store.Tx) error {
		v.At = tx.Now()
		run, ok, err := tx.LastRun()
		if err != nil {
			return err
		}
		if ok {
			v.State, v.Reason, v.Until, v.Since, v.Exit = run.State, run.StateReason, run.WaitUntil, run.StartedAt, run.ExitStatus
			v.Sessions, v.CostUSD = run.Sessions, run.CostUSD
			if active {
				l, v.Control = run.Limits, run.Control
			} else {
				v.Reason = run.Reason
			}
		}
		v.MaxSessions, v.MaxCostUSD, v.MaxDayUSD, v.SessionUSD, v.MaxWindow = l.MaxSessions, l.MaxCostUSD, l.MaxDayCostUSD, l.SessionCostUSD, l.Usage
		if v.DayUSD, err = tx.CostSince(loop.Midnight(v.At.Time)); err != nil {
			return err
		}
		if v.Counts, err = tx.Counts(); err != nil {
			return err
		}
		if v.Queue, err = tx.Tasks(store.TaskFilter{Statuses: []ralph.Status{ralph.Pending}, Limit: watchedTasks}); err != nil {
			return err
		}
		if v.Windows, err = tx.UsageWindows(); err != nil {
			return err
		}
		inbox, err := tx.Inbox()
		if err != nil {
			return err
		}
		for _, i := range inbox {
			v.Waiting = append(v.Waiting, watch.Waiting{
				Kind: i.Kind, TaskID: i.TaskID, Comment: i.Comment, Text: i.Text, Command: i.Command,
				Title: i.Title, Options: i.Options, Diff: i.Diff, Expires: i.Expires,
			})
		}
		return s.current(tx, &v)
	})
	return v, err
}

// current adds the session in progress.
func (s *watchSource) current(tx *store.Tx, v *watch.Snapshot) error {
	open, err := tx.OpenSessions()
	if err != nil {
		return err
	}
	session, ok := ralph.CurrentSession(open)
	if !ok || session.Worker == "" && !v.Running {
		return nil // or what a lost run has left
	}
	v.Session = &session
	if v.Task, err = tx.Task(session.TaskID); err != nil {
		return err
	}
	s.windows, err = tx.ContextWindows()
	return err
}

// Read implements watch.Source.
func (s *watchSource) Read(_ context.Context, session string) (entries []transcript.Entry, err error) {
	if session != s.session {
		if err := s.close(); err != nil {
			return nil, err
		}
		s.session, s.reader, s.skip = session, transcript.NewReader(claude.NewReader()), false
	}
	if s.file == nil {
		s.file, err = retention.Open(filepath.Join(s.project.state, "sessions", session, claude.TranscriptFile))
		if errors.Is(err, fs.ErrNotExist) {
			s.file = nil
			return nil, nil // it has not begun to speak
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

// begin skips what is long past in a long transcript, but for its first line, which
// says where the agent works.
func (s *watchSource) begin() ([]transcript.Entry, error) {
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
		first = nil // it is too long to be the one
	case err != nil:
		return nil, err
	}
	entries := append(s.reader.Feed(first), transcript.Entry{Kind: transcript.Note, Text: "… (`ralph session log` has all of it)"})
	if _, err := file.Seek(info.Size()-maxWatched/2, io.SeekStart); err != nil {
		return nil, err
	}
	s.skip = true
	return entries, nil
}

// maxWatched is how much of a transcript is read at a time, so that a screen
// opens at once where it is long.
const maxWatched = 4 << 20

func (s *watchSource) close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}

// Act implements watch.Source: it carries out the command that would be typed.
func (s *watchSource) Act(ctx context.Context, a watch.Action) (string, error) {
	id := strconv.FormatInt(a.ID, 10)
	args := map[string][]string{
		"comment": {"comment", id, "--", a.Text}, "answer": {"answer", id, "--", a.Text},
		"allow": {"permission", "allow", id}, "deny": {"permission", "deny", id},
		"pause": {"pause"}, "resume": {"resume"}, "skip": {"skip"}, "stop": {"stop"},
	}[a.Do]
	if args == nil {
		return "", fmt.Errorf("%q is nothing that can be done", a.Do)
	}
	var said bytes.Buffer
	quiet := *s.app
	quiet.out, quiet.err = &said, &said
	err := quiet.again(ctx, args)
	return strings.TrimSpace(said.String()), err
}
