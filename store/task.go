package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ralph"
	"ralph/signals"
)

// acceptedReason is why a completed task t is, as the log has it: by the decision on
// a session of its own, by a person or an import, or since before there was a log.
// It is null where nothing recorded led there.
const acceptedReason = `
	CASE WHEN EXISTS (
		SELECT 1 FROM events e WHERE e.task_id = t.id AND e.type IN ('task.created', 'task.status_changed'))
	THEN (SELECT CASE
			WHEN e.status_to <> 'completed' THEN NULL
			WHEN e.status_from <> 'in_progress' THEN e.status_reason
			ELSE (SELECT s.task_reason FROM sessions s WHERE s.task_id = t.id AND s.attempt =
				(SELECT max(a.attempt) FROM sessions a
				WHERE a.task_id = t.id AND a.completed_at <> '' AND a.accepted = 1))
		END FROM events e WHERE e.id =
			(SELECT max(m.id) FROM events m WHERE m.task_id = t.id AND m.type = 'task.status_changed'))
	ELSE t.status_reason END`

// Unaccepted is why a task is completed of which nobody knows why.
const Unaccepted = "completed without an accepted session (changed outside of ralph?)"

// What is said of a completed task comes from what was decided, not from its row,
// which anybody can write who reaches the file.
var tasks = reads("tasks t", func(t *ralph.Task) []field {
	return []field{
		{"t.id", &t.ID},
		{"t.title", &t.Title},
		{"t.status", &t.Status},
		{
			"CASE WHEN t.status = 'completed' THEN coalesce(" + acceptedReason + ", '" + Unaccepted + `')
				ELSE t.status_reason END`,
			&t.StatusReason,
		},
		{"t.priority", &t.Priority},
		{"coalesce((SELECT f.name FROM features f WHERE f.id = t.feature_id), '')", &t.Feature},
		{"coalesce((SELECT d.name FROM disciplines d WHERE d.id = t.discipline_id), '')", &t.Discipline},
		{"t.origin", &t.Origin},
		{`(SELECT string_agg(CAST(td.depends_on AS TEXT), ',' ORDER BY td.depends_on)
			FROM task_dependencies td WHERE td.task_id = t.id)`, idList{&t.DependsOn}},
		{"t.attempts", &t.Attempts},
		{"t.stuck_count", &t.StuckCount},
		{"t.created", &t.Created},
		{"t.updated", &t.Updated},
		{"t.completed_at", &t.CompletedAt},
		{"t.description", &t.Description},
		{"t.acceptance", column(&t.Acceptance)},
		{"t.verify", column(&t.Verify)},
		{"t.model", &t.Model},
		{"t.external_id", &t.ExternalID},
		{"t.external_source", &t.ExternalSource},
		{"t.verify_failures", &t.VerifyFailures},
		{"t.prompt_too_long", &t.PromptTooLong},
		{"t.claimed_by", &t.ClaimedBy},
		{"t.lost_count", &t.LostCount},
		{"t.not_before", &t.NotBefore},
	}
})

// Task is one task. The error wraps [ralph.ErrNotFound] if there is none.
func (tx *Tx) Task(id int64) (ralph.Task, error) {
	return tasks.one(tx, fmt.Sprintf("TASK-%d", id), `WHERE t.id = $1`, id)
}

// CheckTask reports that there is no such task; the error wraps
// [ralph.ErrNotFound]. 0 is none in particular, and right.
func (tx *Tx) CheckTask(id int64) error {
	if id == 0 {
		return nil
	}
	_, err := tx.Task(id)
	return err
}

// A TaskFilter narrows a list of tasks; the zero value is all of them.
type TaskFilter struct {
	Statuses []ralph.Status
	Feature  string
	Text     string // in the title, whatever its case
	Latest   bool   // what was changed last comes first, not in the order of the queue
	Limit    int    // 0 is no limit
	Skip     int    // so many are left out at the beginning; only with a limit
}

// escapeLike has a text stand for itself in a pattern.
var escapeLike = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// queueOrder is decision 12: priority, then what `task move` set, then tasks
// with attempts before fresh ones, then age.
const queueOrder = `t.priority, t.rank, CASE WHEN t.attempts > 0 THEN 0 ELSE 1 END, t.id`

