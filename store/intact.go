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
	for _, name := range []string{db.path + "-wal", db.path + "-shm"} {
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // as that of a database that is no WAL database
		}
		if err != nil {
			return err
		}
		db.beside = append(db.beside, beside{name, info})
	}
	return nil
}

// beside is a file that belongs to the open database: its write-ahead log, and the
// index of that, without which other processes do not see what this one writes.
type beside struct {
	path string
	info os.FileInfo
}

// Intact tells whether the open database is still the file under its name, with its
// write-ahead log. The error wraps [ErrGone] if it is not. Files that are open keep
// their identity: no other one can be taken for them.
func (db *DB) Intact() error {
	if db.file == nil {
		return nil // it is being made
	}
	if err := same(db.path, db.file, true); err != nil {
		return err
	}
	for _, b := range db.beside {
		if err := same(b.path, b.info, false); err != nil {
			return err
		}
	}
	return nil
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
