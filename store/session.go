package store

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ralph"
	"ralph/internal/machine"
)

var sessionRows = reads("sessions s", func(s *ralph.Session) []field {
	return []field{
		{"s.id", &s.ID},
		{"s.task_id", &s.TaskID},
		{"s.attempt", &s.Attempt},
		{"s.origin", &s.Origin},
		{"s.role", &s.Role},
		{"s.current_state", &s.State},
		{"s.state_history", column(&s.History)},
		{"s.ending", &s.Ending},
		{"s.ended", &s.Ended},
		{"coalesce(s.outcome, '')", &s.Outcome},
		{"s.outcome_reason", &s.Reason},
		{"coalesce(s.closing_verb, '')", &s.ClosingVerb},
		{"s.started_at", &s.StartedAt},
		{"s.completed_at", &s.CompletedAt},
		{"s.cost_usd", &s.CostUSD},
		{"s.cost_limit_usd", &s.CostLimitUSD},
		{"s.cost_known", &s.CostKnown},
		{"s.tokens", column(&s.Tokens)},
		{"s.turns", &s.Turns},
		{"s.files", column(&s.Files)},
		{"s.commits", column(&s.Commits)},
		{"s.verify", column(&s.Verify)},
		{"s.exit_status", &s.Exit},
		{"s.model", &s.Model},
		{"s.agent", &s.Agent},
		{"s.agent_version", &s.AgentVersion},
		{"s.unchanged", column(&s.Unchanged)},
		{"s.last_words", &s.LastWords},
		{"s.stderr_tail", &s.StderrTail},
		{"s.denials", column(&s.Denials)},
		{"s.leftovers", column(&s.Leftovers)},
		{"coalesce(s.run_id, 0)", &s.RunID},
		{"s.decision", &s.Decision},
		{"s.worker", &s.Worker},
		{"s.machine", &s.Machine},
		{"s.dir", &s.Dir},
		{"s.number", &s.Number},
		{"s.branch", &s.Branch},
		{"coalesce(nullif(s.progress, ''), 'null')", column(&s.Progress)},
		{"s.notes", column(&s.Notes)},
		{"s.strangers", &s.Strangers},
		{"s.stop_request", &s.StopRequest},
		{"s.stop_by", &s.StopBy},
		{"s.halted_by", &s.HaltedBy},
		{"s.people_edited", &s.PeopleEdited},
		{"s.checking", &s.Checking},
		{"s.checking_since", &s.CheckingSince},
		{"coalesce(nullif(s.review, ''), 'null')", column(&s.Review)},
	}
})

// Session returns the session with that id, or the only one whose id begins with it.
func (tx *Tx) Session(id string) (ralph.Session, error) {
	if len(id) < 4 || strings.ContainsAny(id, "%_") {
		return ralph.Session{}, &ralph.RemedyError{
			Err: &ralph.FieldError{Field: fmt.Sprintf("%q", id), Problem: "is not a session's id"}, Do: ralph.ListSessions,
		}
	}
	// The ids with this prefix sort between it and the prefix followed by "~".
	from := strings.ToLower(id)
	list, err := sessionRows.all(tx, `WHERE s.id >= $1 AND s.id < $2 ORDER BY s.id LIMIT 2`, from, from+"~")
	switch {
	case err != nil:
		return ralph.Session{}, err
	case len(list) == 0:
		return ralph.Session{}, missing("session "+id, ralph.ListSessions)
	case len(list) > 1:
		return ralph.Session{}, &ralph.FieldError{Field: fmt.Sprintf("session id %q",
			id), Problem: "matches several sessions; give more of it"}
	}
	return list[0], nil
}

// CheckSession returns an error if a session takes no signals: it is unknown, belongs to another
// task, or is answered.
func (tx *Tx) CheckSession(task int64, session string) error {
	var owner int64
	var completed string
	err := tx.row(`SELECT task_id, completed_at FROM sessions WHERE id = $1`, session).Scan(&owner, &completed)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("session %s: %w", session, ralph.ErrNotFound)
	case err != nil:
		return err
	case owner != task:
		return fmt.Errorf("session %s of TASK-%d: %w", session, task, ralph.ErrNotFound)
	case completed != "":
		return ralph.Conflict("session %s has ended and takes no more signals", session)
	}
	return nil
}

