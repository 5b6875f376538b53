package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"ralph"
	"ralph/internal/lazy"
	"ralph/signals"
)

// Facts reads everything in the database that a decision on a session depends on. The caller adds its ending, its
// changes and the result of the verification.
func (tx *Tx) Facts(session string) (signals.Facts, error) {
	f := signals.Facts{}
	s, err := tx.Session(session)
	if err != nil {
		return f, err
	}
	t, err := tx.Task(s.TaskID)
	if err != nil {
		return f, err
	}
	f.Task, f.Waits = signals.TaskOf(t), t.Waits
	if f.Said, f.OpenFlags, err = tx.Signalled(s.TaskID, s.ID); err != nil {
		return f, err
	}
	if f.Approvals, err = tx.approvals(s.TaskID); err != nil {
		return f, err
	}
	f.Void = s.StopRequest == "contract"
	if s.StopRequest == "cancel" {
		f.CancelledBy = s.StopBy
	}
	return f, tx.lookUps(&f)
}

// Signalled returns the signals of a session, and the blocking flags of its task's other sessions that nobody has
// answered.
func (tx *Tx) Signalled(task int64, session string) (said []signals.Said, others []int64, err error) {
	if said, err = tx.SessionSignals(session); err == nil {
		others, err = tx.otherFlags(task, session)
	}
	return said, others, err
}

// otherFlags lists the blocking flags of a task's other sessions that nobody has answered.
func (tx *Tx) otherFlags(task int64, session string) ([]int64, error) {
	return values[int64](tx, `
		SELECT id FROM task_comments
		WHERE task_id = $1 AND session_id <> $2 AND signal_verb = 'flag' AND severity = 'blocking' AND resolved_at = ''
		ORDER BY id`, task, session)
}

// lookUps adds the facts that a session's signals refer to.
func (tx *Tx) lookUps(f *signals.Facts) error {
	f.Upstream, f.Titles, f.Features = map[int64]signals.Upstream{}, map[string]bool{}, map[string]bool{}
	for _, said := range f.Said {
		var err error
		switch p := said.Payload.(type) {
		case signals.Blocked:
			f.Upstream[said.ID], err = tx.upstream(f.Task.ID, p.On)
		case signals.Suggest:
			err = tx.proposalFacts(f, p)
		}
		if err != nil {
			return err
		}
	}
	var err error
	f.Known, err = tx.knownTo(*f)
	return err
}

// knownTo lists the learnings that the session's own may repeat.
func (tx *Tx) knownTo(f signals.Facts) ([]ralph.Learning, error) {
	scopes := map[string]bool{}
	for _, said := range f.Said {
		if p, ok := said.Payload.(signals.Learned); ok {
			scopes[p.EffectiveScope()] = true
			scopes[ralph.ScopeTask] = true // a task without a feature keeps its feature learnings itself
		}
	}
	var out []ralph.Learning
	for _, scope := range []string{ralph.ScopeProject, ralph.ScopeFeature, ralph.ScopeTask} {
		if !scopes[scope] {
			continue
		}
		known, err := tx.LearningsFor(ralph.Task{ID: f.Task.ID, Feature: f.Task.Feature}, scope)
		if err != nil {
			return nil, err
		}
		out = append(out, known...)
	}
	return out, nil
}

// proposalFacts looks up whether a suggested title is taken and its feature exists.
func (tx *Tx) proposalFacts(f *signals.Facts, p signals.Suggest) error {
	title := signals.NormalTitle(signals.ProposedTitle(p))
	taken, err := value[bool](tx, `SELECT EXISTS (
		SELECT 1 FROM tasks
		WHERE normal_title = $1 AND status NOT IN ('completed', 'failed', 'rejected', 'cancelled'))`, title)
	if err != nil {
		return err
	}
	there, err := value[bool](tx, `SELECT EXISTS (SELECT 1 FROM features WHERE name = $1)`, p.Feature)
	if err != nil {
		return err
	}
	f.Titles[title], f.Features[p.Feature] = taken, there
	f.Approved, err = value[int](tx, `
		SELECT count(*) FROM tasks WHERE origin = 'agent' AND created >= $1 AND auto_approved = 1`,
		ralph.At(tx.Now().Add(-24*time.Hour)))
	return err
}

