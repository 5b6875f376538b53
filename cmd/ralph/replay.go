package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/config"
	"ralph/signals"
	"ralph/store"
)

// A replay is what today's rules decide on a session, beside what was decided.
type replay struct {
	SessionID   string         `json:"session_id"`
	TaskID      int64          `json:"task_id"`
	Then        verdict        `json:"then"`
	Now         verdict        `json:"now"`
	Differences []string       `json:"differences"` // empty if the two come to the same
	Steps       []signals.Step `json:"steps"`       // how the rules come to it now
}

type verdict struct {
	Status ralph.Status `json:"status"`
	Reason string       `json:"reason"`
}

// A comparison is a change of rules over the whole history.
type comparison struct {
	Sessions     int      `json:"sessions"` // that were decided again
	WithoutFacts int      `json:"without_facts"`
	Different    []replay `json:"different"`
}

func newReplay(a *app) *cobra.Command {
	var everything bool
	cmd := &cobra.Command{
		Use: "replay [SESSION]", Short: "Show what today's rules decide on a recorded session, without effects",
		Long: `Decide on a settled session again, the newest if none is named, from the facts that were recorded with it,
and say rule by rule how the decision comes about. Nothing is changed.

The limits (stuck_limit, max_verify_failures, …) are those of ralph.yaml today, so
that a change of them can be tried on the past: --all decides on every session
again and lists those that would end differently.

What was known of learnings is read as it is now, of those that are older than
the session's end. What the verification said is not run again.`,
		Example: "  ralph replay\n  ralph replay bcb16b43\n  ralph replay --all",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if everything && len(args) > 0 {
				return usage(errors.New("--all is of every session: leave out the id"))
			}
			return a.with(cmd.Context(), func(p *project, db *store.DB) error {
				rules := rulesOf(p.config.Config)
				if everything {
					return a.replayAll(cmd, db, rules)
				}
				var s ralph.Session
				var r replay
				if err := db.View(cmd.Context(), func(tx *store.Tx) (err error) {
					if s, err = sessionNamed(tx, args); err != nil {
						return err
					}
					r, err = replayed(tx, s, rules)
					return err
				}); err != nil {
					return err
				}
				return a.print(r, func(w io.Writer) error { return sayReplay(w, s, r) })
			})
		},
	}
	cmd.Flags().BoolVar(&everything, "all", false, "decide on every settled session, and list those that would end differently")
	return cmd
}

// rulesOf are the numbers of the rules that a configuration sets.
func rulesOf(c config.Config) signals.Rules {
	r := signals.Rules{
		StuckLimit: c.StuckLimit, VerifyFailures: c.MaxVerifyFailures, Attempts: c.Limits.Attempts,
		ReviewProtect: c.Verify.ProtectMode == "review",
	}
	if c.Suggestions == "auto_approve" {
		r.AutoApprove = c.AutoApproveMax
	}
	return r
}

func replayed(tx *store.Tx, s ralph.Session, rules signals.Rules) (replay, error) {
	f, then, err := tx.Replayed(s)
	if err != nil {
		return replay{}, err
	}
	f.Rules = rules
	now := signals.Decide(f)
	return replay{
		SessionID: s.ID, TaskID: s.TaskID,
		Then: verdict{then.Status, then.StatusReason}, Now: verdict{now.Status, now.StatusReason},
		Differences: append([]string{}, signals.Differences(then, now)...), Steps: signals.Explain(f, now),
	}, nil
}

func sayReplay(w io.Writer, s ralph.Session, r replay) error {
	fmt.Fprintf(w, "session %.8s on TASK-%d, attempt %d, settled %s\n\n", s.ID, s.TaskID, s.Attempt, s.CompletedAt.Local().Format("2006-01-02 15:04"))
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
		fmt.Fprintf(w, "%-11s %s\n", name, oneLine(step.Text, 500))
	}
	if len(r.Differences) == 0 {
		_, err := fmt.Fprintln(w, "\nToday's rules decide as was decided then.")
		return err
	}
	fmt.Fprintf(w, "\nThen it was %s: %s\nToday's rules decide differently:\n", r.Then.Status, oneLine(r.Then.Reason, 500))
	return sayDifferences(w, r)
}

func sayDifferences(w io.Writer, r replay) error {
	for _, d := range r.Differences {
		if _, err := fmt.Fprintf(w, "  %s\n", oneLine(d, 500)); err != nil {
			return err
		}
	}
	return nil
}

// replayPage is how many sessions are read at a time.
const replayPage = 200

func (a *app) replayAll(cmd *cobra.Command, db *store.DB, rules signals.Rules) error {
	all := comparison{Different: []replay{}}
	var last ralph.Session
	for {
		var page []ralph.Session
		if err := db.View(cmd.Context(), func(tx *store.Tx) (err error) {
			if page, err = tx.Settled(last, replayPage); err != nil {
				return err
			}
			for _, s := range page {
				if err := all.add(tx, s, rules); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
		if len(page) < replayPage {
			break
		}
		last = page[len(page)-1]
	}
	return a.print(all, func(w io.Writer) error {
		for _, r := range all.Different {
			fmt.Fprintf(w, "session %.8s on TASK-%d\n", r.SessionID, r.TaskID)
			if err := sayDifferences(w, r); err != nil {
				return err
			}
		}
		fmt.Fprintf(w, "%d sessions decided again: %d as then, %d differently\n", all.Sessions, all.Sessions-len(all.Different), len(all.Different))
		if all.WithoutFacts > 0 {
			fmt.Fprintf(w, "%d more were settled before ralph kept what decisions are made from\n", all.WithoutFacts)
		}
		return nil
	})
}

func (c *comparison) add(tx *store.Tx, s ralph.Session, rules signals.Rules) error {
	r, err := replayed(tx, s, rules)
	switch {
	case errors.Is(err, store.ErrNoFacts):
		c.WithoutFacts++
		return nil
	case err != nil:
		return err
	}
	c.Sessions++
	if len(r.Differences) > 0 {
		c.Different = append(c.Different, r)
	}
	return nil
}
