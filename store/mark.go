package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/uuid"
)

// SQLite treats the end of a damaged write-ahead log as the end of the commits, and creates a new database if there is
// none. So a mark beside the database identifies it and counts its commits. A mark is written after each commit and not
// synchronized: after a power cut it may be behind the database, and is never ahead of it.

// A Mark identifies a database from outside of it.
type Mark struct {
	Database string    // its name
	Commits  int64     // number of its transactions
	Size     int64     // of its file in bytes when the last process closed it; 0 while it is in use
	Modified time.Time // its modification time then
}

// MarkFile returns the name of the mark of a database.
func MarkFile(path string) string { return path + ".mark" }

// errMark says that a mark is unreadable.
var errMark = errors.New("the mark of the database is not as ralph wrote it")

// markSize is the fixed length of a mark in bytes, so that each mark overwrites all of the last one.
const markSize = 160

func (m Mark) text() []byte {
	stamp := int64(0)
	if !m.Modified.IsZero() {
		stamp = m.Modified.UnixNano()
	}
	line := fmt.Sprintf("%s %d %d %d", m.Database, m.Commits, m.Size, stamp)
	return fmt.Appendf(nil, "%-*s\n", markSize-1, fmt.Sprintf("%s %08x", line, crc32.ChecksumIEEE([]byte(line))))
}

func parseMark(text string) (m Mark, err error) {
	var sum uint32
	var stamp int64
	if len(text) != markSize {
		return m, errMark
	}
	text = strings.TrimSpace(text)
	n, err := fmt.Sscanf(text, "%s %d %d %d %x", &m.Database, &m.Commits, &m.Size, &stamp, &sum)
	end := strings.LastIndexByte(text, ' ')
	if err != nil || n != 5 || crc32.ChecksumIEEE([]byte(text[:end])) != sum {
		return Mark{}, errMark
	}
	if stamp != 0 {
		m.Modified = time.Unix(0, stamp)
	}
	return m, nil
}

// ReadMark reads the mark of a database. The error wraps [fs.ErrNotExist] if there is none.
func ReadMark(path string) (m Mark, err error) {
	for range 3 { // another process may be writing it
		var text []byte
		if text, err = os.ReadFile(MarkFile(path)); err != nil {
			return m, err
		}
		if m, err = parseMark(string(text)); err == nil {
			return m, nil
		}
		time.Sleep(time.Millisecond)
	}
	return m, fmt.Errorf("%s: %w", MarkFile(path), err)
}

// Found describes the files at the place of a database, read without changing them.
type Found struct {
	Size    int64  // of the database in bytes; -1 if there is none
	Mark    Mark   // zero if there is none that can be read
	MarkErr error  // why the mark was not read; nil if it was
	Damage  string // damage of the database itself; "" for none seen
	Tables  bool   // it has ralph's tables
	Name    string // its name; "" if it has none
	Commits int64  // number of its transactions
	Tasks   bool   // it has tasks
	Had     bool   // it has no tasks, although its events mention some
}

// enterWait limits how long to wait for another process that is opening or closing the database.
const enterWait = 30 * time.Second

// enter registers this process as a user of the database. alone means that no other process has it open; none can open
// it before [bearing.share].
func enter(ctx context.Context, path string, create bool) (b *bearing, alone bool, err error) {
	b = &bearing{path: path}
	flags := os.O_RDWR
	if create {
		flags |= os.O_CREATE
	}
	name := MarkFile(path)
	b.file, err = os.OpenFile(name, flags, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return b, true, nil
	}
	if err != nil { // the folder cannot be written
		if b.file = nil; !exists(name) {
			return b, true, nil
		}
	}
	b.lock = flock.New(name, flock.SetFlag(os.O_RDONLY))
	if alone, err = b.lock.TryLock(); err != nil || alone {
		return b, alone, nil // without locks, each process counts as alone
	}
	ctx, cancel := context.WithTimeout(ctx, enterWait)
	defer cancel()
	if _, err = b.lock.TryRLockContext(ctx, 2*time.Millisecond); errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	return b, false, err
}