// mostAdded is the maximum number of closing signals of a session. The same maximum applies to its other signals,
// comments and amendments together. People read them all.
const mostAdded = 200

// CheckAdding is [Tx.CheckSession] for something that an agent adds to the task's discussion; closes means a closing
// signal. The error wraps [ralph.ErrConflict] if the session has added too much.
func (tx *Tx) CheckAdding(task int64, session string, closes bool) error {
	if err := tx.CheckSession(task, session); err != nil {
		return err
	}
	all, err := value[int](tx, `
		SELECT (SELECT count(*) FROM task_comments WHERE session_id = $1 AND
			coalesce(signal_verb, '') IN ('done', 'partial', 'stuck') = $2) +
			(SELECT count(*) FROM task_amendments WHERE task_id = $3 AND session_id = $1 AND NOT $2)`, session, closes, task)
	switch {
	case err != nil || all < mostAdded:
		return err
	case closes:
		return ralph.Conflict("session %s has been closed %d times, which is the most: end your turn", session, all)
	}
	return ralph.Conflict("session %s has added %d signals, comments and amendments, which is the most: "+
		"close it with done, partial or stuck", session, all)
}

// Sessions lists sessions, newest first or most expensive first.
func (tx *Tx) Sessions(f SessionFilter) ([]ralph.Session, error) {
	by, order := f.matching(), " ORDER BY s.started_at DESC, s.id"
	if f.ByCost {
		order = " ORDER BY s.cost_usd DESC, s.started_at DESC, s.id"
	}
	return sessionRows.all(tx, by.where()+order+by.page(f.Limit, f.Skip), by.args...)
}

// CountSessions returns the number of sessions that a filter selects, and the cost of the ended ones.
func (tx *Tx) CountSessions(f SessionFilter) (n int, usd float64, err error) {
	by := f.matching()
	err = tx.row(`SELECT count(*), coalesce(sum(s.cost_usd), 0.0) FROM sessions s`+by.where(), by.args...).Scan(&n, &usd)
	return n, usd, err
}

// results read only a session's agent, cost, changes, decision, verification and notes.
var results = reads("sessions s", func(s *ralph.Session) []field {
	return []field{
		{"s.id", &s.ID},
		{"s.task_id", &s.TaskID},
		{"coalesce(s.run_id, 0)", &s.RunID},
		{"s.cost_usd", &s.CostUSD},
		{"s.files", column(&s.Files)},
		{"s.commits", column(&s.Commits)},
		{"s.decision", &s.Decision},
		{"s.role", &s.Role},
		{"s.cost_known", &s.CostKnown},
		{"s.tokens", column(&s.Tokens)},
		{"s.started_at", &s.StartedAt},
		{"s.completed_at", &s.CompletedAt},
		{"s.origin", &s.Origin},
		{"s.worker", &s.Worker},
		{"s.agent", &s.Agent},
		{"s.agent_version", &s.AgentVersion},
		{"s.model", &s.Model},
		{"s.number", &s.Number},
		{"s.verify", column(&s.Verify)},
		{"s.notes", column(&s.Notes)},
		{"s.strangers", &s.Strangers},
	}
})

// Results lists the sessions of a filter, oldest first, with only their tasks, times, agents, cost, changes, decisions,
// verification and notes.
func (tx *Tx) Results(f SessionFilter) ([]ralph.Session, error) {
	by := f.matching()
	return results.all(tx, by.where()+` ORDER BY s.started_at, s.id`, by.args...)
}

