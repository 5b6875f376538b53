package store

import (
	"errors"
	"fmt"

	"ralph"
)

var featureRows = reads("features", func(f *ralph.Feature) []field {
	return []field{
		{"id", &f.ID},
		{"name", &f.Name},
		{"description", &f.Description},
		{"learnings", &f.Learnings},
		{"verify", column(&f.Verify)},
		{"created", &f.Created},
		{"updated", &f.Updated},
	}
})

var disciplineRows = reads("disciplines", func(d *ralph.Discipline) []field {
	return []field{
		{"id", &d.ID},
		{"name", &d.Name},
		{"instructions", &d.Instructions},
		{"model", &d.Model},
		{"agent", &d.Agent},
		{"review", &d.Review},
		{"parallel", &d.Parallel},
		{"created", &d.Created},
		{"updated", &d.Updated},
	}
})

// Feature returns the named feature. The error wraps [ralph.ErrNotFound] if there is none.
func (tx *Tx) Feature(name string) (ralph.Feature, error) {
	return featureRows.one(tx, fmt.Sprintf("feature %q", name), ralph.AddFeature, `WHERE name = $1`, name)
}

// Features lists the features by name.
func (tx *Tx) Features() ([]ralph.Feature, error) {
	return featureRows.all(tx, `ORDER BY name`)
}

// FeaturesWithWork lists the features that have pending tasks, by name. If task is not 0, it lists
// only the feature of that pending task.
func (tx *Tx) FeaturesWithWork(task int64) ([]ralph.Feature, error) {
	return featureRows.all(tx, `WHERE id IN (SELECT feature_id FROM tasks WHERE status = 'pending' AND (id = $1 OR $1 = 0))
		ORDER BY name`, task)
}

// PutFeature adds a feature, or changes it if its id is set.
func (tx *Tx) PutFeature(f ralph.Feature) error {
	if err := ralph.CheckTitle("feature name", f.Name); err != nil {
		return err
	}
	if err := errors.Join(
		ralph.CheckText("description", f.Description, false),
		ralph.CheckText("learnings", f.Learnings, false),
		CheckCommands(f.Verify),
	); err != nil {
		return err
	}
	if err := tx.nameTaken("features", "feature", f.Name, f.ID); err != nil {
		return err
	}
	r := cells{
		"name":        f.Name,
		"description": f.Description,
		"learnings":   f.Learnings,
		"verify":      asJSON(f.Verify),
		"updated":     tx.Now(),
	}
	if f.ID == 0 {
		r["created"] = tx.Now()
		_, err := tx.add("features", r)
		return err
	}
	if err := tx.set("features", f.ID, r); err != nil {
		return err
	}
	return tx.do(`
		UPDATE sessions SET people_edited = 1
		WHERE completed_at = '' AND task_id IN (SELECT id FROM tasks WHERE feature_id = $1)`, f.ID)
}

// Discipline returns the named discipline. The error wraps [ralph.ErrNotFound] if there is none.
func (tx *Tx) Discipline(name string) (ralph.Discipline, error) {
	return disciplineRows.one(tx, fmt.Sprintf("discipline %q", name), ralph.AddDiscipline, `WHERE name = $1`, name)
}

// Disciplines lists the disciplines by name.
func (tx *Tx) Disciplines() ([]ralph.Discipline, error) {
	return disciplineRows.all(tx, `ORDER BY name`)
}

// PutDiscipline adds a discipline, or changes it if its id is set.
func (tx *Tx) PutDiscipline(d ralph.Discipline) error {
	if err := ralph.CheckTitle("discipline name", d.Name); err != nil {
		return err
	}
	if err := ralph.CheckText("instructions", d.Instructions, false); err != nil {
		return err
	}
	if d.Parallel < 0 {
		return &ralph.FieldError{Field: "parallel", Problem: "must be 0 (no bound of its own) or more"}
	}
	if err := tx.nameTaken("disciplines", "discipline", d.Name, d.ID); err != nil {
		return err
	}
	r := cells{
		"name": d.Name, "instructions": d.Instructions, "model": d.Model, "agent": d.Agent, "review": d.Review,
		"parallel": d.Parallel, "updated": tx.Now(),
	}
	if d.ID == 0 {
		r["created"] = tx.Now()
		_, err := tx.add("disciplines", r)
		return err
	}
	return tx.set("disciplines", d.ID, r)
}

