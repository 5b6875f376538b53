package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/project"
	"ralph/internal/retention"
	"ralph/internal/show"
	"ralph/loop/agent/claude"
	"ralph/store"
)

func newSessionLog(a *app) *cobra.Command {
	var raw, follow bool
	cmd := newCommand("log [ID]", func(cmd *cobra.Command, args []string) error {
		if raw && a.json {
			return usage(errors.New("--raw and --json exclude each other: " +
				"--raw is what the agent printed, --json what ralph reads in it"))
		}
		s, dir, err := a.sessionOf(cmd, args)
		if err != nil {
			return err
		}
		l := sessionLog{
			app: a, path: filepath.Join(dir, claude.TranscriptFile), printer: show.NewPrinter(a.out, a.screen(), raw, a.json),
		}
		if follow && s.CompletedAt.IsZero() {
			s, err = l.follow(cmd.Context(), s)
		} else {
			err = l.read()
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = noTranscript(s)
		}
		return errors.Join(err, l.end(s))
	})
	cmd.Flags().BoolVar(&raw, "raw", false, "as the agent printed it")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the session ends")
	return cmd
}

// noTranscript says why there is none.
func noTranscript(s ralph.Session) error {
	if s.Origin == ralph.FromHuman {
		return fmt.Errorf("session %.8s is %s's own, with a chat that ralph does not record; see `ralph timeline %d`: %w",
			s.ID, s.Worker, s.TaskID, ralph.ErrNotFound)
	}
	if s.CompletedAt.IsZero() {
		return fmt.Errorf("session %.8s has not begun to speak; follow it with -f: %w", s.ID, ralph.ErrConflict)
	}
	return fmt.Errorf("the transcript of session %.8s is not there: it ended before the agent was started, "+
		"or it is older than retention in ralph.yaml keeps: %w", s.ID, ralph.ErrNotFound)
}

// A sessionLog is a transcript that is being printed.
type sessionLog struct {
	app     *app
	path    string
	file    io.ReadCloser // nil until it is there
	printer show.Printer
}

// read prints what there is. The error is [fs.ErrNotExist] if there is no transcript.
func (l *sessionLog) read() (err error) {
	if l.file == nil {
		if l.file, err = retention.Open(l.path); err != nil {
			l.file = nil
			return err
		}
	}
	_, err = io.Copy(&l.printer, l.file)
	return err
}

// follow prints what comes until the session has ended, nobody reads it any more,
// or the person has seen enough. It returns the session as it is then.
func (l *sessionLog) follow(ctx context.Context, s ralph.Session) (ralph.Session, error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	tick := time.NewTicker(pollFollowed)
	defer tick.Stop()
	return s, l.app.with(ctx, func(_ *project.Project, db *store.DB) error {
		var changed <-chan struct{}
		for {
			if changed == nil {
				changed = db.Changed()
				err := db.View(ctx, func(tx *store.Tx) (err error) { s, err = tx.Session(s.ID); return err })
				if ctx.Err() != nil {
					return nil
				}
				if err != nil {
					return err
				}
			}
			// What was written before it ended is read after that was known.
			err := l.read()
			over := !s.CompletedAt.IsZero()
			if err != nil && (over || !errors.Is(err, fs.ErrNotExist)) || over {
				return err
			}
			select {
			case <-ctx.Done():
				return nil
			case <-changed:
				changed = nil
			case <-tick.C:
				if readerGone(l.app.out) {
					return nil
				}
			}
		}
	})
}

// end prints the last words and what ralph made of the session.
func (l *sessionLog) end(s ralph.Session) error {
	if l.file == nil {
		return nil
	}
	return errors.Join(l.printer.End(s), l.file.Close())
}
