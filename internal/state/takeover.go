package state

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"ralph/store"
)

// In older versions the state was inside the project, in .git/ralph, or in .ralph without git. It
// is moved when the queue is first used. If that is interrupted, the next command continues;
// nothing uses the queue before it is done.

// theirs are ralph's own files in .ralph: that folder may also contain others.
var theirs = []string{
	Gone, lockName, "claim.lock", "sessions", "backups", "kept", "baseline", "session.json", "dashboard.token",
	"mcp-server.json", "mcp-server.lock", "mcp-server.log", "mcp-token",
}

// old reports whether a folder contains a queue of an older version, or its remains.
func old(desk string) (bool, error) {
	names := append([]string{Database}, traces...)
	if filepath.Base(desk) == PlainName {
		names = []string{Database, Gone, lockName} // it may be another program's
	}
	found, err := tracesIn(desk, names)
	if err != nil || len(found) == 0 {
		return false, err
	}
	moved, err := store.Moved(filepath.Join(desk, Database))
	return !moved, err
}

// old returns the folder of the project's state in older versions.
func (h *Home) old() string {
	if rel, err := filepath.Rel(h.base, h.State); err == nil && filepath.IsLocal(rel) {
		return filepath.Join(h.desk, rel)
	}
	return h.desk
}

// TakeOver moves the state of an older version to its current location, and prints that it did.
func (h *Home) TakeOver(ctx context.Context) error {
	m := mover{from: h.old(), to: h.State}
	if wanted, err := m.wanted(); err != nil || !wanted {
		return err
	}
	if err := h.Make(); err != nil {
		return err
	}
	one := flock.New(h.File("take-over.lock"))
	if _, err := one.TryLockContext(ctx, 20*time.Millisecond); err != nil {
		return fmt.Errorf("lock of the move: %w", err)
	}
	wanted, err := m.wanted() // another process may have been faster
	if err == nil && wanted {
		if err = m.move(ctx); err == nil {
			fmt.Fprintf(h.Warn, "ralph: the state of this project is in %s from now on; it was in %s\n", m.to, m.from)
		}
	}
	return errors.Join(err, one.Unlock())
}

// A mover moves the state of an older version.
type mover struct {
	from, to string
	after    func(step string) error // for tests; nil for nothing
}

// begunName is a file that exists while a take-over is in progress. At no other time can files in
// the project, which agents can write, become ralph's state.
const begunName = "take-over"

// wanted reports whether there is something to move.
func (m *mover) wanted() (bool, error) {
	begun := filepath.Join(m.to, begunName)
	is, err := old(m.from)
	if err != nil {
		return false, err
	}
	going, err := present(begun)
	if err != nil || going && is {
		return is, err
	}
	if going { // finished except for this file
		return false, os.Remove(begun)
	}
	has, err := tracesIn(m.to, append([]string{Database}, traces...))
	if err != nil || len(has) == 0 || !is {
		return is, err
	}
	if there, err := present(filepath.Join(m.from, Database)); err != nil || !there {
		return false, err
	}
	return false, fmt.Errorf("there are two queues for this project, and it is unclear which one is meant: %s and %s; "+
		"move the one away that is not", filepath.Join(m.to, Database), filepath.Join(m.from, Database))
}

func (m *mover) done(step string) error {
	if m.after == nil {
		return nil
	}
	return m.after(step)
}

// move does what is left to do. Its order makes it safe to interrupt anywhere: the copy is complete
// before the old database is retired, in one transaction, and the old file is replaced after
// everything else has moved.
func (m *mover) move(ctx context.Context) (err error) {
	unlock, err := Lock(m.from)
	if errors.Is(err, ErrLocked) {
		return fmt.Errorf("a run of an older ralph works in this project (%s): end it (kill -TERM, or its service), "+
			"and the state moves to %s with the next command", lockOwner(m.from), m.to)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	begun := filepath.Join(m.to, begunName)
	making := filepath.Join(m.to, beginning)
	err = errors.Join(os.WriteFile(making, nil, 0o600), os.WriteFile(begun, nil, 0o600), syncFolder(m.to))
	if err != nil {
		return err
	}
	if err := m.done("lock"); err != nil {
		return err
	}
	path := filepath.Join(m.from, Database)
	info, err := os.Lstat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && info.Size() > 0 {
		if err := m.database(ctx, path); err != nil {
			return err
		}
	}
	if err := m.rest(); err != nil {
		return err
	}
	if err := store.PutMoved(ctx, path); err != nil {
		return err
	}
	if err := m.done("replaced"); err != nil {
		return err
	}
	return errors.Join(os.Remove(begun), os.Remove(filepath.Join(m.from, lockName)))
}

// database moves the database.
func (m *mover) database(ctx context.Context, path string) (err error) {
	sole, err := store.OpenAlone(ctx, path)
	if errors.Is(err, store.ErrInUse) {
		return fmt.Errorf("an older ralph works with the database %s (ralph serve, a chat's server, another program; "+
			"`fuser %[1]s` names it): end that, and the state moves to %s with the next command", path, m.to)
	}
	if err != nil {
		return fmt.Errorf("the state in %s cannot be moved to %s: %w; move that file away, and `ralph db restore FILE` "+
			"brings a copy back", m.from, m.to, err)
	}
	defer func() { err = errors.Join(err, sole.Close()) }()
	retired, err := sole.Retired(ctx)
	if err != nil {
		return err
	}
	target, part := filepath.Join(m.to, Database), filepath.Join(m.to, Database+".taken")
	there, err := present(target)
	if err != nil {
		return err
	}
	if !retired {
		if err := os.RemoveAll(part); err != nil {
			return err
		}
		if err := sole.CopyTo(ctx, part); err != nil {
			return err
		}
		if err := m.done("copied"); err != nil {
			return err
		}
		if err := sole.Retire(ctx); err != nil {
			return err
		}
		if err := m.done("retired"); err != nil {
			return err
		}
	}
	if !there {
		if err := errors.Join(os.Rename(part, target), syncFolder(m.to)); err != nil {
			return err
		}
	}
	return m.done("named")
}

// rest moves everything else.
func (m *mover) rest() error {
	entries, err := os.ReadDir(m.from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if name == markerName || name == packagesName || name == lockName || strings.HasPrefix(name, Database) ||
			filepath.Base(m.from) == PlainName && !slices.Contains(theirs, name) {
			continue
		}
		if err := carry(filepath.Join(m.from, name), filepath.Join(m.to, name)); err != nil {
			return err
		}
		if err := m.done("moved " + name); err != nil {
			return err
		}
	}
	return nil
}

// carry moves a file or a folder, also to another file system. It repeats a move that was
// interrupted.
func carry(from, to string) error {
	err := os.Rename(from, to)
	if err == nil || !errors.Is(err, syscall.EXDEV) && !errors.Is(err, fs.ErrExist) && !errors.Is(err, syscall.ENOTEMPTY) {
		return err
	}
	part := to + ".taken"
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	if err := copyAll(from, part); err != nil {
		return err
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := errors.Join(os.Rename(part, to), syncFolder(filepath.Dir(to))); err != nil {
		return err
	}
	return os.RemoveAll(from)
}

// copyAll copies files, folders and links. A state contains nothing else.
func copyAll(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch e.Type() {
		case fs.ModeDir:
			return os.Mkdir(target, 0o700)
		case fs.ModeSymlink:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		case 0:
			return copyFile(path, target)
		}
		return nil
	})
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	err = errors.Join(err, out.Sync(), out.Close())
	if err == nil {
		err = os.Chtimes(to, time.Time{}, info.ModTime()) // retention goes by the modification times
	}
	return err
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
