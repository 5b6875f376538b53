// Package files writes files as a whole: nobody ever reads half of one.
package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces a file, or makes it.
func Write(path string, text []byte, mode fs.FileMode) error {
	part, err := os.CreateTemp(filepath.Dir(path), ".ralph-part-*")
	if err != nil {
		return err
	}
	_, err = part.Write(text)
	if err = errors.Join(err, part.Chmod(mode), part.Close()); err == nil {
		err = os.Rename(part.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part.Name()))
	}
	return nil
}
