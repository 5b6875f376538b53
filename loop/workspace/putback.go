package workspace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"ralph/internal/files"
)

// A mark tells whether somebody has touched a file. The time of the last change of its metadata cannot be set,
// except by who may set the clock.
type mark struct {
	Mode    fs.FileMode
	Inode   uint64
	Size    int64
	Written int64 // nanoseconds since 1970
	Changed int64
}

func marked(path string) (m mark, err error) {
	var stat unix.Stat_t
	info, err := os.Lstat(path)
	if err == nil {
		err = unix.Lstat(path, &stat)
	}
	if err != nil {
		return m, err
	}
	m = mark{Mode: info.Mode(), Inode: stat.Ino}
	if !info.IsDir() { // a folder changes with each of its files
		m.Size, m.Written, m.Changed = info.Size(), info.ModTime().UnixNano(), stat.Ctim.Nano()
	}
	return m, nil
}

// A mirror makes a folder the same as another one that nobody writes to.
type mirror struct {
	from, to string
	marks    string          // the file with the marks of what was copied
	but      map[string]bool // files that are none of its business, and ".git"
	forged   bool            // times may have been set: compare contents, too
}

// putBack removes from the folder what the other does not have, and copies what is missing or was
// touched. from may be missing, or "".
func (m mirror) putBack(ctx context.Context) error {
	var known map[string]mark
	if b, err := os.ReadFile(m.marks); err == nil && json.Unmarshal(b, &known) != nil {
		known = nil
	}
	if err := os.MkdirAll(m.to, 0o700); err != nil {
		return err
	}
	if err := files.Unlock(m.to); err != nil {
		return err
	}
	parents := map[string]bool{".": true}
	for name := range m.but {
		for dir := filepath.Dir(name); !parents[dir]; dir = filepath.Dir(dir) {
			parents[dir] = true
		}
	}
	if err := m.walk(ctx, m.to, func(name string, e fs.DirEntry) error {
		if e.IsDir() && parents[name] {
			return nil
		}
		is, err := marked(filepath.Join(m.to, name))
		if err == nil && m.from != "" && known[name] == is && (!m.forged || m.same(name, e)) {
			return nil
		}
		if err := errors.Join(err, files.RemoveAll(filepath.Join(m.to, name))); err != nil || !e.IsDir() {
			return err
		}
		return fs.SkipDir
	}); err != nil {
		return err
	}
	marks := map[string]mark{}
	if m.from != "" {
		if err := m.walk(ctx, m.from, func(name string, e fs.DirEntry) error {
			to := filepath.Join(m.to, name)
			if !exists(to) {
				if err := copyEntry(filepath.Join(m.from, name), to, e); err != nil {
					return err
				}
			}
			is, err := marked(to)
			if err == nil {
				marks[name] = is
			} else if errors.Is(err, fs.ErrNotExist) {
				err = nil // a socket or a pipe
			}
			return err
		}); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	b, err := json.Marshal(marks)
	if err == nil {
		err = os.WriteFile(m.marks, b, 0o600)
	}
	return err
}

// walk calls visit for what is in a folder, except what is none of the mirror's business.
func (m mirror) walk(ctx context.Context, dir string, visit func(name string, e fs.DirEntry) error) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		name, err := filepath.Rel(dir, path)
		switch {
		case err != nil:
			return err
		case m.but != nil && name == ".git" && e.IsDir():
			return fs.SkipDir
		case m.but[name]:
			return nil
		}
		return visit(name, e)
	})
}

// same reports whether a file or link is like its original.
func (m mirror) same(name string, e fs.DirEntry) bool {
	from, to := filepath.Join(m.from, name), filepath.Join(m.to, name)
	switch {
	case e.IsDir():
		return true
	case e.Type()&fs.ModeSymlink != 0:
		a, aerr := os.Readlink(from)
		b, berr := os.Readlink(to)
		return a == b && aerr == nil && berr == nil
	}
	a, err := os.Open(from)
	if err != nil {
		return false
	}
	defer a.Close()
	b, err := os.Open(to)
	if err != nil {
		return false
	}
	defer b.Close()
	return sameText(a, b)
}

func sameText(a, b io.Reader) bool {
	ended := func(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
	left, right := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, aerr := io.ReadFull(a, left)
		k, berr := io.ReadFull(b, right)
		if n != k || !bytes.Equal(left[:n], right[:k]) {
			return false
		}
		if aerr != nil || berr != nil {
			return ended(aerr) && ended(berr)
		}
	}
}

// copyEntry copies a file with its time, a link, or a folder without its content. Others are left out.
func copyEntry(from, to string, e fs.DirEntry) error {
	info, err := e.Info()
	switch {
	case err != nil:
		return err
	case e.IsDir():
		return os.Mkdir(to, info.Mode().Perm()|0o700)
	case e.Type()&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		return errors.Join(err, os.Symlink(target, to))
	case !e.Type().IsRegular():
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return errors.Join(err, in.Close())
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, in.Close(), out.Close(), os.Chtimes(to, info.ModTime(), info.ModTime()))
}