// briefTasks read a task's title, feature, status, reasons to wait, and attempts.
var briefTasks = reads("tasks t LEFT JOIN features f ON f.id = t.feature_id", func(t *ralph.Task) []field {
	return append(waits(&t.Waits),
		field{"t.id", &t.ID},
		field{"t.title", &t.Title},
		field{"coalesce(f.name, '')", &t.Feature},
		field{"t.status", &t.Status},
		field{"t.status_reason", &t.StatusReason},
		field{"t.attempts", &t.Attempts},
	)
})

// TasksOf returns the tasks of a filter's sessions by id, with only their title, feature, status and attempts.
func (tx *Tx) TasksOf(f SessionFilter) (map[int64]ralph.Task, error) {
	by := f.matching()
	list, err := briefTasks.all(tx, `
		WHERE t.id IN (SELECT s.task_id FROM sessions s `+by.where()+`)`, by.args...)
	tasks := make(map[int64]ralph.Task, len(list))
	for _, t := range list {
		tasks[t.ID] = t
	}
	return tasks, err
}

// OpenSessions lists the sessions on tasks that have not been decided, oldest first.
func (tx *Tx) OpenSessions() ([]ralph.Session, error) {
	return sessionRows.all(tx, `WHERE s.completed_at = '' AND s.role IN ('work', 'plan') ORDER BY s.started_at`)
}

// LastCompleted returns the session that last completed a task; ok is false if there is none.
func (tx *Tx) LastCompleted() (s ralph.Session, ok bool, err error) {
	return sessionRows.first(tx, `WHERE s.accepted = 1 AND s.completed_at <> ''
		AND EXISTS (SELECT 1 FROM tasks t WHERE t.id = s.task_id AND t.status = 'completed') ORDER BY s.completed_at DESC`)
}

// Claimable returns an error that wraps [ralph.ErrConflict] if a task cannot be claimed now, with
// the reason.
func (tx *Tx) Claimable(t ralph.Task) error {
	if t.Status == ralph.Pending {
		return nil
	}
	why, otherwise := "it "+t.Is(), ralph.Remedy("")
	switch {
	case t.Status == ralph.InProgress:
		claimant, release, err := tx.claimant(t)
		if err != nil {
			return err
		}
		why, otherwise = "it is worked on already by "+claimant, release
	case t.StatusReason != "":
		why += ": " + t.StatusReason
	}
	return refused(otherwise, t.ID, "TASK-%d cannot be claimed, %s", t.ID, why)
}

// claimant names the worker on a task, and the way for a person to take it over.
func (tx *Tx) claimant(t ralph.Task) (name string, release ralph.Remedy, err error) {
	var worker, origin string
	var expires ralph.Time
	err = tx.row(`
		SELECT s.worker, s.origin, t.claim_expires
		FROM tasks t JOIN sessions s ON s.id = t.claimed_by WHERE t.id = $1`, t.ID).Scan(&worker, &origin, &expires)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "somebody", "", nil
	case err != nil:
		return "", "", err
	case origin == ralph.FromHuman:
		return worker + ", who claimed it", ralph.ReleaseTask, nil
	case worker == "":
		return "the loop", "", nil
	}
	return fmt.Sprintf("the worker %s, whose claim lasts until %s unless it is renewed", worker, expires), "", nil
}

// LapsedClaims lists the open sessions of workers whose lease has expired, and those of people
// whose task was cancelled or amended. Nobody else would decide on these.
func (tx *Tx) LapsedClaims() ([]ralph.Session, error) {
	return sessionRows.all(tx, `JOIN tasks t ON t.id = s.task_id
		WHERE s.completed_at = '' AND s.worker <> '' AND t.claimed_by = s.id
			AND (t.claim_expires <> '' AND t.claim_expires < $1 OR s.origin = 'human' AND s.stop_request <> '')
		ORDER BY s.started_at`, tx.Now())
}

// NextLapse returns the next time at which a worker's claim, or the lease of a run other than run, expires; the zero
// Time if there is none.
func (tx *Tx) NextLapse(run int64) (ralph.Time, error) {
	return value[ralph.Time](tx, `
		SELECT coalesce(min(u.at), '') FROM (
			SELECT claim_expires AS at FROM tasks WHERE status = 'in_progress' AND claim_expires <> ''
			UNION ALL SELECT lease_until FROM runs WHERE ended_at = '' AND id <> $1) u`, run)
}