// taskReference finds "#12", "task 12" and "TASK-12" in the text of a blocked signal.
var (
	taskReference = lazy.Regexp(`(?i)(?:#|\btask[ -]#?)(\d+)\b`)
	onlyReference = lazy.Regexp(`(?i)^\s*(?:#|task[ -]#?)\d+\W*$`)
)

// upstream finds the tasks that a text names (rule 5): by number alone, by exact title, by a number
// in the text, or by a title that contains the text or is contained in it. A title with a number in
// it does not name that number's task.
func (tx *Tx) upstream(task int64, on string) (signals.Upstream, error) {
	ids, err := tx.namedTasks(on)
	if err != nil {
		return signals.Upstream{}, err
	}
	u := signals.Upstream{Matches: ids}
	if len(ids) != 1 || ids[0] == task {
		return u, nil
	}
	match, err := tx.Task(ids[0])
	if err != nil {
		return u, err
	}
	u.Completed = match.Status == ralph.Completed
	u.Cycle, err = tx.WouldCycle(task, ids[0])
	return u, err
}

func (tx *Tx) namedTasks(on string) ([]int64, error) {
	name := signals.NormalTitle(on)
	if !onlyReference().MatchString(on) && name != "" {
		exact, err := values[int64](tx, `
			SELECT id FROM tasks
			WHERE normal_title = $1 AND status NOT IN ('rejected', 'cancelled') ORDER BY id LIMIT 9`, name)
		if err != nil || len(exact) > 0 {
			return exact, err
		}
	}
	seen, ids := map[int64]bool{}, []int64{}
	for _, m := range taskReference().FindAllStringSubmatch(on, -1) {
		id, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil || seen[id] {
			continue // a number too long for an id names no task
		}
		seen[id] = true
		found, err := values[int64](tx, `SELECT id FROM tasks WHERE id = $1`, id)
		if err != nil {
			return nil, err
		}
		ids = append(ids, found...)
	}
	if len(ids) > 0 || name == "" {
		return ids, nil
	}
	within := "% " + name + " %"
	if len(name) > utf8.UTFMax*ralph.MaxTitle {
		within = "" // no title contains it, and a pattern may not be that long
	}
	return values[int64](tx, `
		SELECT id FROM tasks
		WHERE status NOT IN ('rejected', 'cancelled')
			AND (' ' || normal_title || ' ' LIKE $1 OR $2 LIKE '% ' || normal_title || ' %')
		ORDER BY id LIMIT 9`, within, " "+name+" ")
}

