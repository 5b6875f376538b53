package store

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ralph"
	"ralph/internal/bm25"
	"ralph/signals"
)

const learningColumns = `
	l.id, l.text, l.kind, l.scope, coalesce((SELECT f.name FROM features f WHERE f.id = l.feature_id), ''), coalesce(l.task_id, 0),
	l.rationale, l.origin, l.times_seen, l.last_seen, l.created, l.author, l.pinned, l.status,
	coalesce((SELECT json_group_array(lc.comment_id ORDER BY lc.comment_id) FROM learning_comments lc WHERE lc.learning_id = l.id), '[]'),
	'[]', '[]', l.terms`

func scanLearning(row scanner) (ralph.Learning, error) {
	var l ralph.Learning
	var pinned int
	err := row.Scan(&l.ID, &l.Text, &l.Kind, &l.Scope, &l.Feature, &l.TaskID,
		&l.Rationale, &l.Origin, &l.TimesSeen, &l.LastSeen, &l.Created, &l.Author, &pinned, &l.Status, column(&l.Comments), column(&l.ContradictedBy), column(&l.Contradicts), &l.Terms)
	l.Pinned = pinned == 1
	return l, err
}

// withConflicts adds to learnings which of them contradict each other.
func (tx *Tx) withConflicts(list []ralph.Learning) ([]ralph.Learning, error) {
	type pair struct{ later, earlier int64 }
	pairs, err := all(tx, func(row scanner) (p pair, err error) { return p, row.Scan(&p.later, &p.earlier) }, `
		SELECT k.learning_id, k.other_id FROM learning_conflicts k
		JOIN learnings a ON a.id = k.learning_id JOIN learnings b ON b.id = k.other_id
		WHERE k.settled_at = '' AND a.status = 'active' AND b.status = 'active' ORDER BY k.learning_id, k.other_id`)
	if err != nil || len(pairs) == 0 {
		return list, err
	}
	at := map[int64]int{}
	for i, l := range list {
		at[l.ID] = i
	}
	for _, p := range pairs {
		if i, ok := at[p.later]; ok {
			list[i].Contradicts = append(list[i].Contradicts, p.earlier)
		}
		if i, ok := at[p.earlier]; ok {
			list[i].ContradictedBy = append(list[i].ContradictedBy, p.later)
		}
	}
	return list, nil
}

// Reconcile settles what contradicts a learning: both hold. It returns how many
// conflicts that were.
func (tx *Tx) Reconcile(id int64, by string) (int64, error) {
	if _, err := tx.Learning(id); err != nil {
		return 0, err
	}
	return tx.exec(`UPDATE learning_conflicts SET settled_at = $1, settled_by = $2 WHERE settled_at = '' AND $3 IN (learning_id, other_id)`,
		tx.now.String(), by, id)
}

// terms are the stems of a learning's words, as ranking counts them.
func terms(text, rationale string) string {
	return strings.Join(bm25.Words(text+" "+rationale), " ")
}

// audience is the condition on learnings that go into the prompts of a task, of
// one scope: all of the project's, those of the task's feature, or the task's own.
// Tasks without a feature are one group, as those of a feature are.
func audience(t ralph.Task, scope string) (where string, args []any) {
	switch scope {
	case ralph.ScopeFeature:
		if t.Feature == "" {
			return `l.status = 'active' AND l.scope = 'feature' AND l.feature_id IS NULL`, nil
		}
		return `l.status = 'active' AND l.scope = 'feature' AND l.feature_id = (SELECT id FROM features WHERE name = $1)`, []any{t.Feature}
	case ralph.ScopeTask:
		return `l.status = 'active' AND l.scope = 'task' AND l.task_id = $1`, []any{t.ID}
	}
	return `l.status = 'active' AND l.scope = 'project'`, nil
}

// learningOrder: what is pinned comes first, then what was seen most often and
// most recently.
const learningOrder = `l.pinned DESC, l.times_seen DESC, l.last_seen DESC, l.id`

// LearningsFor are the learnings that go into the prompts of a task, of one scope.
func (tx *Tx) LearningsFor(t ralph.Task, scope string) ([]ralph.Learning, error) {
	where, args := audience(t, scope)
	list, err := all(tx, scanLearning, `SELECT `+learningColumns+` FROM learnings l WHERE `+where+` ORDER BY `+learningOrder, args...)
	if err != nil {
		return nil, err
	}
	return tx.withConflicts(list)
}

// A Candidate is what ranking needs of a learning, of which there may be thousands.
type Candidate struct {
	ID    int64
	Terms string // the stems of its words
	First bool   // pinned, or written by a person
}

// Candidates are the learnings of [Tx.LearningsFor], in its order.
func (tx *Tx) Candidates(t ralph.Task, scope string) ([]Candidate, error) {
	where, args := audience(t, scope)
	return all(tx, func(row scanner) (c Candidate, err error) {
		var first int
		var unread string
		if err = row.Scan(&c.ID, &c.Terms, &first, &unread); c.Terms == "" {
			c.Terms = terms(unread, "")
		}
		c.First = first == 1
		return c, err
	}, `SELECT l.id, l.terms, CASE WHEN l.pinned = 1 OR l.origin = 'human' THEN 1 ELSE 0 END,
		CASE WHEN l.terms = '' THEN l.text ELSE '' END FROM learnings l WHERE `+where+` ORDER BY `+learningOrder, args...)
}

