package store

import (
	"math"
	"slices"
	"strings"

	"ralph"
)

// promptRows bounds each list that goes into a prompt: a prompt has no room for more, and the cost
// of reading does not grow with the history.
const promptRows = 200

// An AnsweredAsk is an agent's question with a person's answer.
type AnsweredAsk struct {
	TaskID   int64
	Question string
	Answer   string
	By       string
	At       ralph.Time
}

// Answers lists people's answers to the questions of a task and of the other tasks of its feature,
// latest first.
func (tx *Tx) Answers(t ralph.Task) ([]AnsweredAsk, error) {
	return all(tx, func(row scanner) (a AnsweredAsk, err error) {
		return a, row.Scan(&a.TaskID, &a.Question, &a.Answer, &a.By, &a.At)
	}, `
		SELECT c.task_id, c.question, c.signal_answered, c.answered_by, c.answered_at
		FROM task_comments c
		WHERE c.signal_verb = 'ask' AND c.signal_answered IS NOT NULL
			AND (c.task_id = $1 OR c.task_id IN (
				SELECT id FROM tasks WHERE feature_id = (SELECT feature_id FROM tasks WHERE id = $1)))
		ORDER BY c.answered_at DESC, c.id DESC LIMIT $2`, t.ID, promptRows)
}

// Flags lists the unresolved flags that a task's prompt shows (rule 7): all of its own, and the
// warning and blocking ones of its feature's other tasks; tasks without a feature form one group.
// It returns all blocking ones first, then the latest of the others.
func (tx *Tx) Flags(t ralph.Task) ([]ralph.Comment, error) {
	same := `c.task_id IN (SELECT id FROM tasks WHERE feature_id = (SELECT feature_id FROM tasks WHERE id = $1))`
	if t.Feature == "" {
		same = `EXISTS (SELECT 1 FROM tasks o WHERE o.id = c.task_id AND o.feature_id IS NULL)`
	}
	flags := func(severity string, limit int) ([]ralph.Comment, error) {
		return commentRows.all(tx, strings.NewReplacer("{severity}", severity, "{same}", same).Replace(`
			WHERE c.signal_verb = 'flag' AND c.resolved_at = '' AND c.severity {severity}
				AND (c.task_id = $1 OR c.severity <> 'info' AND {same})
			ORDER BY c.created DESC, c.id DESC LIMIT $2`), t.ID, limit)
	}
	blocking, err := flags(`= 'blocking'`, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	others, err := flags(`<> 'blocking'`, promptRows)
	return append(blocking, others...), err
}

// Discussion lists the comments on a task for its prompt, oldest first, without answers to questions: the latest
// [promptRows], all that a person wrote or decided since a time, and flags and blockers that were decided since then.
func (tx *Tx) Discussion(task int64, since ralph.Time) ([]ralph.Comment, error) {
	return commentRows.all(tx, `LEFT JOIN task_comments p ON p.id = c.parent_id
		WHERE c.task_id = $1 AND coalesce(p.signal_verb, '') <> 'ask' AND (c.released_by <> 'prompt' OR c.resolved_by <> '')
			AND (c.kind IS NOT NULL OR c.signal_verb IN ('flag', 'blocked') AND c.decision <> '' AND c.resolved_at >= $2)
			AND (c.author_kind = 'human' AND c.created >= $2 OR c.resolved_at <> '' AND c.resolved_at >= $2 OR c.id IN (
				SELECT l.id FROM task_comments l LEFT JOIN task_comments q ON q.id = l.parent_id
				WHERE l.task_id = $1 AND l.kind IS NOT NULL AND coalesce(q.signal_verb, '') <> 'ask'
				ORDER BY l.id DESC LIMIT $3))
		ORDER BY c.id`, task, since, promptRows)
}

// LastJudged returns the task's latest session that said or did something to continue from; it
// skips silent agent errors, interruptions and losses.
func (tx *Tx) LastJudged(task int64) (s ralph.Session, ok bool, err error) {
	return sessionRows.first(tx, `
		WHERE s.task_id = $1 AND s.role IN ('work', 'plan') AND s.completed_at <> ''
			AND (s.closing_verb IS NOT NULL OR s.ending IN ('finished', 'timed_out'))
		ORDER BY s.started_at DESC, s.id`, task)
}

// StuckSessions lists the latest n sessions of a task that were stuck, oldest first.
func (tx *Tx) StuckSessions(task int64, n int) ([]ralph.Session, error) {
	list, err := sessionRows.all(tx, `
		WHERE s.task_id = $1 AND s.role IN ('work', 'plan') AND s.outcome <> 'success'
			AND (s.closing_verb IN ('stuck', 'partial')
			OR s.closing_verb IS NULL AND s.ending IN ('finished', 'timed_out'))
		ORDER BY s.started_at DESC LIMIT $2`, task, n)
	slices.Reverse(list)
	return list, err
}

// LastSessionEnd returns when a task's latest session ended; zero if it had none.
func (tx *Tx) LastSessionEnd(task int64) (t ralph.Time, err error) {
	return value[ralph.Time](tx, `SELECT coalesce(max(completed_at), '') FROM sessions
		WHERE task_id = $1 AND role IN ('work', 'plan')`, task)
}

// DoneSummary returns the summary of a task's latest done signal; "" if it has none.
func (tx *Tx) DoneSummary(task int64) (string, error) {
	summary, err := value[string](tx, `
		SELECT summary FROM task_comments
		WHERE task_id = $1 AND signal_verb = 'done' ORDER BY created DESC, id DESC LIMIT 1`, task)
	_, err = found(err)
	return summary, err
}

// TouchedFiles lists the files that the sessions of a task and of its dependencies changed, each
// once, latest change first.
func (tx *Tx) TouchedFiles(task int64) ([]ralph.FileChange, error) {
	lists, err := all(tx, func(row scanner) (files []ralph.FileChange, err error) {
		return files, row.Scan(column(&files))
	}, `
		SELECT files FROM sessions
		WHERE files <> '[]'
			AND (task_id = $1 OR task_id IN (SELECT depends_on FROM task_dependencies WHERE task_id = $1))
		ORDER BY started_at DESC, id LIMIT $2`, task, promptRows)
	if err != nil {
		return nil, err
	}
	seen, touched := map[string]bool{}, []ralph.FileChange{}
	for _, files := range lists {
		for _, f := range files {
			if !seen[f.Path] {
				seen[f.Path] = true
				touched = append(touched, f)
			}
		}
	}
	return touched, nil
}

// AmendedSince lists a task's amendments that were approved since a moment, oldest first.
func (tx *Tx) AmendedSince(task int64, since ralph.Time) ([]ralph.Amendment, error) {
	return amendmentRows.all(tx, `
		WHERE m.task_id = $1 AND m.status = 'approved' AND m.rolled_back_at = '' AND m.decided_at >= $2
		ORDER BY m.id LIMIT $3`, task, since, promptRows)
}
