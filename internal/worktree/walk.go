package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"ralph"
)

// A surveyor makes a survey. It opens folders relative to open ones, follows no link and does not block on pipes.
type surveyor struct {
	until   time.Time
	entries int
	git     int64 // bytes in folders named .git
	survey
}

// errEnded ends a walk at a limit.
var errEnded = errors.New("the walk ended")

// walk walks through the work tree at top. It removes special files: entries other than files, folders and links. It
// also removes links in .git, which git would follow. It makes folders readable and writable.
func walk(ctx context.Context, top string) (survey, error) {
	w := &surveyor{until: time.Now().Add(walkLimit)}
	fd, err := unix.Open(top, dirFlags, 0)
	if err != nil {
		return w.survey, &os.PathError{Op: "open", Path: top, Err: err}
	}
	dir := os.NewFile(uintptr(fd), top)
	err = w.folder(ctx, dir, "", 0, false)
	if err = errors.Join(err, dir.Close()); errors.Is(err, errEnded) && ctx.Err() == nil {
		err = nil
	}
	if w.git > maxBytes && w.survey.git == "" {
		w.survey.git = fmt.Sprintf("holds %s, and %s are the most", size(w.git), size(maxBytes))
	}
	return w.survey, err
}

const dirFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC

// folder walks through an open folder; git means that it is .git or in it.
func (w *surveyor) folder(ctx context.Context, dir *os.File, name string, depth int, git bool) error {
	for {
		names, err := dir.Readdirnames(1024)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		w.entries += len(names)
		if why := w.over(ctx); why != "" {
			w.ended = ralph.Untaken{Path: cmp.Or(name, "."), Why: why}
			return errEnded
		}
		for _, entry := range names {
			path := entry
			if name != "" {
				path = name + "/" + entry
			}
			if err := w.entry(ctx, dir, entry, path, depth, git || entry == ".git"); err != nil {
				return err
			}
		}
	}
}

// over explains why the walk ends here; "" if it continues.
func (w *surveyor) over(ctx context.Context) string {
	switch {
	case ctx.Err() != nil:
		return ctx.Err().Error()
	case w.entries > maxEntries:
		return fmt.Sprintf("is where more than %d files and folders were counted", maxEntries)
	case time.Now().After(w.until):
		return fmt.Sprintf("is where looking at the work tree took longer than %s", walkLimit)
	}
	return ""
}

// entry looks at an entry of a folder.
func (w *surveyor) entry(ctx context.Context, in *os.File, name, path string, depth int, git bool) error {
	at := int(in.Fd())
	var stat unix.Stat_t
	if err := unix.Fstatat(at, name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		return fmt.Errorf("%s: %w", path, err)
	}
	kind := ""
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		if git {
			w.git += stat.Size
		} else {
			w.files, w.bytes = w.files+1, w.bytes+stat.Size
		}
		return nil
	case unix.S_IFDIR:
		if stat.Mode&0o700 != 0o700 {
			if err := unix.Fchmodat(at, name, uint32(stat.Mode)&0o777|0o700, 0); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		return w.down(ctx, in, name, path, depth+1, git)
	case unix.S_IFLNK:
		if !git {
			return nil
		}
	case unix.S_IFIFO:
		kind = "is a named pipe"
	case unix.S_IFSOCK:
		kind = "is a socket"
	default:
		kind = "is a device"
	}
	if !git {
		w.odd = append(w.odd, ralph.Untaken{Path: path, Why: kind + ", which ralph has removed"})
	}
	if err := unix.Unlinkat(at, name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}

// down walks through a folder inside of an open one.
func (w *surveyor) down(ctx context.Context, in *os.File, name, path string, depth int, git bool) error {
	if git && name == "hooks" {
		return nil // ralph does not read it, and people's tools put links there
	}
	if depth > maxDepth || len(path) > maxPath {
		if git {
			w.survey.git = fmt.Sprintf("has folders that are deeper than %d", maxDepth)
		} else {
			w.deep = append(w.deep, path)
		}
		return nil
	}
	fd, err := unix.Openat(int(in.Fd()), name, dirFlags, 0)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil // it was replaced just now: the next walk will see it
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	}
	dir := os.NewFile(uintptr(fd), path)
	err = w.folder(ctx, dir, path, depth, git)
	return errors.Join(err, dir.Close())
}
