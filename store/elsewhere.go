package store

import (
	"ralph"
)

// Elsewhere holds events in other tasks during a session.
type Elsewhere struct {
	Merged   []MergedTask
	Answers  []AnsweredAsk    // to questions of tasks of the same feature
	Learned  []ralph.Learning // conventions and decisions for the whole project
	Blocking []ralph.Comment  // unresolved flags
}

// A MergedTask is a task whose change has been merged, and the files that the change touched.
type MergedTask struct {
	TaskID int64
	Files  []string
}

// Elsewhere reads the events in other tasks since a session began.
func (tx *Tx) Elsewhere(s ralph.Session) (e Elsewhere, err error) {
	if e.Merged, err = all(tx, func(row scanner) (l MergedTask, err error) {
		var files []ralph.FileChange
		err = row.Scan(&l.TaskID, column(&files))
		for _, f := range files {
			l.Files = append(l.Files, f.Path)
		}
		return l, err
	}, `
		SELECT c.task_id, o.files FROM changes c JOIN sessions o ON o.id = c.session_id
		WHERE c.state = 'merged' AND c.updated >= $1 AND c.task_id <> $2 ORDER BY c.id`, s.StartedAt, s.TaskID); err != nil {
		return e, err
	}
	t, err := tx.Task(s.TaskID)
	if err != nil {
		return e, err
	}
	answers, err := tx.Answers(t)
	for _, a := range answers {
		if !a.At.Before(s.StartedAt.Time) {
			e.Answers = append(e.Answers, a)
		}
	}
	if err != nil {
		return e, err
	}
	if e.Learned, err = learningRows.all(tx, `
		WHERE l.status = 'active' AND l.scope = 'project' AND l.kind IN ('convention', 'decision')
			AND l.created >= $1 AND coalesce(l.task_id, 0) <> $2
		ORDER BY l.id`, s.StartedAt, s.TaskID); err != nil {
		return e, err
	}
	e.Blocking, err = commentRows.all(tx, `
		WHERE c.signal_verb = 'flag' AND c.severity = 'blocking' AND c.resolved_at = ''
			AND c.created >= $1 AND c.task_id <> $2
		ORDER BY c.id`, s.StartedAt, s.TaskID)
	return e, err
}
