package store

import (
	"fmt"

	"ralph"
)

// Machines lists the machines on which runs work or have worked, by name.
func (tx *Tx) Machines() ([]ralph.Machine, error) {
	list, err := machineRows.all(tx, `ORDER BY m.name`)
	for i := range list {
		if err == nil {
			err = tx.standing(&list[i])
		}
	}
	return list, err
}

// Machine returns one machine.
func (tx *Tx) Machine(name string) (ralph.Machine, error) {
	m, err := machineRows.one(tx, fmt.Sprintf("machine %q", name), ralph.ListMachines, `WHERE m.name = $1`, name)
	if err == nil {
		err = tx.standing(&m)
	}
	return m, err
}

// standing reads the current activity of a machine.
func (tx *Tx) standing(m *ralph.Machine) error {
	list, err := runRows.all(tx, `WHERE r.machine = $1 AND (r.ended_at = '' OR r.id = (
		SELECT max(id) FROM runs WHERE machine = $1)) ORDER BY r.id`, m.Name)
	for _, r := range list {
		alive := tx.Alive(r)
		if m.Alive && !alive { // the newest live run, else the newest
			continue
		}
		m.Alive, m.RunID, m.SeenAt, m.LeaseUntil = alive, r.ID, r.EndedAt, ralph.Time{}
		switch {
		case !r.EndedAt.IsZero():
		case alive && !tx.db.Shared(): // in a file, leases are not renewed
			m.SeenAt = tx.Now()
		default:
			m.LeaseUntil, m.SeenAt = r.LeaseUntil, ralph.At(r.LeaseUntil.Add(-LeaseTime))
		}
	}
	if err == nil {
		m.Sessions, err = value[int](tx, `SELECT count(*) FROM sessions s
			WHERE s.completed_at = '' AND s.role IN ('work', 'plan') AND s.machine = $1`, m.Name)
	}
	return err
}

// Drain makes the runs of a machine end after their sessions, and begins no further session there. With undo, sessions
// may begin again.
func (tx *Tx) Drain(name, by string, undo bool) error {
	if _, err := tx.Machine(name); err != nil {
		return err
	}
	at := tx.Now()
	if undo {
		at, by = ralph.Time{}, ""
	}
	return tx.do(`UPDATE machines SET drained_at = $1, drained_by = $2 WHERE name = $3`, at, by, name)
}

// RemoveMachine deletes a machine and ends its lost runs; their sessions wait for a decision. The error wraps
// [ralph.ErrConflict] while one of its runs works.
func (tx *Tx) RemoveMachine(name string) error {
	m, err := tx.Machine(name)
	if err == nil && m.Alive {
		err = stillThere(m)
	}
	if err == nil {
		err = tx.EndLostRuns()
	}
	if err == nil {
		err = tx.do(`DELETE FROM machines WHERE name = $1`, name)
	}
	return err
}

// stillThere returns the error for a machine that cannot be removed because a run works there.
func stillThere(m ralph.Machine) error {
	until := ""
	if !m.LeaseUntil.IsZero() {
		until = fmt.Sprintf("; if %s is gone, it is taken for lost at %s", m.Name, m.LeaseUntil)
	}
	return refused(ralph.DrainMachine, 0, "run %d works on %s%s", m.RunID, m.Name, until)
}
