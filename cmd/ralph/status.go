package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/loop"
	"ralph/store"
)

// statusView is what `ralph status --json` prints.
type statusView struct {
	Running  bool                 `json:"running"`
	Run      *ralph.Run           `json:"run"`      // the latest one, null if there never was one
	Sessions []ralph.Session      `json:"sessions"` // those in progress
	Counts   map[ralph.Status]int `json:"counts"`
	Waiting  int                  `json:"waiting_for_people"`
	Agent    string               `json:"agent_wait"` // why no session starts now, "" if one may
	Until    ralph.Time           `json:"agent_wait_until"`
}

func newStatus(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Say what is going on", Example: "  ralph status --json", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var v statusView
			var now ralph.Time
			look := func(tx *store.Tx) error {
				now = tx.Now()
				run, ok, err := tx.LastRun()
				if err != nil {
					return err
				}
				if ok {
					v.Run = &run
				}
				if v.Sessions, err = tx.OpenSessions(); err != nil {
					return err
				}
				if v.Counts, err = tx.Counts(); err != nil {
					return err
				}
				inbox, err := tx.Inbox()
				v.Waiting = len(inbox)
				if err != nil {
					return err
				}
				agent, err := tx.AgentState()
				if agent.WaitUntil.After(tx.Now().Time) {
					v.Agent, v.Until = agent.Reason, agent.WaitUntil
				}
				return err
			}
			err := a.with(cmd.Context(), func(p *project, db *store.DB) error {
				if err := db.View(cmd.Context(), look); err != nil {
					return err
				}
				active, err := loop.Active(p.state)
				v.Running = active && v.Run != nil && v.Run.EndedAt.IsZero()
				return err
			})
			if err != nil {
				return err
			}
			return a.print(v, func(w io.Writer) error { return sayStatus(w, v, now) })
		},
	}
}

func sayStatus(w io.Writer, v statusView, now ralph.Time) error {
	switch {
	case v.Run == nil:
		fmt.Fprintln(w, "no run yet")
	case v.Running:
		fmt.Fprintf(w, "running since %s (process %d), %s %s\n", v.Run.StartedAt.Local().Format("Jan 2 15:04"), v.Run.PID, v.Run.State, oneLine(v.Run.StateReason, 200))
		if until := v.Run.WaitUntil; !until.IsZero() {
			fmt.Fprintf(w, "waits until %s\n", until.Local().Format("Jan 2 15:04:05"))
		}
	case v.Run.EndedAt.IsZero():
		fmt.Fprintf(w, "not running; the last run (process %d) was lost: `ralph run` takes up what it left\n", v.Run.PID)
	default:
		fmt.Fprintf(w, "not running; the last run ended %s: %s\n", v.Run.EndedAt.Local().Format("Jan 2 15:04"), oneLine(v.Run.Reason, 200))
	}
	for _, s := range v.Sessions {
		fmt.Fprintf(w, "on TASK-%d since %s (session %.8s)\n", s.TaskID, s.StartedAt.Local().Format("15:04:05"), s.ID)
	}
	if v.Agent != "" {
		fmt.Fprintf(w, "no session before %s: %s\n", v.Until.Local().Format("Jan 2 15:04:05"), oneLine(v.Agent, 200))
	}
	for _, s := range ralph.Statuses {
		if n := v.Counts[s]; n > 0 {
			fmt.Fprintf(w, "%6d %s\n", n, s)
		}
	}
	if r := v.Run; r != nil {
		l := r.Limits
		fmt.Fprintf(w, "spent %s of %s, %d of %d sessions, %d of %d tasks, %s of %s\n", dollars(r.CostUSD), dollars(l.MaxCostUSD),
			r.Sessions, l.MaxSessions, r.Tasks, l.MaxTasks, took(*r, v.Running, now), time.Duration(l.MaxSeconds*float64(time.Second)))
	}
	_, err := fmt.Fprintf(w, "%d waiting for you\n", v.Waiting)
	return err
}

// took is how long a run has lasted; of a lost one nobody knows.
func took(r ralph.Run, running bool, now ralph.Time) string {
	end := r.EndedAt
	switch {
	case running:
		end = now
	case end.IsZero():
		return "an unknown time"
	}
	return end.Sub(r.StartedAt.Time).Round(time.Second).String()
}
