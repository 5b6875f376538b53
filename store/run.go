package store

import (
	"fmt"
	"os"
	"slices"
	"time"

	"ralph"
	"ralph/internal/machine"
)

var runRows = reads("runs r", func(r *ralph.Run) []field {
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
		{"r.idle", &r.Idle},
		{"r.sandbox", &r.Sandbox},
		{"r.sessions", &r.Sessions},
		{"(SELECT count(DISTINCT s.task_id) FROM sessions s WHERE s.run_id = r.id)", &r.Tasks},
		{"r.cost_usd", &r.CostUSD},
		{"NOT EXISTS (SELECT 1 FROM sessions u WHERE u.run_id = r.id " +
			"AND u.cost_known = 0 AND u.completed_at <> '')", &r.CostKnown},
		{"(SELECT coalesce(sum(t.tokens_input + t.tokens_output + t.tokens_cache_read + t.tokens_cache_creation), 0) " +
			"FROM sessions t WHERE t.run_id = r.id)", &r.Tokens},
		{"r.exit_status", &r.ExitStatus},
		{"r.reason", &r.Reason},
		{"r.machine", &r.Machine},
		{"r.process", &r.Process},
		{"r.lease_until", &r.LeaseUntil},
	}
})

// StartRun opens a run of this machine, after ending its lost runs. process is the run's identity by [machine.Join].
// sandbox describes the sandbox of the run's agents. The error wraps [ralph.ErrConflict] if the machine is drained.
func (tx *Tx) StartRun(process string, limits ralph.Limits, sandbox string) (ralph.Run, error) {
	if err := tx.ClearTrouble(TroubleRun); err != nil {
		return ralph.Run{}, err
	}
	if err := tx.EndLostRuns(); err != nil {
		return ralph.Run{}, err
	}
	if err := tx.enlist(machine.Name()); err != nil {
		return ralph.Run{}, err
	}
	pid := os.Getpid()
	id, err := tx.add("runs", cells{
		"pid": pid, "machine": machine.Name(), "process": process, "lease_until": ralph.At(tx.Now().Add(LeaseTime)),
		"started_at": tx.Now(), "limits": asJSON(limits), "sandbox": sandbox,
	})
	if err != nil {
		return ralph.Run{}, err
	}
	if err := tx.record(ralph.Event{RunID: id}, ralph.RunStarted{PID: pid, Limits: limits}); err != nil {
		return ralph.Run{}, err
	}
	return tx.Run(id)
}

// RunElsewhere returns a run that works on another machine; ok is false if there is none.
func (tx *Tx) RunElsewhere() (r ralph.Run, ok bool, err error) {
	list, err := runRows.all(tx, `WHERE r.ended_at = '' AND r.machine <> $1 ORDER BY r.id`, machine.Name())
	for _, r := range list {
		if tx.Alive(r) {
			return r, true, err
		}
	}
	return r, false, err
}

// AnyAlive reports whether a run works on any machine.
func (tx *Tx) AnyAlive() (bool, error) {
	open, err := runRows.all(tx, `WHERE r.ended_at = ''`)
	return slices.ContainsFunc(open, tx.Alive), err
}

// Run returns one run.
func (tx *Tx) Run(id int64) (ralph.Run, error) {
	return runRows.one(tx, fmt.Sprintf("run %d", id), ralph.ReportRun, `WHERE r.id = $1`, id)
}

// Runs lists limit runs, newest first, after the newest skip: runs that have not ended, or that ended at or after a
// time; all if it is zero.
func (tx *Tx) Runs(active ralph.Time, limit, skip int) ([]ralph.Run, error) {
	var by filter
	if !active.IsZero() {
		by.and("(r.ended_at = '' OR r.ended_at >= ?)", active)
	}
	return runRows.all(tx, by.where()+` ORDER BY r.id DESC`+by.page(limit, skip), by.args...)
}

// LastRunHere returns the newest run of this machine; ok is false if there was none.
func (tx *Tx) LastRunHere() (r ralph.Run, ok bool, err error) {
	return runRows.first(tx, `WHERE r.machine = $1 ORDER BY r.id DESC`, machine.Name())
}

// ends reads only when a run worked and how it ended, without sums over its sessions.
var ends = reads("runs r", func(r *ralph.Run) []field {
	return []field{
		{"r.id", &r.ID},
		{"r.started_at", &r.StartedAt},
		{"r.ended_at", &r.EndedAt},
		{"r.exit_status", &r.ExitStatus},
		{"r.reason", &r.Reason},
	}
})

