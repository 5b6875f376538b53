package store

import (
	"database/sql"
	"errors"
	"fmt"

	"ralph"
)

const featureColumns = `id, name, description, learnings, verify, created, updated`

func scanFeature(row scanner) (ralph.Feature, error) {
	var f ralph.Feature
	err := row.Scan(&f.ID, &f.Name, &f.Description, &f.Learnings, column(&f.Verify), &f.Created, &f.Updated)
	return f, err
}

// Feature is the feature of that name. The error wraps [ralph.ErrNotFound].
func (tx *Tx) Feature(name string) (ralph.Feature, error) {
	f, err := scanFeature(tx.row(`SELECT `+featureColumns+` FROM features WHERE name = $1`, name))
	if errors.Is(err, sql.ErrNoRows) {
		return f, fmt.Errorf("feature %q: %w; add it with `ralph feature add`", name, ralph.ErrNotFound)
	}
	return f, err
}

// Features lists the features by name.
func (tx *Tx) Features() ([]ralph.Feature, error) {
	return all(tx, scanFeature, `SELECT `+featureColumns+` FROM features ORDER BY name`)
}

// FeaturesWithWork lists the features, by name, that have pending tasks; that of one
// pending task if its number is not 0.
func (tx *Tx) FeaturesWithWork(task int64) ([]ralph.Feature, error) {
	return all(tx, scanFeature, `
		SELECT `+featureColumns+` FROM features
		WHERE id IN (SELECT feature_id FROM tasks WHERE status = 'pending' AND (id = $1 OR $1 = 0))
		ORDER BY name`, task)
}

// PutFeature adds a feature, or changes the one whose id is set.
func (tx *Tx) PutFeature(f ralph.Feature) error {
	if err := ralph.CheckTitle("feature name", f.Name); err != nil {
		return err
	}
	if err := errors.Join(ralph.CheckText("description", f.Description, false), ralph.CheckText("learnings", f.Learnings, false), CheckCommands(f.Verify)); err != nil {
		return err
	}
	if err := tx.nameTaken("features", "feature", f.Name, f.ID); err != nil {
		return err
	}
	verify, err := text(f.Verify)
	if err != nil {
		return err
	}
	if f.ID == 0 {
		_, err = tx.exec(`INSERT INTO features (name, description, learnings, verify, created, updated) VALUES ($1, $2, $3, $4, $5, $5)`,
			f.Name, f.Description, f.Learnings, verify, tx.now.String())
		return err
	}
	if _, err = tx.exec(`UPDATE features SET name = $1, description = $2, learnings = $3, verify = $4, updated = $5 WHERE id = $6`,
		f.Name, f.Description, f.Learnings, verify, tx.now.String(), f.ID); err != nil {
		return err
	}
	_, err = tx.exec(`
		UPDATE sessions SET people_edited = 1
		WHERE completed_at = '' AND task_id IN (SELECT id FROM tasks WHERE feature_id = $1)`, f.ID)
	return err
}

const disciplineColumns = `id, name, instructions, model, created, updated`

func scanDiscipline(row scanner) (ralph.Discipline, error) {
	var d ralph.Discipline
	err := row.Scan(&d.ID, &d.Name, &d.Instructions, &d.Model, &d.Created, &d.Updated)
	return d, err
}

// Discipline is the discipline of that name. The error wraps [ralph.ErrNotFound].
func (tx *Tx) Discipline(name string) (ralph.Discipline, error) {
	d, err := scanDiscipline(tx.row(`SELECT `+disciplineColumns+` FROM disciplines WHERE name = $1`, name))
	if errors.Is(err, sql.ErrNoRows) {
		return d, fmt.Errorf("discipline %q: %w; add it with `ralph discipline add`", name, ralph.ErrNotFound)
	}
	return d, err
}

// Disciplines lists the disciplines by name.
func (tx *Tx) Disciplines() ([]ralph.Discipline, error) {
	return all(tx, scanDiscipline, `SELECT `+disciplineColumns+` FROM disciplines ORDER BY name`)
}

