package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/loop"
	"ralph/store"
)

func newStop(a *app) *cobra.Command {
	var now bool
	var session string
	cmd := control(a, "stop", "End the run after the session in progress", func() string {
		if now {
			return ralph.ControlStopNow
		}
		return ralph.ControlStop
	})
	cmd.Example = "  ralph stop\n  ralph stop --session bcb16b43"
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case session == "":
			return run(cmd, args)
		case now:
			return usage(errors.New("--session stops one session and not the run: leave --now out"))
		}
		return a.halt(cmd, session, false)
	}
	cmd.Flags().BoolVar(&now, "now", false, "stop the session in progress too")
	cmd.Flags().StringVar(&session, "session", "", "stop this `SESSION` alone; its task goes back to the queue, and the run goes on")
	return cmd
}

func newSkip(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "skip", Short: "Stop the session in progress, and go on with another task",
		Long: `Stop the session in progress. Its work stays, its task goes back to the queue behind
all others of its priority, and the run goes on. It counts as no attempt.`,
		Example: "  ralph skip", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.halt(cmd, "", true) },
	}
}

// halt stops one session: the one that is named, or the current one.
func (a *app) halt(cmd *cobra.Command, id string, behind bool) error {
	var s ralph.Session
	err := a.write(cmd.Context(), func(tx *store.Tx) (err error) {
		s, err = tx.HaltSession(id, behind, a.person())
		return err
	})
	if err != nil {
		return err
	}
	return a.print(map[string]any{"session_id": s.ID, "task_id": s.TaskID}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "session %.8s on TASK-%d is being stopped; its task goes back to the queue\n", s.ID, s.TaskID)
		return err
	})
}

func newPause(a *app) *cobra.Command {
	return control(a, "pause", "Start no further session until `ralph resume`", func() string { return ralph.ControlPause })
}

func newResume(a *app) *cobra.Command {
	return control(a, "resume", "Go on after `ralph pause`", func() string { return ralph.ControlNone })
}

func control(a *app, use, short string, what func() string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: "  ralph " + use, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := a.with(cmd.Context(), func(p *project, db *store.DB) error { return p.control(cmd.Context(), db, what()) })
			if err != nil {
				return err
			}
			return a.print(map[string]string{"control": what()}, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s: the run has been told\n", use)
				return err
			})
		},
	}
}

// control asks something of the run that is active; the error wraps
// [ralph.ErrConflict] if there is none.
func (p *project) control(ctx context.Context, db *store.DB, what string) error {
	active, err := loop.Active(p.state)
	if err != nil {
		return err
	}
	if !active {
		return fmt.Errorf("no run is active: %w", ralph.ErrConflict)
	}
	return db.Tx(ctx, func(tx *store.Tx) error { return tx.Control(what) })
}
