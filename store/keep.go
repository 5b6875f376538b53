package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"ralph"
)

// invariants are what ralph itself holds true of its data, beyond what the
// database refuses. Each query names the rows that contradict it.
var invariants = []struct{ what, mend, query string }{
	{"references that point nowhere", "", sqlite.dangling},
	{"sessions in progress on a task that is not", "`ralph run` settles what an earlier run left", `
		SELECT 'session ' || substr(s.id, 1, 8) || ' on TASK-' || t.id
		FROM sessions s JOIN tasks t ON t.id = s.task_id
		WHERE s.completed_at = '' AND t.status <> 'in_progress' ORDER BY t.id`},
	{"tasks in progress without a session", callOff, `
		SELECT 'TASK-' || t.id FROM tasks t
		WHERE t.status = 'in_progress' AND t.claimed_by = '' AND NOT EXISTS (
			SELECT 1 FROM sessions s WHERE s.task_id = t.id AND s.completed_at = '') ORDER BY t.id`},
	{"tasks that wait for an answer although no question is open", callOff, `
		SELECT 'TASK-' || t.id FROM tasks t WHERE t.status = 'needs_input'
			AND NOT EXISTS (SELECT 1 FROM task_comments c
				WHERE c.task_id = t.id AND c.holding = 1 AND (c.signal_verb = 'ask' OR c.kind = 'question')) ORDER BY t.id`},
	{"tasks " + Unaccepted, "look at what they ask for; `ralph task retry` has one done again", `
		SELECT 'TASK-' || t.id FROM tasks t WHERE t.status = 'completed' AND ` + acceptedReason + ` IS NULL ORDER BY t.id`},
}

const callOff = "`ralph task cancel` calls one off, and `ralph task retry` has it done again"

// A Problem is something that contradicts what ralph holds true of its data.
type Problem struct {
	What string   `json:"what"`
	Rows []string `json:"rows"` // all of them, in words
	Mend string   `json:"mend"` // what to do; "" if nothing but a copy helps
}

// Examine lists what contradicts what ralph itself holds true of its data; none if
// all is well. Whether the file itself is sound says [DB.Check].
func (db *DB) Examine(ctx context.Context) (problems []Problem, err error) {
	err = db.View(ctx, func(tx *Tx) error {
		for _, i := range invariants {
			rows, err := values[string](tx, i.query)
			if err != nil {
				return fmt.Errorf("%s: %w", i.what, err)
			}
			if len(rows) > 0 {
				problems = append(problems, Problem{i.what, rows, i.mend})
			}
		}
		return nil
	})
	return problems, err
}

// Vacuum rebuilds the file without the room that deleted rows have left, and
// empties the write-ahead log. It returns how many bytes the file has shrunk by.
func (db *DB) Vacuum(ctx context.Context) (freed int64, err error) {
	size := func() int64 {
		info, serr := os.Stat(db.path)
		if serr != nil {
			err = errors.Join(err, serr)
			return 0
		}
		return info.Size()
	}
	before := size()
	for _, statement := range []string{`VACUUM`, `PRAGMA wal_checkpoint(TRUNCATE)`} {
		if _, err := db.write.ExecContext(ctx, statement); err != nil {
			return 0, db.dialect.explain(err)
		}
	}
	return before - size(), err
}

// Restore puts a backup in the place of the database file at path. The backup is
// checked first; what it replaces is kept beside it, under the returned name. The
// caller sees to it that nobody uses the database.
func Restore(ctx context.Context, backup, path, stamp string) (kept string, err error) {
	info, err := os.Stat(backup)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() == 0 {
		return "", &ralph.FieldError{Field: "backup " + backup, Problem: "is not a copy of a database"}
	}
	// A copy of the copy is opened: opening migrates, and may leave files beside it.
	trial := path + ".restoring"
	if err := copyFile(backup, trial); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, removeDatabase(trial)) }()
	db, err := Open(ctx, trial, Options{})
	if err != nil {
		return "", fmt.Errorf("the backup cannot be used: %w", err)
	}
	// A copy has no write-ahead log, without which readers and writers wait for each other.
	if err = db.dialect.setUp(ctx, db.write); err == nil {
		err = db.Check(ctx)
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return "", fmt.Errorf("the backup cannot be used: %w", err)
	}
	aside := filepath.Join(filepath.Dir(path), "backups", "replaced-"+stamp+".db")
	// With its write-ahead log, in which the latest rows may be; one whose database is
	// gone would be taken for the copy's.
	for _, end := range []string{"", "-wal", "-shm"} {
		if _, err := os.Stat(path + end); errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(aside), 0o700); err != nil {
			return "", err
		}
		if err := os.Rename(path+end, aside+end); err != nil {
			return "", err
		}
		if end == "" {
			kept = aside
		}
	}
	return kept, os.Rename(trial, path)
}

func removeDatabase(path string) error {
	var errs []error
	for _, end := range []string{"", "-wal", "-shm", ".migrate"} {
		if err := os.Remove(path + end); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}