// RunEnds lists limit runs that had a session or merged something, newest first: when each worked and how it ended,
// and nothing else.
func (tx *Tx) RunEnds(limit int) ([]ralph.Run, error) {
	return ends.all(tx, `WHERE EXISTS (SELECT 1 FROM sessions s WHERE s.run_id = r.id)
		OR EXISTS (SELECT 1 FROM changes c WHERE c.merged_run = r.id) ORDER BY r.id DESC LIMIT $1`, limit)
}

// LastWorkedRun returns the run that works, else the newest one that had a session or merged something, else
// [Tx.LastRun].
func (tx *Tx) LastWorkedRun() (r ralph.Run, ok bool, err error) {
	r, ok, err = tx.LastRun()
	if err != nil || !ok || tx.Alive(r) {
		return r, ok, err
	}
	worked, err := tx.RunEnds(1)
	if err != nil || len(worked) == 0 || r.EndedAt.IsZero() {
		return r, ok, err
	}
	r, err = tx.Run(worked[0].ID)
	return r, true, err
}

// LastRun returns the newest run that works, else the newest one that has not ended, else the newest one; ok is false
// if there was none.
func (tx *Tx) LastRun() (r ralph.Run, ok bool, err error) {
	open, err := runRows.all(tx, `WHERE r.ended_at = '' ORDER BY r.id DESC`)
	if i := slices.IndexFunc(open, tx.Alive); i >= 0 {
		return open[i], true, err
	}
	if err != nil || len(open) > 0 {
		return append(open, r)[0], len(open) > 0, err
	}
	return runRows.first(tx, `ORDER BY r.id DESC`)
}

// SetRunState records a run's state; waiting, pausing and ending are recorded as events.
func (tx *Tx) SetRunState(id int64, state, reason string, until time.Time) error {
	err := tx.set("runs", id, cells{"state": state, "state_reason": reason, "wait_until": ralph.At(until)})
	if err != nil || state != "waiting" && state != "paused" && state != "ending" {
		return err
	}
	// Waiting for a daily window is not news; waiting for an agent is.
	resting, err := tx.Resting()
	if err != nil {
		return err
	}
	forAgent := func(a AgentState) bool { return a.WaitUntil.Equal(ralph.At(until).Time) }
	return tx.record(ralph.Event{RunID: id}, ralph.RunWaiting{
		State: state, Reason: reason, Until: ralph.At(until),
		Agent: !until.IsZero() && slices.ContainsFunc(resting, forAgent),
	})
}

// SetIdle records why a run has fewer sessions than it may have; "" if it has all.
func (tx *Tx) SetIdle(id int64, why string) error {
	return tx.do(`UPDATE runs SET idle = $1 WHERE id = $2 AND idle <> $1`, why, id)
}

// Spending counts towards the limits of a run.
type Spending struct {
	Sessions              int     // of this run, begun since its limits count, without reviews
	Open                  int     // of this run, in progress, without reviews
	USD, DayUSD           float64 // cost of ended sessions: of this run since its limits count; of all runs since midnight
	MonthUSD              float64 // of all runs since the month began
	Reserved, DayReserved float64 // limit of the cost of sessions in progress: of this run; of all runs
	Unpriced              float64 // part in USD for tokens without a known price
}

// Since has the times from which spending counts: towards the run's limits (zero means its beginning), the day's and
// the month's.
type Since struct{ Run, Day, Month time.Time }