// immutable reports whether a database is closed and its folder is read-only.
func immutable(path string) bool {
	f, err := os.OpenFile(MarkFile(path), os.O_RDWR, 0)
	if err == nil {
		return f.Close() != nil
	}
	return !errors.Is(err, fs.ErrNotExist) && exists(path) && !exists(path+"-wal")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// share lets others open the database.
func (b *bearing) share() {
	if b.lock != nil {
		_ = b.lock.Unlock()
		_, _ = b.lock.TryRLock() // without the lock, another process may find the database unused, and examine it
	}
}

// isLast reports whether no other process has the database open. Then none can open it before [bearing.leave].
func (b *bearing) isLast() bool {
	if b.lock == nil {
		return false
	}
	_ = b.lock.Unlock()
	ok, err := b.lock.TryLock()
	return ok && err == nil
}

func (b *bearing) leave() (err error) {
	if b.lock != nil {
		err, b.lock = b.lock.Close(), nil
	}
	if b.file != nil {
		err, b.file = errors.Join(err, b.file.Close()), nil
	}
	return err
}

// put writes the mark.
func (b *bearing) put(m Mark) error {
	if b.file == nil {
		return nil
	}
	_, err := b.file.WriteAt(m.text(), 0)
	return err
}

// keep makes the mark's file durable.
func (b *bearing) keep() error {
	if b.file == nil {
		return nil
	}
	return errors.Join(b.file.Sync(), syncFolder(filepath.Dir(b.path)))
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// inspect reads the files of the database. If alone, and if the last process did not close it, it reads all of it: a
// copy may have replaced it, or a process was killed.
func (db *DB) inspect(ctx context.Context, alone bool) (f Found, err error) {
	f.Size = -1
	f.Mark, f.MarkErr = ReadMark(db.path) // before the database, which may only grow
	info, err := os.Stat(db.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f, nil
	case err != nil:
		return f, err
	}
	if f.Size = info.Size(); f.Size == 0 {
		return f, nil
	}
	log, err := os.Stat(db.path + "-wal")
	merged := errors.Is(err, fs.ErrNotExist) || err == nil && log.Size() == 0
	closed := f.MarkErr == nil && merged && f.Size == f.Mark.Size && info.ModTime().Equal(f.Mark.Modified)
	err = db.inside(ctx, &f)
	if err == nil && alone && !closed && f.Tables {
		err = db.dialect.check(ctx, db.read)
	}
	if err != nil && (ctx.Err() != nil || Passes(err)) {
		return f, db.dialect.explain(err)
	}
	if err != nil {
		f.Damage = err.Error()
	}
	return f, nil
}

// inside reads the database's own identity and count.
func (db *DB) inside(ctx context.Context, f *Found) (err error) {
	if f.Tables, err = tableExists(ctx, db.read, "tasks"); err != nil || !f.Tables {
		return err
	}
	err = db.read.QueryRowContext(ctx, `SELECT count(*) FROM (SELECT 1 FROM tasks LIMIT 1) t`).Scan(&f.Tasks)
	if err != nil {
		return err
	}
	if !f.Tasks {
		const had = `SELECT count(*) FROM (SELECT 1 FROM events WHERE task_id IS NOT NULL LIMIT 1) e`
		if events, err := tableExists(ctx, db.read, "events"); err != nil {
			return err
		} else if events {
			if err := db.read.QueryRowContext(ctx, had).Scan(&f.Had); err != nil {
				return err
			}
		}
	}
	counts, err := tableExists(ctx, db.read, "progress")
	if err != nil || !counts {
		return err
	}
	err = db.read.QueryRowContext(ctx, `SELECT database, commits FROM progress`).Scan(&f.Name, &f.Commits)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}

// bear begins to count transactions, and sets the mark to the database's own count.
func (db *DB) bear(ctx context.Context, mustExist bool) error {
	const count = `SELECT database, commits FROM progress`
	var m Mark
	err := db.write.QueryRowContext(ctx, count).Scan(&m.Database, &m.Commits)
	if errors.Is(err, sql.ErrNoRows) {
		m.Database = uuid.NewString()
		_, err = db.write.ExecContext(ctx, `INSERT INTO progress (id, database) VALUES (1, $1)`, m.Database)
	}
	if err == nil {
		err = db.write.QueryRowContext(ctx, db.dialect.changes).Scan(&db.changes)
	}
	if err != nil {
		return err
	}
	db.bearing.name = m.Database
	known, err := ReadMark(db.path)
	if err == nil && known.Database == m.Database || mustExist {
		return nil
	}
	if err := db.bearing.put(m); err != nil {
		return err
	}
	return db.bearing.keep()
}

// count adds a transaction to the database's count, and returns the new count; 0 if the transaction changed nothing.
func (db *DB) count(ctx context.Context, tx *sql.Tx) (commits int64, err error) {
	var changes int64
	if db.bearing == nil || db.bearing.name == "" {
		return 0, nil // a server, or a file that is being created
	}
	if err := tx.QueryRowContext(ctx, db.dialect.changes).Scan(&changes); err != nil {
		return 0, err
	}
	if changes == db.changes {
		return 0, nil
	}
	db.changes = changes + 1 // with this one
	err = tx.QueryRowContext(ctx, `UPDATE progress SET commits = commits + 1 RETURNING commits`).Scan(&commits)
	return commits, err
}

// stamp records the size and time of the file in the mark, when the last process closes it.
func (db *DB) stamp() error {
	m, err := ReadMark(db.path)
	if err != nil {
		return nil //nolint:nilerr // then the next process reads all of it
	}
	info, err := os.Stat(db.path)
	if err != nil || exists(db.path+"-wal") {
		return nil //nolint:nilerr // the same
	}
	if m.Size == info.Size() && m.Modified.Equal(info.ModTime()) {
		return nil
	}
	m.Size, m.Modified = info.Size(), info.ModTime()
	return db.bearing.put(m)
}
