package store

import (
	"ralph"
)

// AddDependency makes a task wait for another one. A circle is refused with [ralph.ErrConflict]; an
// existing dependency is left as it is.
func (tx *Tx) AddDependency(id, on int64, source string) error {
	if _, err := tx.Task(on); err != nil {
		return err
	}
	if cycle, err := tx.WouldCycle(id, on); err != nil {
		return err
	} else if id == on {
		return ralph.Conflict("TASK-%d cannot depend on itself", id)
	} else if cycle {
		return ralph.Conflict("TASK-%d cannot depend on TASK-%d, which waits for it already (a circle)",
			id, on)
	}
	if err := tx.do(`
		INSERT INTO task_dependencies (task_id, depends_on, source, created) VALUES ($1, $2, $3, $4)
		ON CONFLICT (task_id, depends_on) DO NOTHING`, id, on, source, tx.Now()); err != nil {
		return err
	}
	return tx.Derive(id)
}

// DropDependency removes a dependency. The error wraps [ralph.ErrNotFound] if there is none.
func (tx *Tx) DropDependency(id, on int64) error {
	n, err := tx.exec(`DELETE FROM task_dependencies WHERE task_id = $1 AND depends_on = $2`, id, on)
	if err != nil {
		return err
	}
	if n == 0 {
		return ralph.NotFound("TASK-%d does not depend on TASK-%d", id, on)
	}
	return tx.Derive(id)
}

// WouldCycle reports whether the dependency of id on another task would close a circle: that task
// waits for id, directly or through others.
func (tx *Tx) WouldCycle(id, on int64) (bool, error) {
	if id == on {
		return true, nil
	}
	// Usually no task waits for id: then there is no circle, and nothing to walk.
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

// Graph lists all tasks by id, with their title, status, origin and dependencies, and nothing else.
func (tx *Tx) Graph() ([]ralph.Task, error) {
	tasks, err := all(tx, func(row scanner) (t ralph.Task, err error) {
		return t, row.Scan(&t.ID, &t.Title, &t.Status, &t.Origin)
	}, `SELECT id, title, status, origin FROM tasks ORDER BY id`)
	if err != nil {
		return nil, err
	}
	at := 0
	_, err = all(tx, func(row scanner) (none struct{}, err error) {
		var task, on int64
		if err = row.Scan(&task, &on); err != nil {
			return none, err
		}
		for at < len(tasks) && tasks[at].ID < task { // both are in the order of the tasks
			at++
		}
		if at < len(tasks) && tasks[at].ID == task {
			tasks[at].DependsOn = append(tasks[at].DependsOn, on)
		}
		return none, nil
	}, `SELECT task_id, depends_on FROM task_dependencies ORDER BY task_id, depends_on`)
	return tasks, err
}

// Dead lists the dependencies of a task that will not complete by themselves: failed, cancelled or
// rejected ones.
func (tx *Tx) Dead(id int64) ([]ralph.Task, error) {
	return taskRows.all(tx, `JOIN task_dependencies td ON td.depends_on = t.id
		WHERE td.task_id = $1 AND t.status IN ('failed', 'cancelled', 'rejected') ORDER BY t.id`, id)
}

// Behind counts the tasks that wait for a task, directly or not.
func (tx *Tx) Behind(id int64) (int, error) {
	return value[int](tx, `
		WITH RECURSIVE behind(id) AS (
			SELECT d.task_id FROM task_dependencies d WHERE d.depends_on = $1
			UNION SELECT d.task_id FROM task_dependencies d JOIN behind b ON d.depends_on = b.id)
		SELECT count(*) FROM tasks t WHERE t.id IN (SELECT id FROM behind)
			AND t.status NOT IN ('completed', 'cancelled', 'rejected')`, id)
}
