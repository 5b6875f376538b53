package store

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"ralph"
	"ralph/signals"
)

// acceptedReason selects why task t is completed, from the records: the decision on one of its sessions, a person or an
// import; or its row if it is older than the log. It is NULL if no record explains it.
const acceptedReason = `
	CASE WHEN EXISTS (
		SELECT 1 FROM events e WHERE e.task_id = t.id AND e.type IN ('task.created', 'task.status_changed'))
	THEN (SELECT CASE
			WHEN e.status_to <> 'completed' THEN NULL
			WHEN e.status_from <> 'in_progress' THEN e.status_reason
			ELSE (SELECT s.task_reason FROM sessions s WHERE s.task_id = t.id AND s.role IN ('work', 'plan') AND s.attempt =
				(SELECT max(a.attempt) FROM sessions a
				WHERE a.task_id = t.id AND a.completed_at <> '' AND a.accepted = 1))
		END FROM events e WHERE e.id =
			(SELECT max(m.id) FROM events m WHERE m.task_id = t.id AND m.type = 'task.status_changed'))
	ELSE t.status_reason END`

// A statusOf reads a task's status, after the other fields that [ralph.Task.Key] looks at.
type statusOf struct{ task *ralph.Task }

// Scan implements sql.Scanner.
func (s statusOf) Scan(src any) error {
	var status sql.NullString
	err := status.Scan(src)
	s.task.Status = ralph.Status(status.String)
	s.task.State = s.task.Key()
	return err
}

// Unaccepted is the status reason of a completed task that nothing recorded explains.
const Unaccepted = "completed without an accepted session (changed outside of ralph?)"

// The reason of a completed task comes from the recorded decision, not from its row, which anybody
// with access to the file can write.
var taskRows = reads("tasks t", func(t *ralph.Task) []field {
	return append(waits(&t.Waits), []field{
		{"t.id", &t.ID},
		{"t.title", &t.Title},
		{inReview, &t.InReview},
		{"t.status", statusOf{t}},
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
		{"t.allow", column(&t.Allow)},
		{"t.review", &t.Review},
		{"t.hidden", column(&t.Hidden)},
		{"t.role", &t.Role},
		{"t.marks", column(&t.Marks)},
		{"t.files", column(&t.Files)},
		{"t.model", &t.Model},
		{"t.agent", &t.Agent},
		{"t.external_id", &t.ExternalID},
		{"t.external_source", &t.ExternalSource},
		{"t.verify_failures", &t.VerifyFailures},
		{"t.times_sent_back", &t.TimesSentBack},
		{"t.prompt_too_long", &t.PromptTooLong},
		{"t.claimed_by", &t.ClaimedBy},
		{"t.lost_count", &t.LostCount},
		{"t.not_before", &t.NotBefore},
	}...)
})

// Task returns one task. The error wraps [ralph.ErrNotFound] if there is none.
func (tx *Tx) Task(id int64) (t ralph.Task, err error) {
	return taskRows.one(tx, fmt.Sprintf("TASK-%d", id), ralph.ListTasks, `WHERE t.id = $1`, id)
}

// CheckTask returns an error that wraps [ralph.ErrNotFound] if there is no such task. 0 stands for
// no task and is accepted.
func (tx *Tx) CheckTask(id int64) error {
	if id == 0 {
		return nil
	}
	_, err := tx.Task(id)
	return err
}

// A TaskFilter narrows a list of tasks; the zero value selects all.
type TaskFilter struct {
	Statuses []ralph.Status
	Words    []string // of [ralph.Words]
	Feature  string
	Text     string         // in the title, ignoring case
	Begins   int64          // leading digits of its number; 0 for any
	Latest   bool           // latest change first, instead of the order of the queue
	Of       *SessionFilter // tasks of these sessions alone; nil for any
	Merged   bool           // completed tasks only, last completed first
	Limit    int            // 0 is no limit
	Skip     int            // leave out this many of the first; needs Limit
}

// escapeLike escapes the wildcards of LIKE.
var escapeLike = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// queueOrder is decision 12: priority, then the rank that `task move` set, then tasks with attempts
// before fresh ones, then age.
const queueOrder = `t.priority, t.rank, CASE WHEN t.attempts > 0 THEN 0 ELSE 1 END, t.id`