// Spending reads a run's spending. worth has the USD per million tokens whose price is unknown: input, output, read
// from a cache, written to it.
func (tx *Tx) Spending(run int64, since Since, worth [4]float64) (s Spending, err error) {
	// Undecided sessions are left out: their reservation is unknown. The inner queries use indexes alone.
	err = tx.row(`
		SELECT own.begun, own.open, own.usd, own.unpriced, own.reserved, held.reserved,
			today.usd + today.unpriced, month.usd + month.unpriced FROM (
			SELECT
				coalesce(sum(CASE WHEN s.started_at >= $1 AND s.role IN ('work', 'plan') THEN 1 ELSE 0 END), 0) AS begun,
				coalesce(sum(CASE WHEN s.completed_at = '' AND s.role IN ('work', 'plan') THEN 1 ELSE 0 END), 0) AS open,
				coalesce(sum(CASE WHEN s.completed_at >= $1 THEN s.cost_usd ELSE 0.0 END), 0.0) AS usd,
				coalesce(sum(CASE WHEN s.completed_at >= $1 AND s.cost_known = 0 AND s.cost_usd = 0.0
					THEN (s.tokens_input * $2 + s.tokens_output * $3 + s.tokens_cache_read * $4 + s.tokens_cache_creation * $5) /
					1000000.0 ELSE 0.0 END), 0.0) AS unpriced,
				coalesce(sum(CASE WHEN s.completed_at = '' AND s.undecided = '' THEN s.cost_limit_usd ELSE 0.0 END), 0.0)
					AS reserved
			FROM sessions s WHERE s.run_id = $6) own, (
			SELECT coalesce(sum(s.cost_limit_usd), 0.0) AS reserved
			FROM sessions s WHERE s.completed_at = '' AND s.undecided = '') held, (
			SELECT
				coalesce(sum(s.cost_usd), 0.0) AS usd,
				coalesce(sum(CASE WHEN s.cost_known = 0 AND s.cost_usd = 0.0
					THEN (s.tokens_input * $2 + s.tokens_output * $3 + s.tokens_cache_read * $4 + s.tokens_cache_creation * $5) /
					1000000.0 ELSE 0.0 END), 0.0) AS unpriced
			FROM sessions s WHERE s.completed_at >= $7) today, (
			SELECT
				coalesce(sum(s.cost_usd), 0.0) AS usd,
				coalesce(sum(CASE WHEN s.cost_known = 0 AND s.cost_usd = 0.0
					THEN (s.tokens_input * $2 + s.tokens_output * $3 + s.tokens_cache_read * $4 + s.tokens_cache_creation * $5) /
					1000000.0 ELSE 0.0 END), 0.0) AS unpriced
			FROM sessions s WHERE s.completed_at >= $8) month`,
		ralph.At(since.Run), worth[0], worth[1], worth[2], worth[3], run, ralph.At(since.Day), ralph.At(since.Month)).
		Scan(&s.Sessions, &s.Open, &s.USD, &s.Unpriced, &s.Reserved, &s.DayReserved, &s.DayUSD, &s.MonthUSD)
	s.USD += s.Unpriced
	return s, err
}

// NoteVerifying records the command that a run executes outside of sessions, and why; both are ""
// when it has ended. It leaves the state of a run that waits or is paused as it is.
func (tx *Tx) NoteVerifying(id int64, command, why string) error {
	run, err := tx.Run(id)
	if err == nil && run.State == "running" && run.StateReason != why {
		err = tx.SetRunState(id, "running", why, time.Time{})
	}
	if err != nil || command == "" {
		return err
	}
	return tx.record(ralph.Event{RunID: id}, ralph.SlowCheck{Command: command})
}

// Control sends a request to the active run, one of the ralph.Control… constants. A request to go on also asks a run
// that is ending not to end. A request to pause does not replace one to stop, nor one to stop another to stop now. The
// error wraps [ralph.ErrConflict] if no run is active, or none takes the request.
func (tx *Tx) Control(control string) error {
	n, err := tx.exec(`UPDATE runs SET control = CASE WHEN $1 = '' AND state = 'ending' THEN 'go_on' ELSE $1 END
		WHERE ended_at = '' AND NOT ($1 IN ('pause', 'stop') AND control IN ('stop', 'stop_now') AND $1 <> control)`, control)
	if err != nil || n > 0 {
		return err
	}
	stopping, err := value[int64](tx, `SELECT count(*) FROM runs WHERE ended_at = ''`)
	switch {
	case err != nil:
		return err
	case stopping == 0:
		return ralph.Conflict("no run is active")
	}
	return ralph.Conflict("the run is stopping already: have it go on first")
}

// GoesOn clears the request to a run not to end, and reports whether there was one.
func (tx *Tx) GoesOn(id int64) (bool, error) {
	n, err := tx.exec(`UPDATE runs SET control = '' WHERE id = $1 AND control = 'go_on'`, id)
	return n > 0, err
}

// RunControl returns the request that people have sent to a run, or to all runs of its machine.
func (tx *Tx) RunControl(id int64) (control string, err error) {
	return value[string](tx, `
		SELECT CASE WHEN r.control <> 'stop_now' AND m.drained_at <> '' THEN 'drain' ELSE r.control END
		FROM runs r LEFT JOIN machines m ON m.name = r.machine WHERE r.id = $1`, id)
}

// EndRun closes a run.
func (tx *Tx) EndRun(id int64, exitStatus int, reason string) error {
	last, err := value[int64](tx, `SELECT coalesce(max(id), 0) FROM runs`)
	if err != nil {
		return err
	}
	if t, ok := runTrouble(exitStatus, reason); ok && id == last { // otherwise a later run has taken up the work
		if err := tx.putTrouble(t); err != nil { // without an event, as RunEnded follows
			return err
		}
	}
	if err := tx.set("runs", id, cells{
		"ended_at": tx.Now(), "state": "ended", "control": "", "wait_until": "", "idle": "",
		"exit_status": exitStatus, "reason": reason,
	}); err != nil {
		return err
	}
	r, err := tx.Run(id)
	if err != nil {
		return err
	}
	return tx.record(ralph.Event{RunID: id}, ralph.RunEnded{
		ExitStatus: exitStatus, Reason: reason, Sessions: r.Sessions, Tasks: r.Tasks, CostUSD: r.CostUSD,
		CostKnown: r.CostKnown, Tokens: r.Tokens,
	})
}