// CheckLapsed returns an error that wraps [ralph.ErrConflict] if a claim found by [Tx.LapsedClaims]
// has been renewed or decided since.
func (tx *Tx) CheckLapsed(session string) error {
	lapsed, err := tx.LapsedClaims()
	if err != nil || slices.ContainsFunc(lapsed, func(s ralph.Session) bool { return s.ID == session }) {
		return err
	}
	return ralph.Conflict("the claim of session %s was renewed or decided meanwhile", session)
}

// RenewClaim extends the lease of a worker's session.
func (tx *Tx) RenewClaim(session string, until time.Time) error {
	return tx.do(`
		UPDATE tasks SET claim_expires = $1
		WHERE id = (SELECT s.task_id FROM sessions s WHERE s.id = $2) AND claimed_by = $2`, ralph.At(until), session)
}

// A Start describes a session that begins.
type Start struct {
	ID           string
	Task         int64
	Run          int64
	Model        string
	Agent        string  // its name in the configuration
	CostLimitUSD float64 // charged if the session ends without reporting its cost
	Snapshot     any     // state of the work tree; stored as JSON
	Hashes       any     // stagnation hashes; stored as JSON

	Dir    string        // the root of the work tree in which it works
	Number int           // of the run, from 1; 0 for sessions outside of the loop
	Of     int           // sessions of the run at once
	Worker string        // name of the worker that claims the task; "" for the loop
	Lease  time.Duration // how long the claim lasts without renewal; 0: until it is released
	Origin string        // [ralph.FromHuman], or "" for [ralph.FromLoop]
	Branch string        // of a person's work tree
}

// NoteRed records that verification fails before a run has begun any work, or before a task is begun (0 for the other):
// these failures will not be excused.
func (tx *Tx) NoteRed(run, task int64, red ralph.BaselineRed) error {
	return tx.record(ralph.Event{RunID: run, TaskID: task}, red)
}

// NoteIdle records commands of a task that pass before any work on it.
func (tx *Tx) NoteIdle(task int64, commands []string) error {
	return tx.record(ralph.Event{TaskID: task}, ralph.ProvesNothing{Commands: commands})
}

// NoteChecking records the command that is checking a session's done; "" when the check is over.
func (tx *Tx) NoteChecking(session, command string) error {
	s, err := tx.Session(session)
	if err != nil {
		return err
	}
	if command == "" {
		return tx.set("sessions", session, cells{"checking": "", "checking_since": ""})
	}
	if err := tx.set("sessions", session, cells{"checking": command, "checking_since": tx.Now()}); err != nil {
		return err
	}
	return tx.record(during(s), ralph.SlowCheck{Command: command})
}

// NoteRefusal records that a done was refused within a session that goes on.
func (tx *Tx) NoteRefusal(session, reason string) error {
	s, err := tx.Session(session)
	if err != nil {
		return err
	}
	return tx.record(during(s), ralph.DoneRefused{Reason: reason})
}

// NoteFlaky adds the flaky tests of checks in the merge queue to those of the session whose change they checked.
func (tx *Tx) NoteFlaky(session string, checks []ralph.Check) error {
	s, err := tx.Session(session)
	if err != nil {
		return err
	}
	added := false
	for _, c := range checks {
		i := slices.IndexFunc(s.Verify, func(o ralph.Check) bool { return o.Command == c.Command })
		if i < 0 && len(c.Flaky) > 0 {
			i, s.Verify = len(s.Verify), append(s.Verify, c)
			added = true
		}
		for _, test := range c.Flaky {
			if !slices.Contains(s.Verify[i].Flaky, test) {
				s.Verify[i].Flaky, added = append(s.Verify[i].Flaky, test), true
			}
		}
	}
	if !added {
		return nil
	}
	return tx.set("sessions", session, cells{"verify": asJSON(s.Verify)})
}

