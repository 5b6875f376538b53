package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"ralph/internal/follow"
	"ralph/internal/inbox"
	"ralph/internal/project"
	"ralph/internal/term"
	"ralph/internal/watch"
	"ralph/store"
)

func newWatch(a *app) *cobra.Command {
	return newCommand("watch", func(cmd *cobra.Command, _ []string) error {
		return a.queued(cmd.Context(), func(p *project.Project, db *store.DB) error {
			if !term.Is(a.out) || !term.Is(a.in) || a.getenv("TERM") == "dumb" {
				return a.watchLines(cmd, db)
			}
			if err := a.refuseInSession(cmd.Context(), "read with `ralph status` and `ralph timeline`"); err != nil {
				return err
			}
			s := &watch.Queue{
				Store: db, Project: p.Name(), State: p.State, Limits: p.Limits(), Do: a.act,
				Forge: func() string { return p.ForgeLine(time.Now()) },
				Lines: func(ctx context.Context, i store.InboxItem) (string, error) {
					var lines strings.Builder
					plain := *a
					plain.out = &lines
					err := plain.showReviewed(ctx, &lines, i)
					return lines.String(), err
				},
			}
			err := watch.Run(cmd.Context(), s, a.in.(*os.File), a.out.(*os.File), a.environ)
			return errors.Join(err, s.Close())
		})
	})
}

// watchLines prints a line for each event, starting with those of the last run, until no run is
// active.
func (a *app) watchLines(cmd *cobra.Command, db *store.DB) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	from, err := store.Read(ctx, db, (*store.Tx).BeforeLastRun)
	if err != nil {
		return err
	}
	r := follow.Events{Store: db, Out: a.out, JSON: a.json, After: from, Over: func(ctx context.Context) (bool, error) {
		return store.Read(ctx, db, func(tx *store.Tx) (bool, error) {
			works, err := tx.AnyAlive()
			return !works, err
		})
	}}
	return r.Follow(ctx)
}

// act runs the command that corresponds to a person's action on the screen.
func (a *app) act(ctx context.Context, what watch.Action) (string, error) {
	commands := what.Commands
	switch what.Do {
	case "comment":
		commands = [][]string{{"comment", strconv.FormatInt(what.ID, 10), "--", what.Text}}
	case "skip":
		commands = [][]string{{"skip", "--session", what.Text}}
	case "pause", "resume", "stop":
		commands = [][]string{{what.Do}}
	}
	var said bytes.Buffer
	quiet := *a
	quiet.out, quiet.err = &said, &said
	for _, args := range commands {
		if what.Do == "decide" {
			list, err := look(ctx, a, inbox.All)
			if err == nil {
				err = inbox.Stale(list, args)
			}
			if err != nil {
				return "", err
			}
		}
		if err := quiet.again(ctx, args); err != nil {
			return "", err
		}
	}
	return strings.TrimSpace(said.String()), nil
}
