package store

import (
	"fmt"
	"slices"
	"strings"

	"ralph"
	"ralph/internal/bm25"
	"ralph/signals"
)

var learningRows = reads("learnings l", func(l *ralph.Learning) []field {
	return []field{
		{"l.id", &l.ID},
		{"l.text", &l.Text},
		{"l.kind", &l.Kind},
		{"l.scope", &l.Scope},
		{"coalesce((SELECT f.name FROM features f WHERE f.id = l.feature_id), '')", &l.Feature},
		{"coalesce(l.task_id, 0)", &l.TaskID},
		{"l.rationale", &l.Rationale},
		{"l.origin", &l.Origin},
		{"l.times_seen", &l.TimesSeen},
		{"l.last_seen", &l.LastSeen},
		{"l.created", &l.Created},
		{"l.author", &l.Author},
		{"l.pinned", &l.Pinned},
		{"l.status", &l.Status},
		{"l.claim", &l.Claim},
		{`(SELECT string_agg(CAST(lc.comment_id AS TEXT), ',' ORDER BY lc.comment_id)
			FROM learning_comments lc WHERE lc.learning_id = l.id)`, idList{&l.Comments}},
		{"l.terms", &l.Terms},
	}
})

// terms returns the stems of a learning's words, for ranking.
func terms(text, rationale string) string {
	return strings.Join(bm25.Words(text+" "+rationale), " ")
}

// audience selects the active learnings of one scope that apply to a task: the project's, those of
// its feature, or the task's own. Tasks without a feature form one group.
func audience(t ralph.Task, scope string) (f filter) {
	f.and(`l.status = 'active'`)
	f.and(`l.scope = ?`, scope)
	switch {
	case scope == ralph.ScopeTask:
		f.and(`l.task_id = ?`, t.ID)
	case scope == ralph.ScopeFeature && t.Feature == "":
		f.and(`l.feature_id IS NULL`)
	case scope == ralph.ScopeFeature:
		f.and(`l.feature_id = (SELECT id FROM features WHERE name = ?)`, t.Feature)
	}
	return f
}

// learningOrder puts pinned learnings first, then those seen most often, then most recently.
const learningOrder = ` ORDER BY l.pinned DESC, l.times_seen DESC, l.last_seen DESC, l.id`

// LearningsFor lists the learnings of one scope that apply to a task.
func (tx *Tx) LearningsFor(t ralph.Task, scope string) ([]ralph.Learning, error) {
	return tx.learningsBy(audience(t, scope))
}

func (tx *Tx) learningsBy(f filter) ([]ralph.Learning, error) {
	return learningRows.all(tx, f.where()+learningOrder, f.args...)
}

// learn adds a learning, or raises the count of the one that it repeats. Its author is author, or in a person's session
// the person, if she stated it herself.
func (tx *Tx) learn(t ralph.Task, s ralph.Session, author string, l signals.Learn) error {
	id, origin := l.Into, ralph.ByAgent
	var err error
	if s.Origin == ralph.FromHuman {
		said, err := value[string](tx, `SELECT author FROM task_comments WHERE id = $1`, l.Comments[0])
		if err != nil {
			return err
		}
		if said == s.Worker {
			author, origin = said, ralph.ByHuman
		}
	}
	if id != 0 {
		err = tx.do(`
			UPDATE learnings SET times_seen = times_seen + $1, last_seen = $2, text = $3, rationale = $4, terms = $5,
				claim = CASE WHEN $6 AND text <> $3 THEN 1 ELSE claim END
			WHERE id = $7`, len(l.Comments), tx.Now(), l.Text, l.Rationale, terms(l.Text, l.Rationale),
			l.Claim && origin != ralph.ByHuman, id)
	} else {
		var feature *int64
		if feature, err = value[*int64](tx, `SELECT feature_id FROM tasks WHERE id = $1`, t.ID); err != nil {
			return err
		}
		id, err = tx.add("learnings", cells{
			"text":       l.Text,
			"kind":       l.Kind,
			"scope":      l.Scope,
			"feature_id": feature,
			"task_id":    t.ID,
			"rationale":  l.Rationale,
			"origin":     origin,
			"author":     author,
			"last_seen":  tx.Now(),
			"created":    tx.Now(),
			"times_seen": len(l.Comments),
			"claim":      l.Claim && origin != ralph.ByHuman,
			"terms":      terms(l.Text, l.Rationale),
		})
	}
	for _, c := range l.Comments {
		if err != nil {
			return err
		}
		err = tx.do(`
			INSERT INTO learning_comments (learning_id, comment_id) VALUES ($1, $2)
			ON CONFLICT (learning_id, comment_id) DO NOTHING`, id, c)
	}
	return err
}

