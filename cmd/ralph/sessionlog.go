package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/follow"
	"ralph/internal/project"
	"ralph/internal/show"
	"ralph/loop/agent"
	"ralph/store"
)

func newSessionLog(a *app) *cobra.Command {
	var raw, on bool
	cmd := newCommand("log [SESSION]", func(cmd *cobra.Command, args []string) error {
		if raw && a.json {
			return usage(errors.New("--raw and --json exclude each other: " +
				"--raw prints the agent's own output, --json ralph's reading of it"))
		}
		s, dir, err := a.sessionOf(cmd, args)
		if err != nil {
			return err
		}
		l := follow.Transcript{
			Path: filepath.Join(dir, agent.TranscriptFile), Printer: show.NewPrinter(a.out, a.screen(), raw, a.json), Out: a.out,
		}
		if on && s.CompletedAt.IsZero() && !onAnotherMachine(s) {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			err = a.with(ctx, func(_ *project.Project, db *store.DB) (err error) {
				s, err = l.Follow(ctx, db, s)
				return err
			})
		} else {
			err = l.Read()
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = noTranscript(s)
		}
		return errors.Join(err, l.End(s))
	})
	cmd.Flags().BoolVar(&raw, "raw", false, "print the agent's own output")
	cmd.Flags().BoolVarP(&on, "follow", "f", false, "go on until the session ends")
	return cmd
}

// noTranscript explains why a session has no transcript.
func noTranscript(s ralph.Session) error {
	if s.Origin == ralph.FromHuman {
		return fmt.Errorf("session %.8s is %s's own, with a chat that ralph does not record; see `ralph timeline %d`: %w",
			s.ID, s.Worker, s.TaskID, ralph.ErrNotFound)
	}
	if onAnotherMachine(s) {
		return isThere(s, "transcript")
	}
	if s.CompletedAt.IsZero() {
		return ralph.Conflict("session %.8s has not begun to speak; follow it with -f", s.ID)
	}
	return fmt.Errorf("the transcript of session %.8s is not there: it ended before the agent was started, "+
		"or it is older than retention in ralph.yaml keeps: %w", s.ID, ralph.ErrNotFound)
}
