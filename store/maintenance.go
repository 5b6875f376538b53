package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// invariants are the rules of ralph's own that the database does not enforce. Each query names the
// rows that break one.
var invariants = []struct{ what, mend, query string }{
	{
		"tasks that are gone (removed outside of ralph?)",
		"a copy brings them back: `ralph db restore`, on a server pg_restore", `
		SELECT DISTINCT 'TASK-' || e.task_id FROM events e
		WHERE e.type = 'task.created' AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.id = e.task_id) ORDER BY 1`,
	},
	{"sessions in progress on a task that is not", "`ralph run` decides on the work of an earlier run", `
		SELECT 'session ' || substr(s.id, 1, 8) || ' on TASK-' || t.id
		FROM sessions s JOIN tasks t ON t.id = s.task_id
		WHERE s.completed_at = '' AND t.status <> 'in_progress' ORDER BY t.id`},
	{"tasks in progress without a session", callOff, `
		SELECT 'TASK-' || t.id FROM tasks t
		WHERE t.status = 'in_progress' AND t.claimed_by = '' AND NOT EXISTS (
			SELECT 1 FROM sessions s WHERE s.task_id = t.id AND s.completed_at = '') ORDER BY t.id`},
	{"tasks that are merging without a change in the queue", "`ralph task retry --as-is`, or " + callOff, `
		SELECT 'TASK-' || t.id FROM tasks t WHERE t.status = 'merging' AND NOT EXISTS (
			SELECT 1 FROM changes c WHERE c.task_id = t.id AND ` + inQueue + `) ORDER BY t.id`},
	{"changes in the queue of tasks that are not merging", "`ralph task retry --fresh`", `
		SELECT 'change ' || c.id || ' of TASK-' || c.task_id FROM changes c JOIN tasks t ON t.id = c.task_id
		WHERE ` + inQueue + ` AND t.status <> 'merging' ORDER BY c.id`},
	{"tasks that wait for an answer although no question is open", callOff, `
		SELECT 'TASK-' || t.id FROM tasks t WHERE t.status = 'needs_input'
			AND NOT EXISTS (SELECT 1 FROM task_comments c
				WHERE c.task_id = t.id AND c.holding = 1 AND (c.signal_verb = 'ask' OR c.kind = 'question')) ORDER BY t.id`},
	{"tasks " + Unaccepted, "read them; `ralph retry ID --again` has one done once more", `
		SELECT 'TASK-' || t.id FROM tasks t WHERE t.status = 'completed' AND ` + acceptedReason + ` IS NULL ORDER BY t.id`},
}

const callOff = "`ralph task cancel` calls one off, and `ralph task retry` has it done again"

// A Violation is a broken invariant.
type Violation struct {
	What string   `json:"what"`
	Rows []string `json:"rows"` // the rows that break it, in words
	Mend string   `json:"mend"` // remedy; "" if only restoring a backup helps
}

// Examine lists the broken invariants; none if all is well. For the integrity of the file itself
// see [DB.Check].
func (db *DB) Examine(ctx context.Context) (problems []Violation, err error) {
	err = db.View(ctx, func(tx *Tx) error {
		if tx.db.dialect.dangling != "" {
			rows, err := values[string](tx, tx.db.dialect.dangling)
			if err != nil {
				return fmt.Errorf("references that point nowhere: %w", err)
			}
			if len(rows) > 0 {
				problems = append(problems, Violation{What: "references that point nowhere", Rows: rows})
			}
		}
		for _, i := range invariants {
			rows, err := values[string](tx, i.query)
			if err != nil {
				return fmt.Errorf("%s: %w", i.what, err)
			}
			if len(rows) > 0 {
				problems = append(problems, Violation{i.what, rows, i.mend})
			}
		}
		return nil
	})
	return problems, err
}

// Check verifies the database's integrity and its durability settings. It returns the first
// problem.
func (db *DB) Check(ctx context.Context) error {
	if err := db.dialect.check(ctx, db.write); err != nil {
		return err
	}
	if err := db.View(ctx, allReadable); err != nil {
		return err
	}
	return db.dialect.durable(ctx, db.write)
}