// Tasks lists tasks in the order of the queue.
func (tx *Tx) Tasks(f TaskFilter) ([]ralph.Task, error) {
	var by filter
	in(&by, "t.status", f.Statuses)
	if f.Feature != "" {
		by.and("t.feature_id = (SELECT id FROM features WHERE name = ?)", f.Feature)
	}
	if f.Text != "" {
		by.and(`lower(t.title) LIKE ? ESCAPE '\'`, "%"+escapeLike.Replace(strings.ToLower(f.Text))+"%")
	}
	order := " ORDER BY " + queueOrder
	if f.Latest {
		order = " ORDER BY t.updated DESC, t.id DESC"
	}
	matching := by.where()
	if f.Limit > 0 {
		// What is not shown is sorted without all that there is to know of it.
		matching = "WHERE t.id IN (SELECT t.id FROM tasks t" + matching + order + by.page(f.Limit, f.Skip) + ")"
	}
	return tasks.all(tx, matching+order, by.args...)
}

// Unaccepted are the completed tasks of which nothing recorded says why.
func (tx *Tx) Unaccepted() ([]int64, error) {
	list, err := values[int64](tx, `SELECT t.id FROM tasks t WHERE t.status = 'completed' AND `+acceptedReason+` IS NULL`)
	slices.Sort(list)
	return list, err
}

// Counts are the numbers of tasks by status.
func (tx *Tx) Counts() (map[ralph.Status]int, error) {
	return counts[ralph.Status](tx, `SELECT status, count(*) FROM tasks GROUP BY status`)
}

// AddTask adds a task, pending or proposed, and what it depends on. Its id,
// times and status reason are set by the store. Feature and discipline must exist.
func (tx *Tx) AddTask(t ralph.Task, source string) (int64, error) {
	if err := checkTask(t); err != nil {
		return 0, err
	}
	if t.Status == "" {
		t.Status = ralph.Pending
	}
	if t.Origin == "" {
		t.Origin = ralph.ByHuman
	}
	r, err := tx.definition(t)
	if err != nil {
		return 0, err
	}
	r["status"], r["origin"], r["created"] = t.Status, t.Origin, tx.now
	r["external_id"], r["external_source"] = t.ExternalID, t.ExternalSource
	id, err := tx.add("tasks", r)
	if err != nil {
		return 0, err
	}
	created := ralph.TaskCreated{Title: t.Title, Status: t.Status, Origin: t.Origin}
	if err := tx.record(ralph.Event{TaskID: id}, created); err != nil {
		return 0, err
	}
	for _, on := range t.DependsOn {
		if err := tx.AddDependency(id, on, source); err != nil {
			return 0, err
		}
	}
	return id, tx.Derive(id)
}

// UpdateTask changes what a person may edit: title, description, acceptance,
// verification, priority, feature, discipline and model.
func (tx *Tx) UpdateTask(t ralph.Task) error {
	if err := checkTask(t); err != nil {
		return err
	}
	r, err := tx.definition(t)
	if err != nil {
		return err
	}
	before, err := tx.Task(t.ID)
	if err != nil {
		return err
	}
	if err := tx.set("tasks", t.ID, r); err != nil {
		return err
	}
	if err := tx.editedByPeople(t.ID); err != nil {
		return err
	}
	return tx.record(ralph.Event{TaskID: t.ID}, ralph.TaskUpdated{Title: t.Title, Changes: ralph.Changes(before, t)})
}

// editedByPeople notes that what is different of a task from now on is no change of the
// session that works on it.
func (tx *Tx) editedByPeople(task int64) error {
	_, err := tx.exec(`UPDATE sessions SET people_edited = 1 WHERE task_id = $1 AND completed_at = ''`, task)
	return err
}

// checkTask reports the first thing that is wrong with what a person gave.
func checkTask(t ralph.Task) error {
	if err := ralph.CheckTitle("title", t.Title); err != nil {
		return err
	}
	if err := ralph.CheckText("description", t.Description, false); err != nil {
		return err
	}
	for _, a := range t.Acceptance {
		if err := ralph.CheckText("acceptance criterion", a, true); err != nil {
			return err
		}
	}
	if err := CheckCommands(t.Verify); err != nil {
		return err
	}
	return ralph.CheckPriority("priority", t.Priority)
}

// CheckCommands reports the first verification command that cannot be one.
func CheckCommands(commands []string) error {
	for _, c := range commands {
		if err := ralph.CheckText("verification command", c, true); err != nil {
			return err
		}
	}
	return nil
}