// putBack makes the workspace's ignored files, its home directory and its caches what they are on a ground.
func (w *Workspace) putBack(ctx context.Context, ground string) error {
	c := w.Clone
	tracked, err := c.git.Tracked(ctx)
	if err != nil {
		return err
	}
	given, err := c.pool.given(ctx)
	if err != nil {
		return err
	}
	for _, name := range given {
		name = c.git.Below(name)
		tracked[name] = true
		_ = filepath.WalkDir(filepath.Join(c.git.Top(), name), func(path string, e fs.DirEntry, err error) error {
			if rel, rerr := filepath.Rel(c.git.Top(), path); err == nil && rerr == nil && !e.IsDir() {
				tracked[rel] = true
			}
			return nil // what cannot be read was not given
		})
	}
	from := func(name string) string {
		if dir := filepath.Join(ground, name); ground != "" && exists(dir) {
			return dir
		}
		return ""
	}
	back := func(m mirror) error {
		m.forged = c.pool.Forges
		if err := m.putBack(ctx); err != nil {
			return fmt.Errorf("workspace %s: put back %s: %w", c.name(), m.to, err)
		}
		return nil
	}
	err = errors.Join(
		back(mirror{from: from("tree"), to: c.git.Top(), marks: filepath.Join(c.folder, "tree.marks"), but: tracked}),
		back(mirror{from: from("home"), to: filepath.Join(c.folder, "home"), marks: filepath.Join(c.folder, "home.marks")}),
	)
	caches := filepath.Join(c.folder, "caches", "check")
	entries, rerr := os.ReadDir(caches)
	if rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
		return rerr
	}
	names := map[string]string{}
	maps.Copy(names, c.pool.Caches)
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".marks")
		if _, ok := names[name]; !ok {
			names[name] = ""
		}
	}
	for name, theirs := range names {
		source := from(name)
		if ground == "" || source == "" {
			source = theirs
		}
		err = errors.Join(err, w.warmed(ctx, source, filepath.Join(caches, name), c.pool.Forges))
	}
	return err
}

// warmTime bounds the copying of one of the user's caches.
const warmTime = time.Minute

// warmed makes a cache of the workspace's the same as another one; empty if that takes too long or the disk has too
// little room.
func (w *Workspace) warmed(ctx context.Context, from, to string, forged bool) error {
	c := w.Clone
	limited, cancel := context.WithTimeoutCause(ctx, warmTime, fmt.Errorf("it takes longer than %s", warmTime))
	defer cancel()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	err := c.room(limited, from, to)
	m := mirror{from: from, to: to, marks: to + ".marks", forged: forged}
	if err == nil {
		err = m.putBack(limited)
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	c.pool.Log.Warn("a workspace begins with an empty cache", "workspace", c.name(), "cache", from, "why", err)
	return errors.Join(files.RemoveAll(to), os.MkdirAll(to, 0o700), os.WriteFile(m.marks, []byte("{}"), 0o600))
}

// room reports that the disk has no room for a copy of a cache that is not there yet.
func (c *Clone) room(ctx context.Context, from, to string) error {
	if from == "" || exists(to) {
		return nil
	}
	var size uint64
	err := filepath.WalkDir(from, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err == nil && e.Type().IsRegular() {
			if info, ierr := e.Info(); ierr == nil {
				size += uint64(info.Size())
			}
		}
		return err
	})
	free, ferr := freeBytes(c.pool.Dir)
	if err == nil && ferr == nil && free < size+c.pool.MinFree {
		err = fmt.Errorf("%d MiB are free on the disk, and it has %d MiB", free>>20, size>>20)
	}
	return err
}

// keepCopies keeps what set-up has made as copies.
func (w *Workspace) keepCopies(ctx context.Context, ground string, tracked map[string]bool) error {
	c := w.Clone
	for name, m := range map[string]mirror{
		"tree": {from: c.git.Top(), but: tracked}, "home": {from: filepath.Join(c.folder, "home")},
	} {
		m.to, m.marks = filepath.Join(ground, name), filepath.Join(ground, name+".marks")
		if err := m.putBack(ctx); err != nil {
			return err
		}
	}
	caches := filepath.Join(c.folder, "caches", "check")
	entries, err := os.ReadDir(caches)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if !e.IsDir() || err != nil {
			continue
		}
		to := filepath.Join(ground, e.Name())
		err = mirror{from: filepath.Join(caches, e.Name()), to: to, marks: to + ".marks"}.putBack(ctx)
	}
	return err
}

// warmUp gives a workspace to work in copies of the user's caches, once.
func (w *Workspace) warmUp(ctx context.Context) error {
	c := w.Clone
	own := filepath.Join(c.folder, "caches", "agent")
	for name, theirs := range c.pool.Caches {
		if to := filepath.Join(own, name); !exists(to) {
			if err := w.warmed(ctx, theirs, to, false); err != nil {
				return err
			}
		}
	}
	return nil
}
