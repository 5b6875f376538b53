package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// RemoveAll removes a file, or a folder with everything in it, for folders of any mode and depth. It works with
// handles of folders, so it follows no link, does not block on pipes, and can remove paths of any length. An error
// names the first entry that it could not remove. A path that names no entry of a folder, such as "" or ".", is an
// error, and nothing is removed.
func RemoveAll(path string) error {
	if base := filepath.Base(path); path == "" || base == "." || base == ".." || base == string(filepath.Separator) {
		return &fs.PathError{Op: "remove", Path: path, Err: fs.ErrInvalid}
	}
	parent, err := openDir(unix.AT_FDCWD, filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return &fs.PathError{Op: "open", Path: filepath.Dir(path), Err: err}
	}
	defer parent.Close()
	r := removal{top: parent, name: filepath.Base(path)}
	for next := []string{r.name}; len(next) > 0; next, r.moved = r.moved, nil {
		for _, name := range next {
			if err := r.remove(parent, name, 0); err != nil {
				return fmt.Errorf("remove %s: %w", path, err)
			}
		}
	}
	return nil
}

// maxOpen bounds the folders that are open at once. Deeper ones are moved up first.
const maxOpen = 64

// A removal removes one entry of the folder top.
type removal struct {
	top   *os.File
	name  string
	moved []string // folders in top that were moved up, and are removed next
	count int      // number so far
}

// remove removes an entry of a folder.
func (r *removal) remove(in *os.File, name string, depth int) error {
	at := int(in.Fd())
	err := unix.Unlinkat(at, name, 0)
	switch {
	case err == nil || errors.Is(err, unix.ENOENT):
		return nil
	case !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES):
		return entryError(name, err)
	}
	if errors.Is(err, unix.EACCES) && in != r.top { // the folder around it cannot be written to
		if err := in.Chmod(0o700); err != nil {
			return entryError(name, err)
		}
		if err = unix.Unlinkat(at, name, 0); err == nil {
			return nil
		}
	}
	if err := unix.Unlinkat(at, name, unix.AT_REMOVEDIR); err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if depth >= maxOpen {
		up := fmt.Sprintf("%s.removed-%d-%d", r.name, os.Getpid(), r.count)
		if err := r.movable(in, name); err != nil {
			return entryError(name, err)
		}
		if err := unix.Renameat(at, name, int(r.top.Fd()), up); err != nil {
			return entryError(name, err)
		}
		r.moved, r.count = append(r.moved, up), r.count+1
		return nil
	}
	dir, oerr := openDir(at, name)
	if errors.Is(oerr, unix.EACCES) {
		if oerr = r.movable(in, name); oerr == nil {
			dir, oerr = openDir(at, name)
		}
	}
	if oerr != nil {
		return entryError(name, errors.Join(err, oerr))
	}
	err = r.empty(dir, depth+1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return fmt.Errorf("%s/%w", name, err)
	}
	if err := unix.Unlinkat(at, name, unix.AT_REMOVEDIR); err != nil && !errors.Is(err, unix.ENOENT) {
		return entryError(name, err)
	}
	return nil
}

// movable gives the user all access to a folder, which is needed to read or move it.
func (r *removal) movable(in *os.File, name string) error {
	var stat unix.Stat_t
	if err := unix.Fstatat(int(in.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR || stat.Mode&0o700 == 0o700 {
		return nil
	}
	return unix.Fchmodat(int(in.Fd()), name, 0o700, 0)
}

// empty removes all entries of a folder. A folder is read anew until it has none: removing entries while
// reading may skip others.
func (r *removal) empty(dir *os.File, depth int) error {
	for {
		names, err := dir.Readdirnames(1024)
		if len(names) == 0 && (err == nil || errors.Is(err, io.EOF)) {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		for _, name := range names {
			if err := r.remove(dir, name, depth); err != nil {
				return err
			}
		}
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
}

// openDir opens a folder by its name in another one. It follows no link there and never blocks.
func openDir(at int, name string) (*os.File, error) {
	flags := unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NONBLOCK | unix.O_CLOEXEC
	if at != unix.AT_FDCWD {
		flags |= unix.O_NOFOLLOW
	}
	fd, err := unix.Openat(at, name, flags, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

func entryError(name string, err error) error { return fmt.Errorf("%s: %w", name, err) }
