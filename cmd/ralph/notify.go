package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"ralph/internal/bystander"
	"ralph/internal/notify"
	"ralph/internal/project"
	"ralph/internal/text"
	"ralph/store"
)

func newNotify(a *app) *cobra.Command {
	return newCommand("notify", func(cmd *cobra.Command, _ []string) error {
		return a.with(cmd.Context(), func(p *project.Project, db *store.DB) error {
			n, err := bystander.Notifier(p, db)
			if err != nil {
				return err
			}
			results, err := n.Test(cmd.Context(), time.Now())
			if err != nil {
				return err
			}
			if !p.Blank {
				err = db.Tx(cmd.Context(), func(tx *store.Tx) error { return notify.Delivered(tx, results) })
			}
			return errors.Join(err, a.sayNotified(results))
		})
	})
}

func (a *app) sayNotified(results []notify.TestResult) error {
	failed := 0
	err := a.print(results, func(w io.Writer) {
		if len(results) == 0 {
			fmt.Fprintln(w, "no receivers: set notify in ralph.yaml (docs/events.md)")
		}
		for _, r := range results {
			line := "ok"
			switch {
			case r.Error != "":
				line = "FAILED " + text.Line(r.Error, 400)
			case r.Signed:
				line = "ok, signed"
			}
			fmt.Fprintf(w, "%-40s %s\n", r.Receiver, line)
		}
	})
	for _, r := range results {
		if r.Error != "" {
			failed++
		}
	}
	if err == nil && failed > 0 {
		err = fmt.Errorf("%d of %d receivers did not take it", failed, len(results))
	}
	return err
}
