// Package files writes files atomically, and removes folders regardless of their modes.
package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

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
