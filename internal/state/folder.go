package state

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"

	"ralph"
	"ralph/store"
)

// A project's state is outside of the project, in the user's folder for state, out of reach of what
// happens to the repository. The folder follows from the project's location; a marker in the
// project and a record in the folder say whether they still belong together. If they do not, that
// is an error: the queue never appears empty, and never is another project's.

// DirVariable names the folder explicitly.
const DirVariable = "RALPH_STATE_DIR"

const (
	markerName = "state"   // in the project: its state folder
	recordName = "project" // in that folder: its project
)

// adopt is the command that connects a project with a state that do not know each other.
const adopt = "`ralph db adopt`"

// A seat is the location of a state, and what it belongs to.
type seat struct {
	base     string // the folder; with packages, of all queues of the repository
	outright bool   // named by [DirVariable]
	place    string // the git directory, or the root of a project without git
	desk     string // ralph's folder at place, with the marker
}

// A record is the content of a marker or of a state folder's record.
type record struct {
	ID    string `json:"project"`
	State string `json:"state,omitempty"` // in a marker: the state folder
	Place string `json:"place,omitempty"` // in a state folder: what it belongs to
	Lost  string `json:"lost,omitempty"`  // in a state folder: how a run lost the repository
}

// gitSeat is the seat of a repository, plainSeat that of a folder without git.
func gitSeat(environ []string, common string) (seat, error) {
	return newSeat(environ, common, filepath.Join(common, "ralph"))
}

func plainSeat(environ []string, root string) (seat, error) {
	return newSeat(environ, root, filepath.Join(root, PlainName))
}

func newSeat(environ []string, place, desk string) (s seat, err error) {
	s.place, s.desk = resolved(place), desk
	if dir := variable(environ, DirVariable); dir != "" {
		if !filepath.IsAbs(dir) {
			return s, ralph.Usage(fmt.Errorf("%s is %q: name the folder by its whole path", DirVariable, dir))
		}
		s.base, s.outright = filepath.Clean(dir), true
		return s, nil
	}
	home := variable(environ, "XDG_STATE_HOME")
	if !filepath.IsAbs(home) { // the XDG specification requires that a relative path is ignored
		if home = variable(environ, "HOME"); !filepath.IsAbs(home) {
			return s, ralph.Usage(fmt.Errorf("ralph keeps its state below the home folder, and HOME is not set: "+
				"set it, or name a folder with %s", DirVariable))
		}
		home = filepath.Join(home, ".local", "state")
	}
	sum := sha256.Sum256([]byte(s.place))
	s.base = filepath.Join(home, "ralph", nameOf(s.place)+"-"+hex.EncodeToString(sum[:6]))
	return s, nil
}

// nameOf returns a place's name for people.
func nameOf(place string) string {
	name := filepath.Base(place)
	if name == ".git" {
		name = filepath.Base(filepath.Dir(place))
	}
	name = strings.TrimSuffix(name, ".git")
	if name == "" || name == string(filepath.Separator) {
		return "root"
	}
	return strings.ToValidUTF8(name[:min(len(name), 200)], "_") // leaves room for the hash in a file name
}

// resolved resolves the links of a path as far as it exists.
func resolved(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if dir := filepath.Dir(path); err != nil && dir != path {
		return filepath.Join(resolved(dir), filepath.Base(path))
	} else if err != nil {
		return path
	}
	return real
}

func variable(environ []string, name string) (value string) {
	for _, entry := range environ {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v
		}
	}
	return value
}

func (s seat) marker() string { return filepath.Join(s.desk, markerName) }
func (s seat) record() string { return filepath.Join(s.base, recordName) }

// hasQueue reports whether there is, or was, a queue in a state folder.
func hasQueue(base string) (bool, error) {
	found, err := tracesIn(base, append([]string{Database, packagesName}, traces...))
	return len(found) > 0, err
}

// begun reports whether a project has begun at a seat.
func (s seat) begun() (bool, error) {
	if there, err := present(s.marker()); err != nil || there {
		return there, err
	}
	if s.outright {
		return false, nil
	}
	return hasQueue(s.base)
}

// lostAt returns the state of a repository that was a folder's .git and is gone; "" if none is
// known.
func lostAt(environ []string, dir string) (base string, err error) {
	s, err := gitSeat(environ, filepath.Join(dir, ".git"))
	if err != nil {
		return "", err
	}
	if there, err := hasQueue(s.base); err != nil || !there {
		return "", err
	}
	if state, err := read(s.record()); err != nil || state.Place != s.place {
		return "", err
	}
	return s.base, nil
}