// StartSession claims a pending task and opens a session on it in one step. The error wraps
// [ralph.ErrConflict] if the task is not pending any more.
func (tx *Tx) StartSession(s Start) (ralph.Session, error) {
	t, err := tx.Task(s.Task)
	if err != nil {
		return ralph.Session{}, err
	}
	if err := tx.Claimable(t); err != nil {
		return ralph.Session{}, err
	}
	why := "a session works on it"
	if s.Origin == ralph.FromHuman {
		why = s.Worker + " works on it"
	}
	if err := tx.Move(t.ID, ralph.InProgress, ralph.Loop, why); err != nil {
		return ralph.Session{}, err
	}
	expires := ralph.Time{}
	if s.Lease > 0 {
		expires = ralph.At(tx.Now().Add(s.Lease))
	}
	if err := tx.set("tasks", t.ID, cells{"claimed_by": s.ID, "claim_expires": expires}); err != nil {
		return ralph.Session{}, err
	}
	attempt, err := value[int](tx,
		`SELECT count(*) + 1 FROM sessions WHERE task_id = $1 AND role IN ('work', 'plan')`, t.ID)
	if err != nil {
		return ralph.Session{}, err
	}
	if err := tx.insertSession(s, t, attempt, t.Role); err != nil {
		return ralph.Session{}, err
	}
	session, err := tx.Session(s.ID)
	if err != nil {
		return session, err
	}
	number, of := 0, 0
	if s.Of > 1 {
		number, of = s.Number, s.Of
	}
	if err := tx.do(`UPDATE runs SET sessions = sessions + 1 WHERE id = $1`, s.Run); err != nil {
		return session, err
	}
	return session, tx.record(ralph.Event{TaskID: t.ID, SessionID: s.ID, RunID: s.Run},
		ralph.SessionStarted{
			Title: t.Title, Attempt: session.Attempt, Agent: s.Agent, Model: s.Model, Number: number, Of: of,
		})
}

// insertSession adds the row of a session that begins.
func (tx *Tx) insertSession(s Start, t ralph.Task, attempt int, role ralph.Role) error {
	begun := ralph.PhaseChange{
		State: ralph.PhaseIdle, Timestamp: tx.Now(), Source: ralph.Observed,
		Metadata: map[string]any{"action": "session_created"},
	}
	text, args := inserting("sessions", cells{
		"id":              s.ID,
		"task_id":         s.Task,
		"run_id":          null(s.Run),
		"attempt":         attempt,
		"discipline":      t.Discipline,
		"state_history":   asJSON([]ralph.PhaseChange{begun}),
		"model":           s.Model,
		"agent":           s.Agent,
		"cost_limit_usd":  s.CostLimitUSD,
		"snapshot_before": asJSON(s.Snapshot),
		"hashes_before":   asJSON(s.Hashes),
		"started_at":      tx.Now(),
		"updated_at":      tx.Now(),
		"worker":          s.Worker,
		"machine":         machine.Name(),
		"dir":             s.Dir,
		"number":          s.Number,
		"origin":          cmp.Or(s.Origin, ralph.FromLoop),
		"branch":          s.Branch,
		"role":            role,
	})
	return tx.do(text, args...)
}

// Beginning reads back the snapshot and hashes that StartSession stored, and the charge if the
// session's cost stays unknown.
func (tx *Tx) Beginning(id string, snapshot, hashes any) (costLimitUSD float64, err error) {
	err = tx.row(`SELECT snapshot_before, hashes_before, cost_limit_usd FROM sessions WHERE id = $1`, id).
		Scan(column(snapshot), column(hashes), &costLimitUSD)
	if ok, err := found(err); !ok && err == nil {
		return 0, missing("session "+id, ralph.ListSessions)
	}
	return costLimitUSD, err
}

