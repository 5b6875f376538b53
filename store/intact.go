package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ErrGone says that an open database is no longer the file under its name.
var ErrGone = errors.New("the database was removed or replaced while it was in use")

// recognize records the identity of the database's files, so that their loss is noticed.
func (db *DB) recognize() (err error) {
	if db.file, err = os.Stat(db.path); err != nil {
		return err
	}
	for _, name := range []string{db.path + "-wal", db.path + "-shm"} {
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a database without a write-ahead log has none
		}
		if err != nil {
			return err
		}
		db.beside = append(db.beside, beside{name, info})
	}
	return nil
}

// Intact checks that the open database, with its write-ahead log, is still the file under its name.
// The error wraps [ErrGone] if it is not. An open file keeps its identity, so that no other file
// can be mistaken for it.
func (db *DB) Intact() error {
	if db.file == nil {
		return nil // still being created
	}
	if err := sameFile(db.path, db.file, true); err != nil {
		return err
	}
	for _, b := range db.beside {
		if err := sameFile(b.path, b.info, false); err != nil {
			return err
		}
	}
	return nil
}

// sameFile checks that a file is still the known one.
func sameFile(path string, known os.FileInfo, content bool) error {
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