// PutDiscipline adds a discipline, or changes the one whose id is set.
func (tx *Tx) PutDiscipline(d ralph.Discipline) error {
	if err := ralph.CheckTitle("discipline name", d.Name); err != nil {
		return err
	}
	if err := ralph.CheckText("instructions", d.Instructions, false); err != nil {
		return err
	}
	if err := tx.nameTaken("disciplines", "discipline", d.Name, d.ID); err != nil {
		return err
	}
	var err error
	if d.ID == 0 {
		_, err = tx.exec(`INSERT INTO disciplines (name, instructions, model, created, updated) VALUES ($1, $2, $3, $4, $4)`,
			d.Name, d.Instructions, d.Model, tx.now.String())
		return err
	}
	_, err = tx.exec(`UPDATE disciplines SET name = $1, instructions = $2, model = $3, updated = $4 WHERE id = $5`,
		d.Name, d.Instructions, d.Model, tx.now.String(), d.ID)
	return err
}

// RemoveFeature deletes a feature by name. Its tasks stay, without it; what was
// learned for it goes, and what its tasks learned for the project or themselves stays.
func (tx *Tx) RemoveFeature(name string) error {
	f, err := tx.Feature(name)
	if err != nil {
		return err
	}
	if _, err := tx.exec(`UPDATE learnings SET feature_id = NULL WHERE feature_id = $1 AND scope <> 'feature'`, f.ID); err != nil {
		return err
	}
	_, err = tx.exec(`DELETE FROM features WHERE id = $1`, f.ID)
	return err
}

// RemoveDiscipline deletes a discipline by name; its tasks stay, without it.
func (tx *Tx) RemoveDiscipline(name string) error {
	d, err := tx.Discipline(name)
	if err != nil {
		return err
	}
	_, err = tx.exec(`DELETE FROM disciplines WHERE id = $1`, d.ID)
	return err
}

func (tx *Tx) nameTaken(table, what, name string, id int64) error {
	var n int
	if err := tx.row(`SELECT count(*) FROM `+table+` WHERE name = $1 AND id <> $2`, name, id).Scan(&n); err != nil {
		return err
	}
	if n > 0 {
		return fmt.Errorf("%s %q exists already: %w", what, name, ralph.ErrConflict)
	}
	return nil
}

// Progress is how far a feature is.
type Progress struct {
	Tasks     map[ralph.Status]int `json:"tasks"`
	Sessions  int                  `json:"sessions"`
	CostUSD   float64              `json:"cost_usd"`
	Open      int                  `json:"open"`      // questions and blockers that wait for a person
	Learnings int                  `json:"learnings"` // of the feature, active ones
}

// Progress sums a feature up. The error wraps [ralph.ErrNotFound].
func (tx *Tx) Progress(name string) (Progress, error) {
	p := Progress{Tasks: map[ralph.Status]int{}}
	f, err := tx.Feature(name)
	if err != nil {
		return p, err
	}
	type count struct {
		status ralph.Status
		n      int
	}
	counts, err := all(tx, func(row scanner) (c count, err error) { return c, row.Scan(&c.status, &c.n) },
		`SELECT status, count(*) FROM tasks WHERE feature_id = $1 GROUP BY status`, f.ID)
	if err != nil {
		return p, err
	}
	for _, c := range counts {
		p.Tasks[c.status] = c.n
	}
	if err := tx.row(`SELECT count(*), coalesce(sum(cost_usd), 0) FROM sessions WHERE task_id IN (SELECT id FROM tasks WHERE feature_id = $1)`, f.ID).
		Scan(&p.Sessions, &p.CostUSD); err != nil {
		return p, err
	}
	if err := tx.row(`SELECT count(*) FROM task_comments WHERE holding = 1 AND task_id IN (SELECT id FROM tasks WHERE feature_id = $1)`, f.ID).Scan(&p.Open); err != nil {
		return p, err
	}
	return p, tx.row(`SELECT count(*) FROM learnings WHERE scope = 'feature' AND status = 'active' AND feature_id = $1`, f.ID).Scan(&p.Learnings)
}