// LearningsByID are these learnings, in this order.
func (tx *Tx) LearningsByID(ids []int64) ([]ralph.Learning, error) {
	wanted, err := text(ids)
	if err != nil {
		return nil, err
	}
	list, err := all(tx, scanLearning, `SELECT `+learningColumns+` FROM learnings l WHERE l.id IN (SELECT value FROM json_each($1))`, wanted)
	if err != nil {
		return nil, err
	}
	at := make(map[int64]int, len(ids))
	for i, id := range ids {
		at[id] = i
	}
	slices.SortFunc(list, func(a, b ralph.Learning) int { return at[a.ID] - at[b.ID] })
	return tx.withConflicts(list)
}

// learn adds a learning, or raises the one that it repeats.
func (tx *Tx) learn(t ralph.Task, author string, l signals.Learn) error {
	id := l.Into
	var err error
	if id != 0 {
		_, err = tx.exec(`UPDATE learnings SET times_seen = times_seen + $1, last_seen = $2, text = $3, rationale = $4, terms = $5 WHERE id = $6`,
			len(l.Comments), tx.now.String(), l.Text, l.Rationale, terms(l.Text, l.Rationale), id)
	} else {
		id, err = tx.insert(`
			INSERT INTO learnings (text, kind, scope, feature_id, task_id, rationale, origin, author, last_seen, created, times_seen, terms)
			VALUES ($1, $2, $3, (SELECT feature_id FROM tasks WHERE id = $4), $4, $5, 'agent', $6, $7, $7, $8, $9) RETURNING id`,
			l.Text, l.Kind, l.Scope, t.ID, l.Rationale, author, tx.now.String(), len(l.Comments), terms(l.Text, l.Rationale))
	}
	if err == nil {
		err = tx.noteConflicts(id, l.Contradicts)
	}
	for _, c := range l.Comments {
		if err != nil {
			return err
		}
		_, err = tx.exec(`INSERT INTO learning_comments (learning_id, comment_id) VALUES ($1, $2) ON CONFLICT (learning_id, comment_id) DO NOTHING`, id, c)
	}
	return err
}

// noteConflicts notes which earlier learnings one says the contrary of.
func (tx *Tx) noteConflicts(id int64, others []int64) error {
	for _, other := range others {
		if _, err := tx.exec(`
			INSERT INTO learning_conflicts (learning_id, other_id, created) VALUES ($1, $2, $3)
			ON CONFLICT (learning_id, other_id) DO NOTHING`, id, other, tx.now.String()); err != nil {
			return err
		}
	}
	return nil
}

// Teach adds what a person knows. What is known in these words already is refused
// with [ralph.ErrConflict]; what is known to the contrary is noted.
func (tx *Tx) Teach(l ralph.Learning) (int64, error) {
	if err := checkLearning(l); err != nil {
		return 0, err
	}
	known, err := tx.Learnings(LearningFilter{Scope: l.Scope, Feature: l.Feature})
	if err != nil {
		return 0, err
	}
	same, contrary := signals.Against(l.Text, known)
	if same != nil {
		return 0, fmt.Errorf("learning %d says that already; `ralph learning edit %d` changes its words, `ralph learning pin %d` puts it first: %w", same.ID, same.ID, same.ID, ralph.ErrConflict)
	}
	id, err := tx.AddLearning(l)
	if err != nil {
		return 0, err
	}
	return id, tx.noteConflicts(id, contrary)
}

// A LearningFilter narrows a list of learnings; the zero value is all that are known.
type LearningFilter struct {
	Scope     string
	Feature   string // only what is known of this feature, and of its tasks alone
	Forgotten bool   // those that were forgotten too
}

// Learnings lists learnings, pinned ones first.
func (tx *Tx) Learnings(f LearningFilter) ([]ralph.Learning, error) {
	where, args := []string{"1 = 1"}, []any{}
	add := func(clause string, v any) {
		args = append(args, v)
		where = append(where, fmt.Sprintf(clause, len(args)))
	}
	if !f.Forgotten {
		where = append(where, "l.status = 'active'")
	}
	if f.Scope != "" {
		add("l.scope = $%d", f.Scope)
	}
	if f.Feature != "" {
		if _, err := tx.Feature(f.Feature); err != nil {
			return nil, err
		}
		where = append(where, "l.scope <> 'project'")
		add("l.feature_id = (SELECT id FROM features WHERE name = $%d)", f.Feature)
	}
	list, err := all(tx, scanLearning, `SELECT `+learningColumns+` FROM learnings l WHERE `+strings.Join(where, " AND ")+`
		ORDER BY l.pinned DESC, l.times_seen DESC, l.last_seen DESC, l.id`, args...)
	if err != nil {
		return nil, err
	}
	return tx.withConflicts(list)
}