// read reads a marker or a record; the zero value if it does not exist. A session may have replaced
// it by anything.
func read(path string) (r record, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("cannot tell where the queue is: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return r, err
	}
	text, err := io.ReadAll(io.LimitReader(f, 1<<16))
	if !info.Mode().IsRegular() || err != nil || json.Unmarshal(text, &r) != nil || r.ID == "" {
		return record{}, fmt.Errorf("%s is not as ralph wrote it: remove it, and have %s make it anew", path, adopt)
	}
	return r, nil
}

// write writes a marker or a record durably. With fresh it keeps an existing one.
func write(path string, r record, fresh bool) (err error) {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	part, err := os.CreateTemp(filepath.Dir(path), ".ralph-part-*")
	if err != nil {
		return err
	}
	_, err = part.Write(append(text, '\n'))
	if err = errors.Join(err, part.Sync(), part.Close()); err == nil && fresh {
		if err = os.Link(part.Name(), path); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	} else if err == nil {
		return os.Rename(part.Name(), path)
	}
	return errors.Join(err, os.Remove(part.Name()))
}

// known checks that the project and the state at its seat belong together.
func (h *Home) known() error {
	marker, err := read(h.marker())
	if err != nil {
		return err
	}
	state, err := read(h.record())
	if err != nil {
		return err
	}
	begun, err := hasQueue(h.base)
	if err != nil {
		return err
	}
	switch {
	case h.lost != "":
		state, err := read(filepath.Join(h.lost, recordName))
		if state.Lost == "" {
			state.Lost = "the git repository that was here is gone"
		}
		return errors.Join(err, fmt.Errorf("%s; its queue is as it was, in %s: bring the repository back, "+
			"or make a new one, and %s goes on with it", state.Lost, h.lost, adopt))
	case (marker.ID == "" || marker.ID == state.ID) && state.claimedAt(h.place):
		return fmt.Errorf("the queue in %s is that of %s: a copy of that has its own, for which %s is to be removed",
			h.base, state.Place, h.marker())
	case marker.ID == state.ID && marker.ID != "":
		return nil
	case state.Lost != "":
		return fmt.Errorf("%s; its queue is as it was, in %s: when the repository is as it should be, %s goes on with it",
			state.Lost, h.base, adopt)
	case marker.ID == "" && begun && !h.outright:
		return fmt.Errorf("%s is new (or %s was removed), and %s has the queue of what was there before: "+
			"%s goes on with that queue; if it is another project's, move that folder away", h.place, h.marker(), h.base, adopt)
	case marker.ID == "":
		return nil
	case state.ID == "" && begun:
		return fmt.Errorf("%s is gone, which says whose the queue in %s is: %s makes it anew", h.record(), h.base, adopt)
	case state.ID != "":
		return fmt.Errorf("the queue in %s is another project's than the one that %s names (%s, and not %s): "+
			"move away what does not belong here, or remove that file if %s alone is damaged; then %s",
			h.base, h.marker(), state.ID, marker.ID, h.record(), adopt)
	}
	there, err := read(filepath.Join(marker.State, recordName))
	switch {
	case err != nil:
		return err
	case there.ID != marker.ID || marker.State == "":
		return fmt.Errorf("the state of this project is gone: %s says that it is in %s; bring that folder back, or name "+
			"where it is now with %s; without that file `ralph db restore FILE` brings a copy back, or a new queue begins",
			h.marker(), marker.State, DirVariable)
	case there.Place == h.place:
		return fmt.Errorf("the state of this project is in %s, but by HOME, XDG_STATE_HOME and %s it would be in %s: "+
			"set %[2]s=%[1]s, or have %[4]s move it there", marker.State, DirVariable, h.base, adopt)
	}
	return fmt.Errorf("this folder was moved or copied from %s, and its queue is still in %s: %s brings it here",
		there.Place, marker.State, adopt)
}

// claimedAt reports whether a state belongs to another place that still claims it.
func (r record) claimedAt(place string) bool {
	if r.Place == "" || r.Place == place {
		return false
	}
	for _, desk := range []string{"ralph", PlainName} {
		marker, err := read(filepath.Join(r.Place, desk, markerName))
		if err != nil || marker.ID == r.ID && r.ID != "" {
			return true
		}
	}
	return false
}