// allReadable returns an error unless every value that people and runs read has the form that ralph writes.
func allReadable(tx *Tx) error {
	for _, read := range []func(*Tx) error{
		taskRows.readable, sessionRows.readable, commentRows.readable, eventRows.readable, runRows.readable,
		changeRows.readable,
		amendmentRows.readable, learningRows.readable, featureRows.readable, disciplineRows.readable, permissionRows.readable,
		checkpointRows.readable,
	} {
		if err := read(tx); err != nil {
			return err
		}
	}
	return nil
}

// ErrNoBackup says that a file is not a copy of a queue.
var ErrNoBackup = errors.New("this is not a backup")

// A Restored describes the effect of [Restore].
type Restored struct {
	Kept  string // the file of the replaced one; "" if there was none
	Lacks int64  // changes of the replaced one that the copy lacks; 0 if unknown
}

// Restore replaces the database file at path by a copy, with the log beside the copy, if any. It checks the copy first.
// The caller makes sure that nobody uses the database.
func Restore(ctx context.Context, backup, path, stamp string) (r Restored, err error) {
	info, err := os.Stat(backup)
	if err != nil {
		return r, err
	}
	if !info.Mode().IsRegular() || info.Size() == 0 {
		return r, fmt.Errorf("%s: %w: it is empty or no file; nothing was changed", backup, ErrNoBackup)
	}
	// It opens a copy of the backup: opening migrates, and may leave files beside it.
	trial := path + ".restoring"
	defer func() { err = errors.Join(err, removeDatabase(trial)) }()
	if err := removeDatabase(trial); err != nil {
		return r, err
	}
	for _, end := range []string{"", "-wal"} {
		if err := copyFile(backup+end, trial+end); err != nil && (end == "" || !errors.Is(err, os.ErrNotExist)) {
			return r, err
		}
	}
	if err := tryOut(ctx, trial); err != nil {
		return r, fmt.Errorf("the backup cannot be used: %s: %w; nothing was changed", backup, err)
	}
	// Without both marks, Lacks stays 0.
	if before, err := ReadMark(path); err == nil {
		if now, err := ReadMark(trial); err == nil && now.Database == before.Database {
			r.Lacks = max(0, before.Commits-now.Commits)
		}
	}
	aside := filepath.Join(filepath.Dir(path), "backups", "replaced-"+stamp+".db")
	// The write-ahead log moves too: it may hold the latest rows, and a leftover log would be
	// applied to the restored copy.
	for _, end := range databaseFiles {
		if !exists(path + end) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(aside), 0o700); err != nil {
			return r, err
		}
		if err := os.Rename(path+end, aside+end); err != nil {
			return r, err
		}
		if end == "" {
			r.Kept = aside
		}
	}
	return r, errors.Join(
		os.Rename(MarkFile(trial), MarkFile(path)), os.Rename(trial, path), syncFolder(filepath.Dir(path)))
}

// tryOut makes a copy of a database usable, or says why it cannot be used.
func tryOut(ctx context.Context, path string) (err error) {
	judge := func(f Found) error {
		switch {
		case f.Damage != "":
			return errors.New(f.Damage)
		case !f.Tables:
			return fmt.Errorf(
				"%w: it has no tables; a copy of ralph.db that was made without ralph.db-wal may have none", ErrNoBackup)
		case !f.Tasks:
			return fmt.Errorf("%w: there is no task in it", ErrNoBackup)
		}
		return nil
	}
	db, err := Open(ctx, path, Options{Judge: judge})
	if err != nil {
		return err
	}
	// A copy is not in WAL mode, without which readers and writers block each other.
	if err = db.dialect.setUp(ctx, db.write); err == nil {
		err = db.Check(ctx)
	}
	return errors.Join(err, db.Close())
}

// Sound returns an error if [Restore] would refuse a copy that [DB.Backup] made. It changes nothing. So it does not
// read the values of a copy by an older ralph, which would need a migration first.
func Sound(ctx context.Context, path string) error {
	pool, err := openCopy(path)
	if err != nil {
		return err
	}
	db := &DB{path: path, dialect: sqlite, read: pool, now: time.Now}
	if err = sqlite.check(ctx, pool); err == nil {
		if err = db.View(ctx, allReadable); !Corrupt(err) {
			err = nil
		}
	}
	return errors.Join(err, pool.Close())
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