// definition is what people may edit of a task, by column. The feature and the
// discipline that it names must exist.
func (tx *Tx) definition(t ralph.Task) (cells, error) {
	r := cells{
		"feature_id":    nil,
		"discipline_id": nil,
		"title":         t.Title,
		"normal_title":  signals.NormalTitle(t.Title),
		"description":   t.Description,
		"acceptance":    asJSON(t.Acceptance),
		"verify":        asJSON(t.Verify),
		"priority":      t.Priority,
		"model":         t.Model,
		"updated":       tx.now,
	}
	if t.Feature != "" {
		f, err := tx.Feature(t.Feature)
		if err != nil {
			return nil, err
		}
		r["feature_id"] = f.ID
	}
	if t.Discipline != "" {
		d, err := tx.Discipline(t.Discipline)
		if err != nil {
			return nil, err
		}
		r["discipline_id"] = d.ID
	}
	return r, nil
}

// Move changes a task's status as [ralph.Moves] allows; the error wraps
// [ralph.ErrConflict] otherwise. Completed sets completed_at, every other status
// clears it. Dependents of a task that ended, or began again, are derived anew.
func (tx *Tx) Move(id int64, to ralph.Status, by ralph.Mover, reason string) error {
	t, err := tx.Task(id)
	if err != nil {
		return err
	}
	if !ralph.CanMove(t.Status, to, by) {
		return fmt.Errorf("TASK-%d is %s and cannot become %s: %w", id, t.Status, to, ralph.ErrConflict)
	}
	var completed ralph.Time
	if to == ralph.Completed {
		completed = tx.now
	}
	if err := tx.set("tasks", id, cells{
		"status": to, "status_reason": reason, "completed_at": completed, "updated": tx.now,
	}); err != nil {
		return err
	}
	if t.Status == to {
		return nil
	}
	change := ralph.TaskStatusChanged{From: t.Status, To: to, Reason: reason}
	if to == ralph.Blocked {
		// Those who are told must know whether a person is waited for or only another task.
		_, blockers, unfinished, err := tx.Open(id)
		if err != nil {
			return err
		}
		change.Blockers, change.Unfinished = &blockers, &unfinished
	}
	err = tx.record(ralph.Event{TaskID: id}, change)
	if err != nil || !(to.Ended() || t.Status.Ended()) {
		return err
	}
	return tx.deriveDependents(id)
}

// deriveDependents looks again at every task that waits for this one.
func (tx *Tx) deriveDependents(id int64) error {
	waiting, err := values[int64](tx, `
		SELECT d.task_id FROM task_dependencies d JOIN tasks t ON t.id = d.task_id
		WHERE d.depends_on = $1 AND t.status IN ('pending', 'blocked', 'needs_input') ORDER BY d.task_id`, id)
	if err != nil {
		return err
	}
	for _, w := range waiting {
		if err := tx.Derive(w); err != nil {
			return err
		}
	}
	return nil
}

// Open counts what holds a task back: unanswered blocking questions, unresolved
// blockers, and dependencies that have not completed.
func (tx *Tx) Open(id int64) (questions, blockers, unfinished int, err error) {
	err = tx.row(`
		SELECT coalesce(sum(CASE WHEN signal_verb = 'ask' OR kind = 'question' THEN 1 ELSE 0 END), 0),
			coalesce(sum(CASE WHEN signal_verb = 'ask' OR kind = 'question' THEN 0 ELSE 1 END), 0)
		FROM task_comments WHERE task_id = $1 AND holding = 1`, id).Scan(&questions, &blockers)
	if err != nil {
		return 0, 0, 0, err
	}
	unfinished, err = value[int](tx, `
		SELECT count(*) FROM task_dependencies d JOIN tasks t ON t.id = d.depends_on
		WHERE d.task_id = $1 AND t.status <> 'completed'`, id)
	return questions, blockers, unfinished, err
}

// Derive sets the status of a task that waits or is queued to what follows from
// what is open (decision 14). A task that is worked on or has ended stays as it is.
func (tx *Tx) Derive(id int64) error {
	t, err := tx.Task(id)
	if err != nil {
		return err
	}
	if t.Status != ralph.Pending && t.Status != ralph.NeedsInput && t.Status != ralph.Blocked {
		return nil
	}
	questions, blockers, unfinished, err := tx.Open(id)
	if err != nil {
		return err
	}
	to := ralph.Waiting(questions, blockers, unfinished)
	if to == t.Status {
		return nil
	}
	return tx.Move(id, to, ralph.Derived, signals.WaitingReason(questions, blockers, unfinished))
}

// Definitions is a digest of what a task and its feature ask for, without
// statuses, times, sessions and comments (pipeline, "Stagnation").
func (tx *Tx) Definitions(id int64) (string, error) {
	t, err := tx.Task(id)
	if err != nil {
		return "", err
	}
	return tx.definitions(t)
}