// Learning is one learning.
func (tx *Tx) Learning(id int64) (ralph.Learning, error) {
	l, err := scanLearning(tx.row(`SELECT `+learningColumns+` FROM learnings l WHERE l.id = $1`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return l, fmt.Errorf("learning %d: %w", id, ralph.ErrNotFound)
	}
	if err != nil {
		return l, err
	}
	list, err := tx.withConflicts([]ralph.Learning{l})
	return list[0], err
}

// AddLearning adds a learning that no session made: what an import brings, and
// what [Tx.Teach] found to be new.
func (tx *Tx) AddLearning(l ralph.Learning) (int64, error) {
	if err := checkLearning(l); err != nil {
		return 0, err
	}
	var feature any
	if l.Scope == ralph.ScopeFeature {
		f, err := tx.Feature(l.Feature)
		if err != nil {
			return 0, err
		}
		feature = f.ID
	}
	if l.Origin == "" {
		l.Origin = ralph.ByHuman
	}
	pinned := 0
	if l.Pinned {
		pinned = 1
	}
	return tx.insert(`
		INSERT INTO learnings (text, kind, scope, feature_id, rationale, origin, author, last_seen, created, pinned, terms)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8, $9, $10) RETURNING id`,
		l.Text, l.Kind, l.Scope, feature, l.Rationale, string(l.Origin), l.Author, tx.now.String(), pinned, terms(l.Text, l.Rationale))
}

func checkLearning(l ralph.Learning) error {
	if err := ralph.CheckText("text", l.Text, true); err != nil {
		return err
	}
	if !slices.Contains(signals.LearnedKinds, l.Kind) {
		return &ralph.FieldError{Field: fmt.Sprintf("kind %q", l.Kind), Problem: "is not one of the accepted values", Accepted: signals.LearnedKinds}
	}
	if l.Scope != ralph.ScopeProject && l.Scope != ralph.ScopeFeature {
		return &ralph.FieldError{Field: fmt.Sprintf("scope %q", l.Scope), Problem: "is not one of the accepted values", Accepted: []string{ralph.ScopeProject, ralph.ScopeFeature}}
	}
	if l.Scope == ralph.ScopeFeature && l.Feature == "" {
		return &ralph.FieldError{Field: "feature", Problem: "is required for what is known of a feature"}
	}
	return ralph.CheckText("rationale", l.Rationale, false)
}

// ChangeLearning writes a learning's text, rationale, pin and status. A conflict
// that there is no more in its new words is settled.
func (tx *Tx) ChangeLearning(l ralph.Learning) error {
	if err := ralph.CheckText("text", l.Text, true); err != nil {
		return err
	}
	pinned := 0
	if l.Pinned {
		pinned = 1
	}
	if _, err := tx.exec(`UPDATE learnings SET text = $1, rationale = $2, pinned = $3, status = $4, terms = $5 WHERE id = $6`,
		l.Text, l.Rationale, pinned, l.Status, terms(l.Text, l.Rationale), l.ID); err != nil {
		return err
	}
	for _, id := range slices.Concat(l.Contradicts, l.ContradictedBy) {
		other, err := tx.Learning(id)
		if err != nil {
			return err
		}
		if signals.Compare(l.Text, other.Text) == signals.Contradicts {
			continue
		}
		if _, err := tx.exec(`
			UPDATE learning_conflicts SET settled_at = $1, settled_by = 'edited'
			WHERE settled_at = '' AND (learning_id = $2 AND other_id = $3 OR learning_id = $3 AND other_id = $2)`, tx.now.String(), l.ID, id); err != nil {
			return err
		}
	}
	return nil
}

// MergeLearnings makes one learning of two: into has been seen as often as both,
// and knows the signals of both; the other is forgotten.
func (tx *Tx) MergeLearnings(from, into int64) error {
	if from == into {
		return &ralph.FieldError{Field: "learning", Problem: "cannot be merged with itself"}
	}
	a, err := tx.Learning(from)
	if err != nil {
		return err
	}
	b, err := tx.Learning(into)
	if err != nil {
		return err
	}
	for _, l := range []ralph.Learning{a, b} {
		if l.Status == "forgotten" {
			return fmt.Errorf("learning %d was forgotten; `ralph learning forget %d --undo` brings it back: %w", l.ID, l.ID, ralph.ErrConflict)
		}
	}
	if _, err := tx.exec(`
		INSERT INTO learning_comments (learning_id, comment_id) SELECT $1, comment_id FROM learning_comments WHERE learning_id = $2
		ON CONFLICT (learning_id, comment_id) DO NOTHING`, into, from); err != nil {
		return err
	}
	if _, err := tx.exec(`UPDATE learnings SET times_seen = times_seen + $1, last_seen = CASE WHEN last_seen < $2 THEN $2 ELSE last_seen END WHERE id = $3`, a.TimesSeen, a.LastSeen.String(), into); err != nil {
		return err
	}
	a.Status = "forgotten"
	return tx.ChangeLearning(a)
}