// matching returns the condition of the filter.
func (f TaskFilter) matching() (by filter) {
	in(&by, "t.status", f.Statuses)
	if len(f.Words) > 0 {
		by.and(worded(f.Words))
	}
	if f.Merged {
		by.and("t.status = 'completed' AND t.role = 'work'")
	}
	if f.Of != nil {
		of := filter{args: by.args}
		f.Of.narrow(&of)
		by.args, by.clauses = of.args, append(by.clauses, "t.id IN (SELECT s.task_id FROM sessions s"+of.where()+")")
	}
	if f.Feature != "" {
		by.and("t.feature_id = (SELECT id FROM features WHERE name = ?)", f.Feature)
	}
	if f.Text != "" {
		by.and(`lower(t.title) LIKE ? ESCAPE '\'`, "%"+escapeLike.Replace(strings.ToLower(f.Text))+"%")
	}
	if f.Begins > 0 {
		var ranges []string
		for low, high := f.Begins, f.Begins+1; low <= maxNumber; low, high = low*10, high*10 {
			ranges = append(ranges, by.number("t.id >= ? AND t.id < ?", low, high))
		}
		by.clauses = append(by.clauses, "("+strings.Join(ranges, " OR ")+")")
	}
	return by
}

// maxNumber bounds the task numbers that Begins matches.
const maxNumber = 1e12

// CountTasks counts the tasks that a filter selects, ignoring its limit.
func (tx *Tx) CountTasks(f TaskFilter) (int, error) {
	by := f.matching()
	return value[int](tx, "SELECT count(*) FROM tasks t"+by.where(), by.args...)
}

// Tasks lists tasks in the order of the queue, or the latest first.
func (tx *Tx) Tasks(f TaskFilter) ([]ralph.Task, error) {
	by := f.matching()
	order := " ORDER BY " + queueOrder
	switch {
	case f.Merged:
		order = " ORDER BY t.completed_at DESC, t.id DESC"
	case f.Latest:
		order = " ORDER BY t.updated DESC, t.id DESC"
	}
	matching := by.where()
	if f.Limit > 0 {
		// Only the tasks of the page are read in full.
		matching = "WHERE t.id IN (SELECT t.id FROM tasks t" + matching + order + by.page(f.Limit, f.Skip) + ")"
	}
	return taskRows.all(tx, matching+order, by.args...)
}

// Unaccepted lists the completed tasks that no record explains. It skips tasks that [Tx.Move] completed, so that its
// cost does not grow with the queue; [DB.Examine] looks at all.
func (tx *Tx) Unaccepted() ([]int64, error) {
	list, err := values[int64](tx, `
		SELECT t.id FROM tasks t WHERE t.status = 'completed' AND t.accepted = 0 AND `+acceptedReason+` IS NULL`)
	slices.Sort(list)
	return list, err
}

// Tally returns the numbers of tasks by [ralph.Task.Key], without zeros.
func (tx *Tx) Tally() (map[string]int, error) {
	counts, err := tx.Counts()
	if err != nil {
		return nil, err
	}
	return tx.tally(counts, "")
}

// Same returns the first task that is still wanted and has the title, description and commands of t; ok is false if
// there is none.
func (tx *Tx) Same(t ralph.Task) (same ralph.Task, ok bool, err error) {
	list, err := taskRows.all(tx, `WHERE t.normal_title = $1 ORDER BY t.id`, signals.NormalTitle(t.Title))
	for _, other := range list {
		if other.Status.Wanted() && other.Title == t.Title && other.Description == t.Description &&
			slices.Equal(other.Verify, t.Verify) {
			return other, true, nil
		}
	}
	return same, false, err
}

// Waiting returns the number of blocked tasks that wait only for other tasks, and not for a person.
func (tx *Tx) Waiting() (int, error) {
	return value[int](tx, `SELECT count(*) FROM tasks WHERE status = 'blocked' AND NOT EXISTS (
		SELECT 1 FROM task_comments c WHERE c.task_id = tasks.id AND c.holding = 1)`)
}