// RequestStop asks for a running session to be stopped: "cancel" if its task was cancelled,
// "contract" if the task's contract was changed.
func (tx *Tx) RequestStop(session, why, by string) error {
	return tx.do(`
		UPDATE sessions SET stop_request = $1, stop_by = $2
		WHERE id = $3 AND completed_at = '' AND stop_request <> 'cancel'`, why, by, session)
}

// Halt asks for one session to be stopped; its task goes back to the queue, and the run goes on.
// The error wraps [ralph.ErrConflict] if the session has ended.
func (tx *Tx) Halt(session, by string) error {
	s, err := tx.Session(session)
	if err != nil {
		return err
	}
	if s.Origin == ralph.FromHuman {
		return refused(ralph.ReleaseTask, s.TaskID, "session %s is %s's, who claimed TASK-%d", session, s.Worker, s.TaskID)
	}
	n, err := tx.exec(`UPDATE sessions SET halted_by = $1 WHERE id = $2 AND completed_at = ''`, by, session)
	if err == nil && n == 0 {
		err = ralph.Conflict("session %s has ended", session)
	}
	return err
}

// A Wish holds people's requests to a session in progress.
type Wish struct {
	Request  string // to stop it: that of [Tx.RequestStop], "halt" for that of [Tx.Halt], or that of its run
	Asks     bool   // somebody is asked whether it may use a tool
	Comments bool   // there are comments of [Tx.Undelivered]
}

// Wish returns people's requests to a session. It uses one statement, because it is called after each change.
func (tx *Tx) Wish(session string) (w Wish, err error) {
	return w, tx.row(`
		SELECT CASE WHEN s.stop_request <> '' THEN s.stop_request WHEN s.halted_by <> '' THEN 'halt'
			ELSE coalesce((SELECT r.control FROM runs r WHERE r.id = s.run_id), '') END,
			EXISTS (SELECT 1 FROM permission_requests p WHERE p.decided_at = '' AND p.session_id = s.id),
			EXISTS (SELECT 1 FROM task_comments c WHERE c.task_id = s.task_id AND `+undelivered+` AND c.created >= s.started_at)
		FROM sessions s WHERE s.id = $1`, session).Scan(&w.Request, &w.Asks, &w.Comments)
}

// maxAttempts bounds the attempted commands recorded per session.
const maxAttempts = 20

// RecordAttempt records that a session tried a command that only people may run.
func (tx *Tx) RecordAttempt(s ralph.Session, command string) error {
	tried, err := tx.attempts(s)
	if err != nil || len(tried) >= maxAttempts || slices.Contains(tried, command) {
		return err
	}
	return tx.record(during(s), ralph.CommandRefused{Command: command})
}

// RecordStranger records that a program of the session, other than its agent, tried to use ralph's tools, with its
// first request.
func (tx *Tx) RecordStranger(s ralph.Session, asked string) error {
	if _, err := tx.exec(`UPDATE sessions SET strangers = strangers + 1 WHERE id = $1`, s.ID); err != nil {
		return err
	}
	return tx.record(during(s), ralph.StrangerRefused{Asked: asked})
}

// attempts lists the commands that a session tried and that only people may run.
func (tx *Tx) attempts(s ralph.Session) ([]string, error) {
	return all(tx, func(row scanner) (string, error) {
		var refused ralph.CommandRefused
		err := row.Scan(column(&refused))
		return refused.Command, err
	}, `SELECT payload FROM events WHERE task_id = $1 AND session_id = $2 AND type = $3 ORDER BY id`,
		s.TaskID, s.ID, ralph.EventType(ralph.CommandRefused{}))
}

// undelivered is the condition for a comment of a person's that no session has been handed.
const undelivered = `c.delivered_at = '' AND c.signal_verb IS NULL AND c.author_kind = 'human'`

// LastSessionStart returns when a task's latest session began; zero if it had none.
func (tx *Tx) LastSessionStart(task int64) (t ralph.Time, err error) {
	return value[ralph.Time](tx, `SELECT coalesce(max(started_at), '') FROM sessions
		WHERE task_id = $1 AND role IN ('work', 'plan')`, task)
}
