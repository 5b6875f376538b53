package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/project"
	"ralph/internal/show"
	"ralph/internal/text"
	"ralph/store"
)

func newStop(a *app) *cobra.Command {
	var now bool
	var session string
	cmd := newCommand("stop", func(cmd *cobra.Command, _ []string) error {
		switch {
		case session != "" && now:
			return usage(errors.New("--session stops one session and not the run: leave --now out"))
		case session != "":
			return a.halt(cmd.Context(), session, false)
		case now:
			return a.control(cmd.Context(), ralph.ControlStopNow)
		}
		return a.control(cmd.Context(), ralph.ControlStop)
	})
	cmd.Flags().BoolVar(&now, "now", false, "stop the session in progress too")
	cmd.Flags().StringVar(&session, "session", "",
		"stop this `SESSION` alone; its task goes back to the queue, and the run goes on")
	return cmd
}

func newSkip(a *app) *cobra.Command {
	var session string
	cmd := newCommand("skip", func(cmd *cobra.Command, _ []string) error { return a.halt(cmd.Context(), session, true) })
	cmd.Flags().StringVar(&session, "session", "", "the `SESSION`, if several are running")
	return cmd
}

// halt stops one session: the named or the current one.
func (a *app) halt(ctx context.Context, id string, behind bool) error {
	s, err := alter(ctx, a, func(tx *store.Tx) (ralph.Session, error) { return tx.HaltSession(id, behind, a.person()) })
	if err != nil {
		return err
	}
	check := ""
	if s.Checking != "" {
		check = fmt.Sprintf("; its done was being checked (%s) and does not count", text.Line(s.Checking, 60))
	}
	return a.say(map[string]any{"session_id": s.ID, "task_id": s.TaskID},
		"session %.8s on TASK-%d is being stopped%s; its task goes back to the queue", s.ID, s.TaskID, check)
}

func newPause(a *app) *cobra.Command {
	var merging bool
	var reason string
	cmd := newCommand("pause", func(cmd *cobra.Command, _ []string) error {
		switch {
		case merging:
			why := "by " + a.person()
			if reason != "" {
				why += ": " + reason
			}
			return a.changeMerging(cmd.Context(), func(tx *store.Tx) error { return tx.PauseMerging(why) })
		case reason != "":
			return usage(errors.New("--reason goes with --merging"))
		}
		return a.control(cmd.Context(), ralph.ControlPause)
	})
	cmd.Flags().BoolVar(&merging, "merging", false, "stop merging only; sessions go on")
	cmd.Flags().StringVar(&reason, "reason", "", "with --merging: why, a `TEXT`")
	return cmd
}

func newResume(a *app) *cobra.Command {
	var merging bool
	cmd := newCommand("resume", func(cmd *cobra.Command, _ []string) error {
		if merging {
			return a.changeMerging(cmd.Context(), func(tx *store.Tx) error { return tx.ResumeMerging(a.person()) })
		}
		return a.control(cmd.Context(), ralph.ControlNone)
	})
	cmd.Flags().BoolVar(&merging, "merging", false, "resume merging")
	return cmd
}

// control sends a request to the active run.
func (a *app) control(ctx context.Context, what string) error {
	var open []ralph.Session
	err := a.with(ctx, func(p *project.Project, db *store.DB) (err error) {
		if err = p.Control(ctx, db, what); err == nil {
			open, err = store.Read(ctx, db, (*store.Tx).OpenSessions)
		}
		return err
	})
	if err != nil {
		return err
	}
	said := map[string]string{
		ralph.ControlNone:    "going on",
		ralph.ControlPause:   "pausing" + show.After(open),
		ralph.ControlStop:    "stopping" + show.After(open),
		ralph.ControlStopNow: "stopping now",
	}
	return a.say(map[string]string{"control": what}, "%s", said[what])
}