// Counts returns the numbers of tasks by status, without zeros. Counting one status, or the whole table, is faster than
// grouping. So the completed tasks, most of an old project's, are counted as the rest of the table.
func (tx *Tx) Counts() (map[ralph.Status]int, error) {
	const all ralph.Status = ""
	query := `SELECT '', count(*) FROM tasks`
	for _, s := range ralph.Statuses {
		if s != ralph.Completed {
			query += fmt.Sprintf(` UNION ALL SELECT '%[1]s', count(*) FROM tasks WHERE status = '%[1]s'`, s)
		}
	}
	n, err := byKey[ralph.Status, int](tx, query)
	n[ralph.Completed] = n[all]
	for s, others := range n {
		if s != all && s != ralph.Completed {
			n[ralph.Completed] -= others
		}
	}
	maps.DeleteFunc(n, func(s ralph.Status, of int) bool { return s == all || of == 0 })
	return n, err
}

// CheckFiles returns an error for the first pattern of files that is not valid.
func CheckFiles(patterns []string) error {
	for _, f := range patterns {
		if err := ralph.CheckText("file", f, true); err != nil {
			return err
		}
		if !doublestar.ValidatePattern(f) {
			return &ralph.FieldError{Field: fmt.Sprintf("file %q", f), Problem: "is not a valid pattern, such as src/**"}
		}
	}
	return nil
}

// checkTask returns the first problem in a person's input.
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
	for _, h := range t.Hidden {
		err := errors.Join(
			ralph.CheckText("title of a hidden check", h.Title, true), ralph.CheckText("hidden check", h.Command, true))
		if err != nil {
			return err
		}
	}
	if err := CheckFiles(slices.Concat(t.Files, t.Allow)); err != nil {
		return err
	}
	if len(strings.Fields(t.Model)) > 1 {
		return &ralph.FieldError{Field: fmt.Sprintf("model %q", t.Model), Problem: "must be the name of a model"}
	}
	return ralph.CheckPriority("priority", t.Priority)
}