// Apply carries out a decision. It works once: the second time the error wraps [ralph.ErrConflict] (rule 10). s has the
// process, changes and checks of the session; the facts are stored with it for [Tx.DecidedFrom].
func (tx *Tx) Apply(s ralph.Session, f signals.Facts, d signals.Decision) error {
	if err := tx.CheckSession(s.TaskID, s.ID); err != nil {
		return err
	}
	author, err := tx.sessionAuthor(s.ID)
	if err != nil {
		return err
	}
	facts, err := json.Marshal(f)
	if err != nil {
		return err
	}
	t, err := tx.Task(s.TaskID)
	if err != nil {
		return err
	}
	if t.Status != ralph.InProgress {
		why := fmt.Sprintf("its task was made %s outside of ralph, which does not count", t.Status)
		if err := tx.putBack(t, why); err != nil {
			return err
		}
		s.Notes, t.Status = append(s.Notes, why), ralph.InProgress
	}
	if err := tx.heed(t, s, author, d); err != nil {
		return err
	}
	if err := tx.set("tasks", t.ID, cells{
		"attempts":        d.Attempts,
		"stuck_count":     d.StuckCount,
		"verify_failures": d.VerifyFailures,
		"prompt_too_long": d.PromptTooLong,
		"claimed_by":      "",
		"claim_expires":   "",
	}); err != nil {
		return err
	}
	if d.LostCount != 0 || t.LostCount != 0 {
		if err := tx.setLost(t, d); err != nil {
			return err
		}
	}
	if d.Blocker != "" {
		if err := tx.addBlocker(t.ID, d.Blocker); err != nil {
			return err
		}
	}
	if s.Change != nil {
		if err := tx.addSessionChange(s, d); err != nil {
			return err
		}
	}
	if err := tx.move(t, d.Status, d.Mover, d.StatusReason); err != nil {
		return err
	}
	if d.Approval != nil {
		if err := tx.askApproval(s, *d.Approval); err != nil {
			return err
		}
	}
	for _, flag := range d.Answered {
		if err := tx.Resolve(flag, "answered by the session's done", author); err != nil {
			return err
		}
	}
	if err := tx.closePermissions(s.ID); err != nil {
		return err
	}
	return tx.closeSession(s, string(facts), d)
}

// heed stores the parts of a decision that come from the session's signals: held comments, dependencies, learnings and
// proposed tasks.
func (tx *Tx) heed(t ralph.Task, s ralph.Session, author string, d signals.Decision) error {
	for _, h := range d.Holds {
		if err := tx.set("task_comments", h.Comment, cells{"holding": true, "hold_reason": h.Why}); err != nil {
			return err
		}
	}
	for _, on := range d.DependsOn {
		if err := tx.AddDependency(t.ID, on, "signal"); err != nil {
			return err
		}
	}
	for _, l := range d.Learn {
		if err := tx.learn(t, s, author, l); err != nil {
			return err
		}
	}
	for _, p := range d.Propose {
		if err := tx.proposeTask(p); err != nil {
			return err
		}
	}
	return nil
}

// putBack makes a task in progress again if its session has not been decided. ralph never moves such a task, so another
// program has written to the database.
func (tx *Tx) putBack(t ralph.Task, why string) error {
	claimed := cells{"status": ralph.InProgress, "status_reason": why, "completed_at": "", "accepted": false}
	if err := tx.set("tasks", t.ID, claimed); err != nil {
		return err
	}
	moved := ralph.TaskStatusChanged{From: t.Status, To: ralph.InProgress, Reason: why}
	if err := tx.record(ralph.Event{TaskID: t.ID}, moved); err != nil {
		return err
	}
	if t.Status.Ended() {
		return tx.deriveDependents(t.ID)
	}
	return nil
}

// sessionAuthor returns the name under which a session signals.
func (tx *Tx) sessionAuthor(id string) (string, error) {
	return value[string](tx, `SELECT coalesce(nullif(discipline, ''), 'agent') FROM sessions WHERE id = $1`, id)
}

// proposeTask adds a suggested task (rule 9).
func (tx *Tx) proposeTask(p signals.Proposal) error {
	id, err := tx.AddTask(ralph.Task{
		Title: p.Title, Description: p.Description, Feature: p.Feature,
		Status: p.Status, Origin: ralph.ByAgent, Priority: ralph.DefaultPriority,
	}, "signal")
	if err != nil {
		return err
	}
	return tx.set("tasks", id, cells{"source_comment": p.Comment, "auto_approved": p.Status == ralph.Pending})
}