// Make creates the state folder and connects it with the project.
func (h *Home) Make() error {
	fresh := !Exists(h.State)
	if err := os.MkdirAll(h.State, 0o700); err != nil {
		return fmt.Errorf("the folder for ralph's state: %w", err)
	}
	if kind := networkDisk(h.State); kind != "" {
		return fmt.Errorf("%s is on a network file system (%s), on which a database that several processes use is not safe: "+
			"name a folder on a local disk with XDG_STATE_HOME or %s", h.State, kind, DirVariable)
	}
	state, err := read(h.record())
	if err != nil {
		return err
	}
	if fresh = fresh || state.ID == ""; fresh && !Exists(h.File(Database)) {
		if err := os.WriteFile(h.File(beginning), nil, 0o600); err != nil {
			return err
		}
	}
	if state.ID == "" {
		if err := write(h.record(), record{ID: uuid.NewString(), Place: h.place}, true); err != nil {
			return err
		}
		if state, err = read(h.record()); err != nil {
			return err
		}
	}
	return h.join(state)
}

// join writes the marker and the record that connect project and state.
func (h *Home) join(state record) error {
	if state.Place != h.place || state.Lost != "" {
		state.Place, state.Lost = h.place, ""
		if err := write(h.record(), state, false); err != nil {
			return err
		}
	}
	want := record{ID: state.ID, State: h.base}
	if marker, err := read(h.marker()); err == nil && marker == want {
		return nil
	}
	if info, err := os.Lstat(h.desk); err == nil && !info.IsDir() {
		return fmt.Errorf("%s is not the folder that ralph created: remove it", h.desk) // a session may replace it
	}
	if err := os.MkdirAll(h.desk, 0o700); err != nil {
		return err
	}
	return write(h.marker(), want, false)
}

// LoseRepository records how a run lost the repository, so that nothing continues in another one
// before a person has looked.
func (h *Home) LoseRepository(why string) error {
	state, err := read(h.record())
	if err != nil {
		return err
	}
	state.Lost = why
	return write(h.record(), state, false)
}

// Adopt connects the project with the state that it had before: before it was moved, before it had
// git, or in another environment. It returns from where to where the state was moved; both are
// equal if only the connection was missing.
func (h *Home) Adopt(ctx context.Context, environ []string) (from, to string, err error) {
	marker, err := read(h.marker())
	if err != nil {
		return "", "", err
	}
	target := h.seat
	if h.Git && h.plain() {
		if target, err = gitSeat(environ, h.Common); err != nil {
			return "", "", err
		}
	}
	var state record
	for _, dir := range []string{h.base, marker.State, h.lost} {
		if dir == "" {
			continue
		}
		there, err := hasQueue(dir)
		if err != nil {
			return "", "", err
		}
		if state, err = read(filepath.Join(dir, recordName)); err != nil {
			return "", "", err
		}
		if there && (marker.ID == "" || state.ID == "" || state.ID == marker.ID) {
			from = dir
			break
		}
	}
	if from == "" {
		if err := h.known(); err != nil {
			return "", "", err
		}
		return "", "", ralph.Usage(errors.New("there is no state to adopt: none is known of what was here before"))
	}
	if state.claimedAt(h.place) && state.claimedAt(target.place) {
		return "", "", ralph.Usage(fmt.Errorf("%s is the state of %s, which is still there: a copy of that begins a queue "+
			"of its own when %s is removed", from, state.Place, h.marker()))
	}
	if state.ID == "" {
		state.ID = marker.ID
	}
	if state.ID == "" {
		state.ID = uuid.NewString()
	}
	if err := relocate(ctx, from, target.base); err != nil {
		return "", "", err
	}
	before := h.marker()
	h.seat = target
	if err = h.join(state); err == nil && before != h.marker() {
		err = os.Remove(before)
	}
	return from, h.base, err
}

// relocate moves a state folder while no run is active in it.
func relocate(ctx context.Context, from, to string) (err error) {
	if from == to {
		return nil
	}
	if taken, err := hasQueue(to); err != nil {
		return err
	} else if taken {
		return ralph.Usage(fmt.Errorf("there is another project's queue in %s: move it away first, it was not touched", to))
	}
	queues, err := filepath.Glob(filepath.Join(from, packagesName, "*"))
	if err != nil {
		return err
	}
	for _, dir := range append(queues, from) {
		if !Exists(filepath.Join(dir, Database)) {
			continue
		}
		unlock, err := Lock(dir)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, unlock()) }()
		if err := store.Unused(ctx, filepath.Join(dir, Database)); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return carry(from, to)
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