func (tx *Tx) definitions(t ralph.Task) (digest string, err error) {
	var f ralph.Feature
	if t.Feature != "" {
		if f, err = tx.Feature(t.Feature); err != nil {
			return "", err
		}
	}
	definition, err := json.Marshal([]any{
		t.Title, t.Description, t.Acceptance, t.Verify, t.Priority, t.Discipline, t.Model, t.DependsOn,
		f.Name, f.Description, f.Learnings, f.Verify,
	})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(definition)
	return hex.EncodeToString(sum[:]), nil
}

// Renew notes new information on a task (rule 5): its stuck count, verify failures
// and lost sessions start again. A failed task is not revived by it.
func (tx *Tx) Renew(id int64) error {
	return tx.set("tasks", id, cells{
		"stuck_count": 0, "verify_failures": 0, "lost_count": 0, "not_before": "", "updated": tx.now,
	})
}

// Retry puts an ended task back into the queue with every counter at zero, and has
// one that waits after lost sessions tried again at once.
func (tx *Tx) Retry(id int64, reason string) error {
	t, err := tx.Task(id)
	if err != nil {
		return err
	}
	if t.LostCount > 0 && t.Status != ralph.InProgress && !t.Status.Ended() {
		return errors.Join(tx.Renew(id), tx.dropBlockers(id, reason))
	}
	if !t.Status.Ended() {
		return fmt.Errorf("TASK-%d is %s, and only an ended task can be retried: %w", id, t.Status, ralph.ErrConflict)
	}
	if err := tx.Move(id, ralph.Pending, ralph.Person, reason); err != nil {
		return err
	}
	if err := tx.set("tasks", id, cells{
		"stuck_count": 0, "verify_failures": 0, "attempts": 0, "prompt_too_long": 0, "lost_count": 0, "not_before": "",
	}); err != nil {
		return err
	}
	if err := tx.dropBlockers(id, reason); err != nil {
		return err
	}
	return tx.Derive(id)
}

// Next is the first task of the queue, ok is false if there is none (picking). Those
// whose last session was lost come behind the others, when their time has come.
func (tx *Tx) Next() (t ralph.Task, ok bool, err error) {
	t, ok, err = tasks.first(tx, `WHERE t.status = 'pending' AND t.lost_count = 0 ORDER BY `+queueOrder)
	if err == nil && !ok {
		t, ok, err = tx.NextLost()
		ok = ok && !t.NotBefore.After(tx.now.Time)
	}
	return t, ok, err
}

// PutBehind puts a task behind all others of its priority.
func (tx *Tx) PutBehind(id int64) error {
	t, err := tx.Task(id)
	if err != nil {
		return err
	}
	if _, err := tx.exec(`
		UPDATE tasks SET rank = (SELECT max(rank) + 1 FROM tasks WHERE priority = $1), updated = $2 WHERE id = $3`,
		t.Priority, tx.now, id); err != nil {
		return err
	}
	return tx.record(ralph.Event{TaskID: id}, ralph.TaskUpdated{Skipped: true})
}

// MoveRank puts a task directly before or after another one in the queue, giving
// it the other's priority. What stands in front of that place keeps its order.
func (tx *Tx) MoveRank(id, other int64, after bool) error {
	if id == other {
		return &ralph.FieldError{Field: fmt.Sprintf("TASK-%d", id), Problem: "cannot be moved relative to itself"}
	}
	if _, err := tx.Task(id); err != nil {
		return err
	}
	o, err := tx.Task(other)
	if err != nil {
		return err
	}
	queue, err := values[int64](tx, `
		SELECT t.id FROM tasks t
		WHERE t.priority = $1 AND t.status NOT IN ('completed', 'rejected', 'cancelled')
		ORDER BY `+queueOrder, o.Priority)
	if err != nil {
		return err
	}
	var front []int64
	for _, q := range queue {
		if q == id {
			continue
		}
		if q == other && !after {
			front = append(front, id)
		}
		front = append(front, q)
		if q == other {
			break
		}
	}
	if after {
		front = append(front, id)
	}
	// Ranks below zero go before everything that was never moved, which has rank 0.
	if err := tx.set("tasks", id, cells{"rank": 0, "priority": o.Priority, "updated": tx.now}); err != nil {
		return err
	}
	if err := tx.editedByPeople(id); err != nil {
		return err
	}
	for i, q := range front {
		if err := tx.set("tasks", q, cells{"rank": i - len(front)}); err != nil {
			return err
		}
	}
	return tx.record(ralph.Event{TaskID: id}, ralph.TaskUpdated{Priority: &o.Priority, Moved: other})
}