// RemoveFeature deletes a feature by name, with its own learnings. Its tasks stay, without a
// feature, and so do their learnings of project or task scope.
func (tx *Tx) RemoveFeature(name string) error {
	f, err := tx.Feature(name)
	if err != nil {
		return err
	}
	if err := tx.do(`
		UPDATE learnings SET feature_id = NULL WHERE feature_id = $1 AND scope <> 'feature'`, f.ID); err != nil {
		return err
	}
	return tx.do(`DELETE FROM features WHERE id = $1`, f.ID)
}

// RemoveDiscipline deletes a discipline by name; its tasks stay, without a discipline.
func (tx *Tx) RemoveDiscipline(name string) error {
	d, err := tx.Discipline(name)
	if err != nil {
		return err
	}
	return tx.do(`DELETE FROM disciplines WHERE id = $1`, d.ID)
}

// nameTaken returns an error if another row has the name, ignoring case: people would confuse them.
func (tx *Tx) nameTaken(table, what, name string, id int64) error {
	taken, err := value[string](tx,
		`SELECT coalesce(max(name), '') FROM `+table+` WHERE lower(name) = lower($1) AND id <> $2`, name, id)
	if err == nil && taken != "" {
		err = ralph.Conflict("%s %q exists already", what, taken)
	}
	return err
}

// Progress is the progress of a feature.
type Progress struct {
	Tasks     map[string]int `json:"tasks"` // by [ralph.Task.Key]
	Sessions  int            `json:"sessions"`
	CostUSD   float64        `json:"cost_usd"`
	Open      int            `json:"open"`      // questions and blockers that hold tasks
	Learnings int            `json:"learnings"` // active learnings of the feature
}

// FeatureTasks counts the tasks of a feature by [ralph.Task.Key], and the questions and blockers that hold them.
func (tx *Tx) FeatureTasks(id int64) (tasks map[string]int, open int, err error) {
	byStatus, err := byKey[ralph.Status, int](tx, `
		SELECT status, count(*) FROM tasks WHERE feature_id = $1 GROUP BY status`, id)
	if err == nil {
		tasks, err = tx.tally(byStatus, " AND t.feature_id = $1", id)
	}
	if err == nil {
		open, err = value[int](tx, `SELECT count(*) FROM task_comments c JOIN tasks t ON t.id = c.task_id
			WHERE c.holding = 1 AND t.feature_id = $1`, id)
	}
	return tasks, open, err
}

// Progress sums up a feature. The error wraps [ralph.ErrNotFound] if there is none.
func (tx *Tx) Progress(name string) (Progress, error) {
	var p Progress
	f, err := tx.Feature(name)
	if err != nil {
		return p, err
	}
	if p.Tasks, p.Open, err = tx.FeatureTasks(f.ID); err != nil {
		return p, err
	}
	return p, tx.row(`
		SELECT count(*), coalesce(sum(s.cost_usd), 0),
			(SELECT count(*) FROM learnings WHERE scope = 'feature' AND status = 'active' AND feature_id = $1)
		FROM sessions s JOIN tasks t ON t.id = s.task_id WHERE t.feature_id = $1`, f.ID).
		Scan(&p.Sessions, &p.CostUSD, &p.Learnings)
}

// CheckCommands returns an error for the first command that is not a valid verification command.
func CheckCommands(commands []string) error {
	for _, c := range commands {
		if err := ralph.CheckText("verification command", c, true); err != nil {
			return err
		}
	}
	return nil
}
