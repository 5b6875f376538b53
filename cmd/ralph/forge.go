package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/config"
	"ralph/internal/project"
	"ralph/store"
)

// errNoForge means that the project follows no forge.
var errNoForge = ralph.Usage(errors.New("this project follows no forge: set forge.label or merge.mode: pr in " +
	"ralph.yaml (docs/howto/forge.md)"))

func newForge(a *app) *cobra.Command {
	cmd := newCommand("forge", func(cmd *cobra.Command, _ []string) error {
		return a.with(cmd.Context(), func(p *project.Project, db *store.DB) error {
			if err := p.KeepMode(cmd.Context(), db); err != nil {
				return err
			}
			if !p.Forges() {
				return errNoForge
			}
			st, _, err := p.Forge()
			if err != nil {
				return err
			}
			return a.print(st, func(w io.Writer) { fmt.Fprintln(w, p.ForgeLine(time.Now())) })
		})
	})
	cmd.AddCommand(newForgeSync(a))
	return cmd
}

func newForgeSync(a *app) *cobra.Command {
	var once bool
	cmd := newCommand("sync", func(cmd *cobra.Command, _ []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		return a.begin(ctx, func(p *project.Project, db *store.DB) error {
			if err := p.KeepMode(ctx, db); err != nil {
				return err
			}
			if !p.Forges() {
				return errNoForge
			}
			s, err := p.Syncer(ctx, db, nil)
			if err != nil {
				return err
			}
			if !once {
				s.Run(ctx, ctx.Done(), config.Fixed.NotifyDrain)
				return nil
			}
			if err := s.Once(ctx); err != nil {
				return err
			}
			st, _, err := p.Forge()
			if err != nil {
				return err
			}
			return a.print(st, func(w io.Writer) { fmt.Fprintln(w, p.ForgeLine(time.Now())) })
		})
	})
	cmd.Flags().BoolVar(&once, "once", false, "look once and end, instead of once a minute")
	return cmd
}
