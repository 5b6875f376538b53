package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/project"
	"ralph/internal/replay"
	"ralph/internal/show"
	"ralph/internal/text"
	"ralph/store"
)

func newReplay(a *app) *cobra.Command {
	var everything bool
	cmd := newCommand("replay [SESSION]", func(cmd *cobra.Command, args []string) error {
		if everything && len(args) > 0 {
			return usage(errors.New("--all is of every session: leave out the id"))
		}
		return a.with(cmd.Context(), func(p *project.Project, db *store.DB) error {
			if everything {
				all, err := replay.All(cmd.Context(), db, p.Rules())
				if err != nil {
					return err
				}
				return a.print(all, func(w io.Writer) { sayComparison(w, all) })
			}
			var s ralph.Session
			var r replay.Replay
			err := db.View(cmd.Context(), func(tx *store.Tx) (err error) {
				if s, err = sessionNamed(tx, args); err == nil {
					r, err = replay.Session(tx, s, p.Rules())
				}
				return err
			})
			if err != nil {
				return err
			}
			return a.print(r, func(w io.Writer) { sayReplay(w, s, r) })
		})
	})
	cmd.Flags().BoolVar(&everything, "all", false,
		"decide again on every session, and list those that would end differently")
	return cmd
}

func sayReplay(w io.Writer, s ralph.Session, r replay.Replay) {
	fmt.Fprintf(w, "session %.8s on TASK-%d, attempt %d, decided %s\n\n",
		s.ID, s.TaskID, s.Attempt, show.Minute(s.CompletedAt.Time))
	last := ""
	for _, step := range r.Steps {
		name := step.Rule
		if len(name) == 1 {
			name = "rule " + name
		}
		if name == last {
			name = ""
		} else {
			last = name
		}
		fmt.Fprintf(w, "%-11s %s\n", name, text.Line(step.Text, 500))
	}
	if len(r.Differences) == 0 {
		fmt.Fprintln(w, "\nToday's rules decide as was decided then.")
		return
	}
	fmt.Fprintf(w, "\nThen it was %s: %s\nToday's rules decide differently:\n",
		r.Then.Status, text.Line(r.Then.Reason, 500))
	sayDifferences(w, r)
}

func sayDifferences(w io.Writer, r replay.Replay) {
	for _, d := range r.Differences {
		fmt.Fprintf(w, "  %s\n", text.Line(d, 500))
	}
}

func sayComparison(w io.Writer, all replay.Comparison) {
	for _, r := range all.Different {
		fmt.Fprintf(w, "session %.8s on TASK-%d\n", r.SessionID, r.TaskID)
		sayDifferences(w, r)
	}
	fmt.Fprintf(w, "%d sessions decided again: %d as then, %d differently\n",
		all.Sessions, all.Sessions-len(all.Different), len(all.Different))
	if all.WithoutFacts > 0 {
		fmt.Fprintf(w, "%d more were decided before ralph kept what decisions are made from\n", all.WithoutFacts)
	}
}
