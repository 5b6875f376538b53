package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"ralph"
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
			err := a.read(cmd.Context(), func(tx *store.Tx) error {
				run, ok, err := tx.LastRun()
				if err != nil {
					return err
				}
				if ok {
					v.Run, v.Running = &run, run.EndedAt.IsZero()
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
			})
			if err != nil {
				return err
			}
			return a.print(v, func(w io.Writer) error { return sayStatus(w, v) })
		},
	}
}

func sayStatus(w io.Writer, v statusView) error {
	switch {
	case v.Run == nil:
		fmt.Fprintln(w, "no run yet")
	case v.Running:
		fmt.Fprintf(w, "running since %s (process %d), %s %s\n", v.Run.StartedAt.Local().Format("Jan 2 15:04"), v.Run.PID, v.Run.State, oneLine(v.Run.StateReason, 200))
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
		fmt.Fprintf(w, "spent %s of %s, %d of %d sessions, %d of %d tasks, %s at most\n", dollars(r.CostUSD), dollars(l.MaxCostUSD),
			r.Sessions, l.MaxSessions, r.Tasks, l.MaxTasks, time.Duration(l.MaxSeconds*float64(time.Second)))
	}
	_, err := fmt.Fprintf(w, "%d waiting for you\n", v.Waiting)
	return err
}
