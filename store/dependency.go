package store

import (
	"fmt"

	"ralph"
)

// AddDependency makes a task wait for another one. A circle is refused with
// [ralph.ErrConflict]; one that is there already is left as it is.
func (tx *Tx) AddDependency(id, on int64, source string) error {
	if _, err := tx.Task(on); err != nil {
		return err
	}
	if cycle, err := tx.WouldCycle(id, on); err != nil {
		return err
	} else if id == on {
		return fmt.Errorf("TASK-%d cannot depend on itself: %w", id, ralph.ErrConflict)
	} else if cycle {
		return fmt.Errorf("TASK-%d cannot depend on TASK-%d, which waits for it already (a circle): %w",
			id, on, ralph.ErrConflict)
	}
	if _, err := tx.exec(`
		INSERT INTO task_dependencies (task_id, depends_on, source, created) VALUES ($1, $2, $3, $4)
		ON CONFLICT (task_id, depends_on) DO NOTHING`, id, on, source, tx.now); err != nil {
		return err
	}
	return tx.Derive(id)
}

// DropDependency makes a task no longer wait for another one.
func (tx *Tx) DropDependency(id, on int64) error {
	n, err := tx.exec(`DELETE FROM task_dependencies WHERE task_id = $1 AND depends_on = $2`, id, on)
	if err != nil {
		return err
	}
	if n == 0 {
		return fmt.Errorf("TASK-%d does not depend on TASK-%d: %w", id, on, ralph.ErrNotFound)
	}
	return tx.Derive(id)
}

// WouldCycle reports whether a task may not depend on another one because that
// one, directly or by others, waits for it.
func (tx *Tx) WouldCycle(id, on int64) (bool, error) {
	if id == on {
		return true, nil
	}
	// Nothing waits for most tasks, in a long chain above all for its newest one:
	// then there is nothing to walk up.
	waits, err := value[bool](tx, `SELECT EXISTS (SELECT 1 FROM task_dependencies WHERE depends_on = $1)`, id)
	if err != nil || !waits {
		return false, err
	}
	return value[bool](tx, `
		WITH RECURSIVE upstream(id) AS (
			SELECT depends_on FROM task_dependencies WHERE task_id = $1
			UNION
			SELECT d.depends_on FROM task_dependencies d JOIN upstream u ON d.task_id = u.id)
		SELECT EXISTS (SELECT 1 FROM upstream WHERE id = $2)`, on, id)
}

// Dead are the dependencies of a task that will not complete by themselves:
// failed, cancelled or rejected ones.
func (tx *Tx) Dead(id int64) ([]ralph.Task, error) {
	return tasks.all(tx, `JOIN task_dependencies td ON td.depends_on = t.id
		WHERE td.task_id = $1 AND t.status IN ('failed', 'cancelled', 'rejected') ORDER BY t.id`, id)
}
