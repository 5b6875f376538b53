package store

import (
	"ralph"
	"ralph/signals"
)

const learningColumns = `
	l.id, l.text, l.kind, l.scope, coalesce((SELECT f.name FROM features f WHERE f.id = l.feature_id), ''), coalesce(l.task_id, 0),
	l.rationale, l.origin, l.times_seen, l.last_seen, l.created, l.author,
	coalesce((SELECT json_group_array(lc.comment_id ORDER BY lc.comment_id) FROM learning_comments lc WHERE lc.learning_id = l.id), '[]')`

func scanLearning(row scanner) (ralph.Learning, error) {
	var l ralph.Learning
	err := row.Scan(&l.ID, &l.Text, &l.Kind, &l.Scope, &l.Feature, &l.TaskID,
		&l.Rationale, &l.Origin, &l.TimesSeen, &l.LastSeen, &l.Created, &l.Author, column(&l.Comments))
	return l, err
}

// LearningsFor are the learnings that go into the prompts of a task, of one
// scope: all of the project's, those of the task's feature, or the task's own.
// What was seen most often and most recently comes first.
func (tx *Tx) LearningsFor(t ralph.Task, scope string) ([]ralph.Learning, error) {
	where, args := `l.scope = 'project'`, []any{}
	switch scope {
	case ralph.ScopeFeature:
		where, args = `l.scope = 'feature' AND l.feature_id = (SELECT id FROM features WHERE name = $1)`, []any{t.Feature}
	case ralph.ScopeTask:
		where, args = `l.scope = 'task' AND l.task_id = $1`, []any{t.ID}
	}
	return all(tx, scanLearning, `SELECT `+learningColumns+` FROM learnings l WHERE l.status = 'active' AND `+where+`
		ORDER BY l.times_seen DESC, l.last_seen DESC, l.id`, args...)
}

// learn adds a learning, or raises the one that it repeats.
func (tx *Tx) learn(t ralph.Task, author string, l signals.Learn) error {
	id := l.Into
	var err error
	if id != 0 {
		_, err = tx.exec(`UPDATE learnings SET times_seen = times_seen + 1, last_seen = $1, text = $2, rationale = $3 WHERE id = $4`,
			tx.now.String(), l.Text, l.Rationale, id)
	} else {
		id, err = tx.insert(`
			INSERT INTO learnings (text, kind, scope, feature_id, task_id, rationale, origin, author, last_seen, created)
			VALUES ($1, $2, $3, (SELECT feature_id FROM tasks WHERE id = $4), $4, $5, 'agent', $6, $7, $7) RETURNING id`,
			l.Text, l.Kind, l.Scope, t.ID, l.Rationale, author, tx.now.String())
	}
	if err != nil {
		return err
	}
	_, err = tx.exec(`INSERT INTO learning_comments (learning_id, comment_id) VALUES ($1, $2) ON CONFLICT (learning_id, comment_id) DO NOTHING`, id, l.Comment)
	return err
}