// Teach adds a person's learning. The error wraps [ralph.ErrConflict] if these words are already known.
func (tx *Tx) Teach(l ralph.Learning) (int64, error) {
	if err := checkLearning(l); err != nil {
		return 0, err
	}
	known, err := tx.Learnings(LearningFilter{Scope: l.Scope, Feature: l.Feature})
	if err != nil {
		return 0, err
	}
	if same := signals.Repeated(l.Text, known); same != nil {
		return 0, refused(ralph.ChangeLearning, same.ID, "learning %d says that already", same.ID)
	}
	return tx.AddLearning(l)
}

// A LearningFilter narrows a list of learnings; the zero value selects all that are not forgotten.
type LearningFilter struct {
	Scope     string
	Feature   string // only learnings of this feature and of its tasks
	Forgotten bool   // include forgotten ones
}

// Learnings lists learnings, pinned ones first.
func (tx *Tx) Learnings(f LearningFilter) ([]ralph.Learning, error) {
	var by filter
	if !f.Forgotten {
		by.and("l.status = 'active'")
	}
	if f.Scope != "" {
		by.and("l.scope = ?", f.Scope)
	}
	if f.Feature != "" {
		if _, err := tx.Feature(f.Feature); err != nil {
			return nil, err
		}
		by.and("l.scope <> 'project'")
		by.and("l.feature_id = (SELECT id FROM features WHERE name = ?)", f.Feature)
	}
	return tx.learningsBy(by)
}

// Learning returns one learning.
func (tx *Tx) Learning(id int64) (ralph.Learning, error) {
	return learningRows.one(tx, fmt.Sprintf("learning %d", id), ralph.ListLearnings, `WHERE l.id = $1`, id)
}

// AddLearning adds a learning that no session made: an imported one, or one that [Tx.Teach] found
// to be new.
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
	return tx.add("learnings", cells{
		"text":       l.Text,
		"kind":       l.Kind,
		"scope":      l.Scope,
		"feature_id": feature,
		"rationale":  l.Rationale,
		"origin":     l.Origin,
		"author":     l.Author,
		"last_seen":  tx.Now(),
		"created":    tx.Now(),
		"pinned":     l.Pinned,
		"terms":      terms(l.Text, l.Rationale),
	})
}

func checkLearning(l ralph.Learning) error {
	if err := ralph.CheckText("text", l.Text, true); err != nil {
		return err
	}
	if !slices.Contains(signals.LearnedKinds, l.Kind) {
		return &ralph.FieldError{Field: fmt.Sprintf("kind %q",
			l.Kind), Problem: "is not one of the accepted values", Accepted: signals.LearnedKinds}
	}
	if l.Scope != ralph.ScopeProject && l.Scope != ralph.ScopeFeature {
		return &ralph.FieldError{Field: fmt.Sprintf("scope %q",
			l.Scope), Problem: "is not one of the accepted values", Accepted: []string{ralph.ScopeProject, ralph.ScopeFeature}}
	}
	if l.Scope == ralph.ScopeFeature && l.Feature == "" {
		return &ralph.FieldError{Field: "feature", Problem: "is required for a feature's learnings"}
	}
	return ralph.CheckText("rationale", l.Rationale, false)
}

// ChangeLearning updates a learning's text, rationale, pin and status.
func (tx *Tx) ChangeLearning(l ralph.Learning) error {
	if err := ralph.CheckText("text", l.Text, true); err != nil {
		return err
	}
	return tx.set("learnings", l.ID, cells{
		"text":      l.Text,
		"rationale": l.Rationale,
		"pinned":    l.Pinned,
		"status":    l.Status,
		"claim":     l.Claim,
		"terms":     terms(l.Text, l.Rationale),
	})
}

// MergeLearnings merges one learning into another, which gets the counts and the signals of both. The first is
// forgotten.
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
		if l.Status == ralph.Forgotten {
			return refused(ralph.RecallLearning, l.ID, "learning %d was forgotten", l.ID)
		}
	}
	if err := tx.do(`
		INSERT INTO learning_comments (learning_id, comment_id)
		SELECT $1, comment_id FROM learning_comments WHERE learning_id = $2
		ON CONFLICT (learning_id, comment_id) DO NOTHING`, into, from); err != nil {
		return err
	}
	if err := tx.do(`
		UPDATE learnings
		SET times_seen = times_seen + $1, last_seen = CASE WHEN last_seen < $2 THEN $2 ELSE last_seen END
		WHERE id = $3`, a.TimesSeen, a.LastSeen, into); err != nil {
		return err
	}
	a.Status = ralph.Forgotten
	return tx.ChangeLearning(a)
}
