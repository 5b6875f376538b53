package store

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"ralph"
)

const runColumns = `
	r.id, r.pid, r.started_at, r.ended_at, r.control, r.state, r.state_reason, r.wait_until, r.limits, r.sessions,
	(SELECT count(DISTINCT s.task_id) FROM sessions s WHERE s.run_id = r.id), r.cost_usd, r.exit_status, r.reason`

func scanRun(row scanner) (ralph.Run, error) {
	var r ralph.Run
	err := row.Scan(&r.ID, &r.PID, &r.StartedAt, &r.EndedAt, &r.Control, &r.State, &r.StateReason, &r.WaitUntil, column(&r.Limits),
		&r.Sessions, &r.Tasks, &r.CostUSD, &r.ExitStatus, &r.Reason)
	return r, err
}

// StartRun opens a run. The caller holds the project's lock, so an older run
// that has no end was lost; it is given one.
func (tx *Tx) StartRun(pid int, limits ralph.Limits) (ralph.Run, error) {
	lost, err := all(tx, scanID, `SELECT id FROM runs WHERE ended_at = '' ORDER BY id`)
	if err != nil {
		return ralph.Run{}, err
	}
	for _, id := range lost {
		if err := tx.EndRun(id, ralph.ExitFailure, "its process was lost"); err != nil {
			return ralph.Run{}, err
		}
	}
	text, err := text(limits)
	if err != nil {
		return ralph.Run{}, err
	}
	id, err := tx.insert(`INSERT INTO runs (pid, started_at, limits) VALUES ($1, $2, $3) RETURNING id`, pid, tx.now.String(), text)
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
	r, err := scanRun(tx.row(`SELECT `+runColumns+` FROM runs r WHERE r.id = $1`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return r, fmt.Errorf("run %d: %w", id, ralph.ErrNotFound)
	}
	return r, err
}

// Runs lists runs, newest first: limit of them, without the newest skip.
func (tx *Tx) Runs(limit, skip int) ([]ralph.Run, error) {
	return all(tx, scanRun, `SELECT `+runColumns+` FROM runs r ORDER BY r.id DESC LIMIT $1 OFFSET $2`, limit, skip)
}

// LastRun is the newest run; ok is false if there never was one.
func (tx *Tx) LastRun() (r ralph.Run, ok bool, err error) {
	r, err = scanRun(tx.row(`SELECT ` + runColumns + ` FROM runs r ORDER BY r.id DESC LIMIT 1`))
	if errors.Is(err, sql.ErrNoRows) {
		return r, false, nil
	}
	return r, err == nil, err
}

// SetRunState notes what a run is doing; a wait and a pause are events.
func (tx *Tx) SetRunState(id int64, state, reason string, until time.Time) error {
	if _, err := tx.exec(`UPDATE runs SET state = $1, state_reason = $2, wait_until = $3 WHERE id = $4`,
		state, reason, ralph.At(until).String(), id); err != nil || state != "waiting" && state != "paused" {
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
	return control, tx.row(`SELECT control FROM runs WHERE id = $1`, id).Scan(&control)
}

// EndRun closes a run.
func (tx *Tx) EndRun(id int64, exitStatus int, reason string) error {
	if _, err := tx.exec(`UPDATE runs SET ended_at = $1, state = 'ended', control = '', wait_until = '', exit_status = $2, reason = $3 WHERE id = $4`,
		tx.now.String(), exitStatus, reason, id); err != nil {
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
	err = tx.row(`SELECT wait_until, reason, failures FROM agent_state WHERE id = 1`).Scan(&a.WaitUntil, &a.Reason, &a.Failures)
	return a, err
}

// SetAgentState writes it.
func (tx *Tx) SetAgentState(a AgentState) error {
	_, err := tx.exec(`UPDATE agent_state SET wait_until = $1, reason = $2, failures = $3 WHERE id = 1`, a.WaitUntil.String(), a.Reason, a.Failures)
	return err
}