// closeSession stores the results of a session and closes it: from now on its calls are refused
// (decision 4).
func (tx *Tx) closeSession(s ralph.Session, facts string, d signals.Decision) error {
	state := ralph.PhaseFailed
	if d.Outcome == ralph.OutcomeSuccess {
		state = ralph.PhaseDone
	}
	tried, err := tx.attempts(s)
	if err != nil {
		return err
	}
	row, err := tx.Session(s.ID)
	if err != nil {
		return err
	}
	last := ralph.PhaseChange{State: state, Timestamp: tx.Now(), Source: ralph.Observed}
	if state == ralph.PhaseFailed {
		last.Metadata = map[string]any{"error": d.Reason}
	}
	s.History = append(row.History, last) // with the phases that the agent reported meanwhile
	for _, command := range tried {
		s.Notes = append(s.Notes, "it tried `"+command+"`, which only people may do")
	}
	if row.Strangers > 0 {
		s.Notes = append(s.Notes, ralph.StrangersRefused(row.Strangers))
	}
	if err := tx.endSession(s, state, d.Outcome, d.Reason, cells{
		"unchanged":    asJSON(s.Unchanged),
		"files":        asJSON(s.Files),
		"commits":      asJSON(s.Commits),
		"verify":       asJSON(s.Verify),
		"notes":        asJSON(s.Notes),
		"closing_verb": null(d.Signalled()),
		"facts":        facts,
		"decision":     asJSON(d),
	}); err != nil {
		return err
	}
	return tx.record(during(s), ralph.SessionEnded{
		Ending: s.Ending, Outcome: d.Outcome, ClosingVerb: d.Signalled(), Reason: d.Reason, CostUSD: s.CostUSD,
		CostKnown: s.CostKnown, Tokens: s.Tokens.Sum(),
		Turns: s.Turns, Seconds: max(0, tx.Now().Sub(s.StartedAt.Time).Seconds()),
		Status: d.Status, StatusReason: d.StatusReason, Waits: d.Waits,
		Files: len(s.Files), Announce: d.Announce, Leftovers: s.Leftovers,
		Notes: s.Notes,
	})
}

// endSession stores the end of a session, with the cells of its role, and adds its cost to the run's.
func (tx *Tx) endSession(s ralph.Session, state ralph.Phase, outcome, reason string, more cells) error {
	row := cells{
		"current_state":  state,
		"state_history":  asJSON(s.History),
		"tokens":         asJSON(s.Tokens),
		"denials":        asJSON(s.Denials),
		"leftovers":      asJSON(s.Leftovers),
		"ending":         s.Ending,
		"outcome":        outcome,
		"outcome_reason": reason,
		"model":          s.Model,
		"agent_version":  s.AgentVersion,
		"turns":          s.Turns,
		"cost_usd":       s.CostUSD,
		"cost_known":     s.CostKnown,
		"exit_status":    s.Exit,
		"last_words":     s.LastWords,
		"stderr_tail":    s.StderrTail,
		"updated_at":     tx.Now(),
		"completed_at":   tx.Now(),
	}
	maps.Copy(row, more)
	if err := errors.Join(tx.set("sessions", s.ID, row), tx.LeaveLine(s.ID)); err != nil {
		return err
	}
	return tx.do(`UPDATE runs SET cost_usd = cost_usd + $1 WHERE id = $2`, s.CostUSD, s.RunID)
}

// Decided returns the stored decision on a session.
func Decided(s ralph.Session) (signals.Decision, error) {
	var d signals.Decision
	if strings.TrimSpace(s.Decision) == "" {
		return d, ralph.Conflict("session %s has not been decided", s.ID)
	}
	return d, json.Unmarshal([]byte(s.Decision), &d)
}

// BookLate books the cost of a session that was settled as lost before its machine reported, and adds a note to it. A
// note that it already has changes nothing.
func (tx *Tx) BookLate(id string, usd float64, known bool, tokens ralph.Tokens, note string) error {
	s, err := tx.Session(id)
	if err != nil || slices.Contains(s.Notes, note) {
		return err
	}
	if err := tx.set("sessions", id, cells{
		"cost_usd": usd, "cost_known": known, "tokens": asJSON(tokens), "notes": asJSON(append(s.Notes, note)),
	}); err != nil {
		return err
	}
	return tx.do(`UPDATE runs SET cost_usd = cost_usd + $1 WHERE id = $2`, usd-s.CostUSD, s.RunID)
}
