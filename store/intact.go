package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ErrGone says that an open database is no longer the file that others will find
// under its name.
var ErrGone = errors.New("the database was removed or replaced while it was in use")

// recognize notes which files the open database is, so that its loss is noticed.
func (db *DB) recognize() (err error) {
	if db.file, err = os.Stat(db.path); err != nil {
		return err
	}
	if db.wal, err = os.Stat(db.path + "-wal"); errors.Is(err, fs.ErrNotExist) {
		return nil // as that of a database that is no WAL database
	}
	return err
}

// Intact tells whether the open database is still the file under its name, with its
// write-ahead log. The error wraps [ErrGone] if it is not. Files that are open keep
// their identity: no other one can be taken for them.
func (db *DB) Intact() error {
	if db.file == nil {
		return nil // it is being made
	}
	if err := same(db.path, db.file, true); err != nil || db.wal == nil {
		return err
	}
	return same(db.path+"-wal", db.wal, false)
}

// same tells whether a file is still the one that was known under its name.
func same(path string, known os.FileInfo, content bool) error {
	now, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s is gone", ErrGone, path)
	case err != nil:
		return fmt.Errorf("database: %w", err)
	case !os.SameFile(now, known):
		return fmt.Errorf("%w: %s is another file now", ErrGone, path)
	case content && now.Size() == 0:
		return fmt.Errorf("%w: %s is empty now", ErrGone, path)
	}
	return nil
}
