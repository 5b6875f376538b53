// Package files writes files atomically, reads files that others may have replaced by anything, and removes folders
// regardless of their modes.
package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrIrregular means that there is something else in the place of a file, such as a named pipe.
var ErrIrregular = errors.New("is not a regular file")

// Open opens a regular file, or the one that a link leads to, for reading. It never waits, whatever is in its place;
// the error is then [ErrIrregular].
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrIrregular}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Write replaces or creates a file atomically.
func Write(path string, text []byte, mode fs.FileMode) error {
	part, err := os.CreateTemp(filepath.Dir(path), ".ralph-part-*")
	if err != nil {
		return about(path, err)
	}
	_, err = part.Write(text)
	if err = errors.Join(err, part.Chmod(mode), part.Close()); err == nil {
		err = os.Rename(part.Name(), path)
	}
	if err != nil {
		return errors.Join(about(path, err), os.Remove(part.Name()))
	}
	return nil
}

// about puts the name of the target file into an error, in place of its temporary part, which
// people do not know.
func about(path string, err error) error {
	var file *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &file):
		err = file.Err
	case errors.As(err, &link):
		err = link.Err
	}
	return &fs.PathError{Op: "write", Path: path, Err: err}
}

// Read reads a file as [Open] opens it.
func Read(path string) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(f)
	return text, errors.Join(err, f.Close())
}

// Unlock makes all folders in a folder writable for the user. It follows no link out of the folder.
func Unlock(dir string) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrPermission) {
		if err = os.Chmod(dir, 0o700); err == nil {
			root, err = os.OpenRoot(dir)
		}
	}
	if err != nil {
		return err
	}
	err = fs.WalkDir(root.FS(), ".", func(path string, e fs.DirEntry, err error) error {
		if e == nil || !e.IsDir() {
			return err
		}
		if err != nil { // still unreadable; its contents stay
			return fs.SkipDir
		}
		info, err := e.Info()
		if err != nil || info.Mode().Perm()&0o700 == 0o700 {
			return err
		}
		return root.Chmod(path, info.Mode().Perm()|0o700)
	})
	return errors.Join(err, root.Close())
}
