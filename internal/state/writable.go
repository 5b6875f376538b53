package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// minRoom is the number of bytes that a run needs at least in its state folder.
const minRoom = 1 << 20

// Writable reports why files could not be written to a state folder: it writes one, of as much as a
// run needs at least.
func Writable(dir string) (err error) {
	// The file has no name while it is written: a process that is killed here leaves nothing behind.
	f, err := os.OpenFile(filepath.Join(dir, "try"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("the state folder cannot be written: %w", err)
	}
	if err = os.Remove(f.Name()); errors.Is(err, fs.ErrNotExist) {
		err = nil // another process removed it
	}
	_, failed := f.Write(make([]byte, minRoom))
	if err = errors.Join(err, failed, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("the disk of the state folder is full, or fails: %w", err)
	}
	return nil
}

// Full explains that a state folder has no room for a run; "" if it has, or if that is unknown.
func Full(dir string) string {
	room, known := free(dir)
	if !known || room >= minRoom {
		return ""
	}
	return fmt.Sprintf("the disk of the state folder is full: %d KiB are free in %s", room>>10, dir)
}