// AgentState is the state of an agent across runs: until when not to start sessions of it, why, and its number of
// errors in a row.
type AgentState struct {
	Agent     string       `json:"agent"` // its name in the configuration
	WaitUntil ralph.Time   `json:"wait_until"`
	Reason    string       `json:"reason"`
	Ending    ralph.Ending `json:"ending"` // of its last session
	Failures  int          `json:"failures"`
}

// AgentStates lists the agents whose last session ended with an agent error.
func (tx *Tx) AgentStates() ([]AgentState, error) {
	return all(tx, func(row scanner) (a AgentState, err error) {
		return a, row.Scan(&a.Agent, &a.WaitUntil, &a.Reason, &a.Ending, &a.Failures)
	}, `SELECT agent, wait_until, reason, ending, failures FROM agent_states WHERE failures > 0 ORDER BY agent`)
}

// WorksWith stores the account of an agent. If it has changed, the state of the agent is forgotten.
func (tx *Tx) WorksWith(agent, account string) error {
	other, err := value[bool](tx, `SELECT EXISTS (SELECT 1 FROM agent_accounts WHERE agent = $1 AND account <> $2)`,
		agent, account)
	for _, table := range []string{"agent_states", "usage_windows"} {
		if other && err == nil {
			err = tx.do("DELETE FROM "+table+" WHERE agent = $1", agent)
		}
	}
	if err != nil {
		return err
	}
	return tx.put("agent_accounts", "agent", cells{"agent": agent, "account": account})
}

// Resting lists the agents for which no session should be started now.
func (tx *Tx) Resting() ([]AgentState, error) {
	list, err := tx.AgentStates()
	return slices.DeleteFunc(list, func(a AgentState) bool { return !a.WaitUntil.After(tx.Now().Time) }), err
}

// SetAgentState stores an agent's state.
func (tx *Tx) SetAgentState(a AgentState) error {
	return tx.put("agent_states", "agent", cells{
		"agent": a.Agent, "wait_until": a.WaitUntil, "reason": a.Reason, "ending": a.Ending, "failures": a.Failures,
	})
}

// EndLostRuns ends the runs that are lost.
func (tx *Tx) EndLostRuns() error {
	open, err := runRows.all(tx, `WHERE r.ended_at = '' ORDER BY r.id`)
	for _, r := range open {
		if err == nil && !tx.Alive(r) {
			err = tx.EndRun(r.ID, ralph.ExitFailure, "its process was lost")
		}
	}
	return err
}

var machineRows = reads("machines m", func(m *ralph.Machine) []field {
	return []field{{"m.name", &m.Name}, {"m.drained_at", &m.DrainedAt}, {"m.drained_by", &m.DrainedBy}}
})

// enlist notes that a run begins on a machine. The error wraps [ralph.ErrConflict] if it is drained.
func (tx *Tx) enlist(name string) error {
	m, ok, err := machineRows.first(tx, `WHERE m.name = $1`, name)
	if err == nil && ok && !m.DrainedAt.IsZero() {
		err = refused(ralph.AllowMachine, 0, "no run may begin on %s, which %s drained at %s", name, m.DrainedBy, m.DrainedAt)
	}
	if err != nil || ok {
		return err
	}
	return tx.do(`INSERT INTO machines (name) VALUES ($1)`, name)
}

// LeaseTime is the time after which an unrenewed lease expires, by the database's clock. A lease marks a live run. On
// one machine a lease also ends with its process. Only tests change LeaseTime, before anything else happens.
var LeaseTime = 5 * time.Minute

// LeaseRenewal returns how often a lease is renewed.
func LeaseRenewal() time.Duration { return LeaseTime / 10 }

// alive reports whether a lease holds.
func (tx *Tx) alive(process string, until ralph.Time) bool {
	switch machine.Look(process) {
	case machine.Gone:
		return false
	case machine.Lives:
		if !tx.db.Shared() { // else the process may be frozen while others wait
			return true
		}
	}
	return until.After(tx.Now().Time)
}

// Alive reports whether a run works, as far as can be told here: it has not ended, and its lease holds.
func (tx *Tx) Alive(r ralph.Run) bool { return r.EndedAt.IsZero() && tx.alive(r.Process, r.LeaseUntil) }
