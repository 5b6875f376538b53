package store

import (
	"fmt"
	"time"

	"ralph"
)

var runs = reads("runs r", func(r *ralph.Run) []field {
	return []field{
		{"r.id", &r.ID},
		{"r.pid", &r.PID},
		{"r.started_at", &r.StartedAt},
		{"r.ended_at", &r.EndedAt},
		{"r.control", &r.Control},
		{"r.state", &r.State},
		{"r.state_reason", &r.StateReason},
		{"r.wait_until", &r.WaitUntil},
		{"r.limits", column(&r.Limits)},
		{"r.sessions", &r.Sessions},
		{"(SELECT count(DISTINCT s.task_id) FROM sessions s WHERE s.run_id = r.id)", &r.Tasks},
		{"r.cost_usd", &r.CostUSD},
		{"r.exit_status", &r.ExitStatus},
		{"r.reason", &r.Reason},
	}
})

// StartRun opens a run. The caller holds the project's lock, so an older run
// that has no end was lost; it is given one.
func (tx *Tx) StartRun(pid int, limits ralph.Limits) (ralph.Run, error) {
	lost, err := values[int64](tx, `SELECT id FROM runs WHERE ended_at = '' ORDER BY id`)
	if err != nil {
		return ralph.Run{}, err
	}
	for _, id := range lost {
		if err := tx.EndRun(id, ralph.ExitFailure, "its process was lost"); err != nil {
			return ralph.Run{}, err
		}
	}
	id, err := tx.add("runs", cells{"pid": pid, "started_at": tx.now, "limits": asJSON(limits)})
	if err != nil {
		return ralph.Run{}, err
	}
	if err := tx.record(ralph.Event{RunID: id}, ralph.RunStarted{PID: pid, Limits: limits}); err != nil {
		return ralph.Run{}, err
	}
	return tx.Run(id)
}

// Run is one run.
func (tx *Tx) Run(id int64) (ralph.Run, error) {
	return runs.one(tx, fmt.Sprintf("run %d", id), `WHERE r.id = $1`, id)
}

// Runs lists runs, newest first: limit of them, without the newest skip.
func (tx *Tx) Runs(limit, skip int) ([]ralph.Run, error) {
	return runs.all(tx, `ORDER BY r.id DESC LIMIT $1 OFFSET $2`, limit, skip)
}

// LastRun is the newest run; ok is false if there never was one.
func (tx *Tx) LastRun() (r ralph.Run, ok bool, err error) {
	return runs.first(tx, `ORDER BY r.id DESC`)
}

// SetRunState notes what a run is doing; a wait and a pause are events.
func (tx *Tx) SetRunState(id int64, state, reason string, until time.Time) error {
	err := tx.set("runs", id, cells{"state": state, "state_reason": reason, "wait_until": ralph.At(until)})
	if err != nil || state != "waiting" && state != "paused" {
		return err
	}
	// Windows of the day are waited for too: only the agent's unavailability is news.
	agent, err := tx.AgentState()
	if err != nil {
		return err
	}
	return tx.record(ralph.Event{RunID: id}, ralph.RunWaiting{
		State: state, Reason: reason, Until: ralph.At(until),
		Agent: !until.IsZero() && agent.WaitUntil.Equal(ralph.At(until).Time),
	})
}

// Control asks something of the run that has not ended: one of ralph.Control….
// The error wraps [ralph.ErrConflict] if there is none.
func (tx *Tx) Control(control string) error {
	n, err := tx.exec(`UPDATE runs SET control = $1 WHERE ended_at = ''`, control)
	if err == nil && n == 0 {
		return fmt.Errorf("no run is active: %w", ralph.ErrConflict)
	}
	return err
}

// RunControl is what people ask of a run.
func (tx *Tx) RunControl(id int64) (control string, err error) {
	return value[string](tx, `SELECT control FROM runs WHERE id = $1`, id)
}

// EndRun closes a run.
func (tx *Tx) EndRun(id int64, exitStatus int, reason string) error {
	if err := tx.set("runs", id, cells{
		"ended_at": tx.now, "state": "ended", "control": "", "wait_until": "", "exit_status": exitStatus, "reason": reason,
	}); err != nil {
		return err
	}
	r, err := tx.Run(id)
	if err != nil {
		return err
	}
	return tx.record(ralph.Event{RunID: id}, ralph.RunEnded{
		ExitStatus: exitStatus, Reason: reason, Sessions: r.Sessions, Tasks: r.Tasks, CostUSD: r.CostUSD,
	})
}

// AgentState is what is known of the agent across runs: until when no session
// should be started, why, and how many errors there were in a row.
type AgentState struct {
	WaitUntil ralph.Time
	Reason    string
	Failures  int
}

// AgentState reads it.
func (tx *Tx) AgentState() (a AgentState, err error) {
	return a, tx.row(`SELECT wait_until, reason, failures FROM agent_state WHERE id = 1`).
		Scan(&a.WaitUntil, &a.Reason, &a.Failures)
}

// SetAgentState writes it.
func (tx *Tx) SetAgentState(a AgentState) error {
	return tx.set("agent_state", 1, cells{"wait_until": a.WaitUntil, "reason": a.Reason, "failures": a.Failures})
}