// definition returns the columns that people may edit. The feature and the discipline must exist.
func (tx *Tx) definition(t ralph.Task) (cells, error) {
	r := cells{
		"feature_id":    nil,
		"discipline_id": nil,
		"title":         t.Title,
		"normal_title":  signals.NormalTitle(t.Title),
		"description":   t.Description,
		"acceptance":    asJSON(t.Acceptance),
		"verify":        asJSON(t.Verify),
		"files":         asJSON(append([]string{}, t.Files...)),
		"allow":         asJSON(append([]string{}, t.Allow...)),
		"review":        t.Review,
		"hidden":        asJSON(append([]ralph.Hidden{}, t.Hidden...)),
		"priority":      t.Priority,
		"model":         t.Model,
		"agent":         t.Agent,
		"updated":       tx.Now(),
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

// Move changes a task's status as [ralph.Moves] allows, else the error wraps [ralph.ErrConflict].
// Completed sets completed_at, every other status clears it. If the task ends or is reopened, the
// status of its dependents is derived anew.
func (tx *Tx) Move(id int64, to ralph.Status, by ralph.Mover, reason string) error {
	t, err := tx.Task(id)
	if err != nil {
		return err
	}
	return tx.move(t, to, by, reason)
}

// move is Move of a task whose status is known.
func (tx *Tx) move(t ralph.Task, to ralph.Status, by ralph.Mover, reason string) error {
	id := t.ID
	if !ralph.CanMove(t.Status, to, by) {
		return ralph.Conflict("TASK-%d is %s and cannot become %s", id, t.Status, to)
	}
	var completed ralph.Time
	if to == ralph.Completed {
		completed = tx.Now()
	}
	if err := tx.set("tasks", id, cells{
		"status": to, "status_reason": reason, "updated": tx.Now(),
		"completed_at": completed, "accepted": to == ralph.Completed,
	}); err != nil {
		return err
	}
	if t.Status == to {
		return nil
	}
	if to == ralph.Cancelled || to == ralph.Rejected { // nobody wants its unmerged change any more
		if err := tx.dropOpen(id, "its task is "+string(to)); err != nil {
			return err
		}
	}
	change := ralph.TaskStatusChanged{From: t.Status, To: to, Reason: reason}
	if to == ralph.Blocked {
		// Notifications say whether the task waits for a person or only for another task.
		now, err := tx.Task(id) // the caller's task has its former reasons to wait
		if err != nil {
			return err
		}
		change.Waits = &now.Waits
	}
	err := tx.record(ralph.Event{TaskID: id}, change)
	if err != nil || !(to.Ended() || t.Status.Ended()) {
		return err
	}
	return tx.deriveDependents(id)
}

// deriveDependents derives the status of every task that waits for this one.
func (tx *Tx) deriveDependents(id int64) error {
	dependents, err := values[int64](tx, `
		SELECT d.task_id FROM task_dependencies d JOIN tasks t ON t.id = d.task_id
		WHERE d.depends_on = $1 AND t.status IN ('pending', 'blocked', 'needs_input') ORDER BY d.task_id`, id)
	if err != nil {
		return err
	}
	for _, w := range dependents {
		if err := tx.Derive(w); err != nil {
			return err
		}
	}
	return nil
}

// waits returns the expressions that select why task t waits.
func waits(w *ralph.Waits) []field {
	return []field{
		{"(SELECT count(*) FROM task_comments c WHERE c.task_id = t.id AND c.holding = 1 AND " + asks + ")", &w.Questions},
		{"(SELECT count(*) FROM task_comments c WHERE c.task_id = t.id AND c.holding = 1 AND NOT " + asks + ")", &w.Blockers},
		{`(SELECT string_agg(CAST(td.depends_on AS TEXT), ',' ORDER BY td.depends_on)
			FROM task_dependencies td JOIN tasks o ON o.id = td.depends_on
			WHERE td.task_id = t.id AND o.status <> 'completed')`, idList{&w.Tasks}},
	}
}

// asks selects comments c that are questions.
const asks = "(coalesce(c.signal_verb, '') = 'ask' OR coalesce(c.kind, '') = 'question')"

// Derive sets the status of a waiting or queued task from its open questions, blockers and
// dependencies (decision 14). It leaves a task that is worked on or has ended as it is.
func (tx *Tx) Derive(id int64) error {
	t, err := tx.Task(id)
	if err != nil {
		return err
	}
	if t.Status != ralph.Pending && t.Status != ralph.NeedsInput && t.Status != ralph.Blocked {
		return nil
	}
	to := t.Waits.Status()
	switch {
	case to != t.Status:
		return tx.move(t, to, ralph.Derived, t.Waits.String())
	case to == ralph.Blocked: // possibly for another reason than before
		return tx.set("tasks", id, cells{"status_reason": t.Waits.String()})
	}
	return nil
}

// Definitions returns a digest of the definition of a task and its feature, without statuses,
// times, sessions and comments (pipeline, "Stagnation").
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
		t.Title, t.Description, t.Acceptance, t.Verify, t.Priority, t.Discipline, t.Model, t.Agent, t.DependsOn,
		f.Name, f.Description, f.Learnings, f.Verify,
	})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(definition)
	return hex.EncodeToString(sum[:]), nil
}

// Renew resets a task's counters of stuck sessions, failed verifications, lost sessions and
// those sent back, because there is new information on it (rule 5). It does not revive a failed task.
func (tx *Tx) Renew(id int64) error {
	return tx.set("tasks", id, cells{
		"stuck_count": 0, "verify_failures": 0, "lost_count": 0, "times_sent_back": 0, "not_before": "", "updated": tx.Now(),
	})
}

// Scope lists the files that work on a task may touch, as globs: the files named in the task, else the ones that its
// sessions have touched; none if nothing is known.
func (tx *Tx) Scope(task int64) ([]string, error) {
	t, err := tx.Task(task)
	if err != nil || len(t.Files) > 0 {
		return t.Files, err
	}
	lists, err := all(tx, func(row scanner) (files []ralph.FileChange, err error) {
		return files, row.Scan(column(&files))
	}, `SELECT files FROM sessions WHERE task_id = $1 AND files <> '[]' ORDER BY started_at DESC LIMIT 5`, task)
	var scope []string
	for _, f := range slices.Concat(lists...) {
		scope = append(scope, f.Path)
	}
	return scope, err
}

// DisciplineBounds returns the maximum number of parallel sessions per discipline, by name;
// disciplines without an entry are unbounded.
func (tx *Tx) DisciplineBounds() (map[string]int, error) {
	list, err := tx.Disciplines()
	bounds := map[string]int{}
	for _, d := range list {
		if d.Parallel > 0 {
			bounds[d.Name] = d.Parallel
		}
	}
	return bounds, err
}
