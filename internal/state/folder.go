package state

import (
	"context"
	"crypto/rand"
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

	"github.com/gofrs/flock"

	"ralph"
	"ralph/internal/files"
	"ralph/internal/lazy"
	"ralph/internal/text"
	"ralph/internal/worktree"
)

// A project's state is outside of the project, in the user's state folder, so that it survives damage to the
// repository. The project has an id in the repository's own git configuration, which names that folder. A moved
// project keeps its id, and a clone has none. A record in the folder has the last location of the project. A queue
// never appears empty, and never is another project's: if a project has lost its id, or is a copy, that is an error.

// DirVariable names the folder explicitly.
const DirVariable = "RALPH_STATE_DIR"

const (
	idName     = "id"      // in ralph's folder of a project without git: its id
	recordName = "project" // in a state folder: the project that it belongs to
)

// A seat is the location of a state, and its owner.
type seat struct {
	home     string // the folder of all projects' states; "" if the folder is named by [DirVariable]
	base     string // the folder; with packages, of all queues of the repository
	place    string // the git directory that all work trees share, or the root of a project without git
	id       string
	unmarked bool // the project does not have the id yet
}

// A record is the content of a state folder's record.
type record struct {
	ID    string `json:"project"`
	Place string `json:"place"`
}

// safeID matches ids, which are names of folders.
var safeID = lazy.Regexp(`^[^/\x00-\x1f]{1,255}$`)

// outright reports whether the folder is named by [DirVariable].
func (s seat) outright() bool { return s.home == "" }

// desk is ralph's folder in a project without git.
func (s seat) desk() string { return filepath.Join(s.place, PlainName) }

func (s seat) record() string { return filepath.Join(s.base, recordName) }

// idAt returns the id of the project at a place; "" if it has none.
func idAt(ctx context.Context, place string) (string, error) {
	if isGitDir(place) {
		if id, err := worktree.ID(ctx, place); err != nil || id != "" {
			return id, err
		}
	}
	id, err := readFile(filepath.Join(place, PlainName, idName))
	return strings.TrimSpace(id), err
}

// isGitDir reports whether a folder is a git directory.
func isGitDir(dir string) bool {
	return Exists(filepath.Join(dir, "config")) && Exists(filepath.Join(dir, "objects"))
}

// forget returns the command that makes a project begin a new queue.
func (s seat) forget() string {
	if isGitDir(s.place) {
		return "`git config --local --unset ralph.id`"
	}
	return "`rm " + filepath.Join(s.desk(), idName) + "`"
}

// remember returns the command that makes a project continue with a queue.
func (s seat) remember(id string) string {
	if isGitDir(s.place) {
		return "`git config --local ralph.id " + id + "`"
	}
	return "`mkdir -p " + s.desk() + " && echo " + id + " > " + filepath.Join(s.desk(), idName) + "`"
}

// newSeat returns the seat of the project at a place.
func newSeat(ctx context.Context, environ []string, place string) (s seat, err error) {
	s.place = resolved(place)
	if s.id, err = idAt(ctx, s.place); err != nil {
		return s, err
	}
	if s.id != "" && !validID(s.id) {
		return s, fmt.Errorf("the id of this project, %q, is not one that ralph makes: %s, and a new queue begins",
			s.id, s.forget())
	}
	s.unmarked = s.id == ""
	if dir := variable(environ, DirVariable); dir != "" {
		if !filepath.IsAbs(dir) {
			return s, ralph.Usage(fmt.Errorf("%s is %q: name the folder by its whole path", DirVariable, dir))
		}
		s.base = filepath.Clean(dir)
		if known, err := s.recorded(); s.unmarked && err == nil && known.ID != "" {
			s.id = known.ID
		}
		if s.id == "" {
			s.id = mint(s.place)
		}
		return s, nil
	}
	if s.home, err = stateHome(environ); err != nil {
		return s, err
	}
	if s.id == "" {
		s.id = mint(s.place)
		if Exists(filepath.Join(s.home, s.id, recordName)) { // the project was here before
			s.id += "-" + strings.ToLower(rand.Text()[:6])
		}
	}
	s.base = filepath.Join(s.home, s.id)
	return s, nil
}

func validID(id string) bool { return safeID().MatchString(id) && filepath.IsLocal(id) && id != "." }

// maxName is the maximum length of a folder's name in an id, in bytes.
const maxName = 100

// mint makes an id for the project at a place.
func mint(place string) string {
	sum := sha256.Sum256([]byte(place))
	name := strings.Map(func(r rune) rune { // a folder's name may be anything, an id is one line
		if r < ' ' {
			return '_'
		}
		return r
	}, nameOf(place))
	return text.Clip(name, maxName) + "-" + hex.EncodeToString(sum[:6])
}

// stateHome returns the folder of all projects' states.
func stateHome(environ []string) (string, error) {
	home := variable(environ, "XDG_STATE_HOME")
	if !filepath.IsAbs(home) { // the XDG specification requires that a relative path is ignored
		if home = variable(environ, "HOME"); !filepath.IsAbs(home) {
			return "", ralph.Usage(fmt.Errorf("ralph keeps its state below the home folder, and HOME is not set: "+
				"set it, or name a folder with %s", DirVariable))
		}
		home = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(home, "ralph"), nil
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

// hasQueue reports whether there is, or was, a queue in a state folder.
func hasQueue(base string) (bool, error) {
	found, err := tracesIn(base, append([]string{Database, packagesName}, traces...))
	return len(found) > 0, err
}

// readFile reads a small file; "" if it does not exist. A session may have replaced it by anything.
func readFile(path string) (string, error) {
	f, err := files.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return "", nil
	case errors.Is(err, files.ErrIrregular):
		return "", fmt.Errorf("%s is not a file: remove it", path)
	case err != nil:
		return "", fmt.Errorf("cannot tell where the queue is: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 1<<16))
	return string(text), err
}

// recorded reads the record of the state folder; the zero value if there is none.
func (s seat) recorded() (r record, err error) {
	text, err := readFile(s.record())
	if err != nil || text == "" {
		return r, err
	}
	if json.Unmarshal([]byte(text), &r) != nil || r.ID == "" || !s.outright() && r.ID != filepath.Base(s.base) {
		return record{}, fmt.Errorf("%s is not as ralph wrote it: remove it, and it is made anew", s.record())
	}
	return r, nil
}

// claims returns the id of the project with a queue that was last at one of these places; "" if there is none.
func (s seat) claims(places ...string) (id string, err error) {
	folders, err := os.ReadDir(s.home)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("cannot tell where the queue is: %w", err)
	}
	for _, f := range folders {
		other := seat{home: s.home, base: filepath.Join(s.home, f.Name())}
		r, err := other.recorded()
		if err != nil {
			continue //nolint:nilerr // it is told to the project whose folder that is
		}
		for _, place := range places {
			if r.Place != place {
				continue
			}
			if there, err := hasQueue(other.base); err != nil || there {
				return r.ID, err
			}
		}
	}
	return "", nil
}

// known checks that the state at the seat belongs to the project, and records the new place of a moved project.
func (h *Home) known(ctx context.Context) error {
	state, err := h.recorded()
	if err != nil {
		return err
	}
	if !h.outright() {
		if err := h.lost(); err != nil {
			return err
		}
	}
	switch begun, err := hasQueue(h.base); {
	case err != nil:
		return err
	case !h.unmarked && !begun && !Exists(h.base):
		return fmt.Errorf("the state of this project is gone: by its id it was %s, and there is no folder %s; "+
			"bring that back, or name where it is now with XDG_STATE_HOME or %s. After %s, `ralph db restore FILE` "+
			"brings a copy back, or a new queue begins", h.id, h.base, DirVariable, h.forget())
	case state.ID == "":
		return nil
	case state.ID != h.id:
		return fmt.Errorf("the queue in %s belongs to %s (%s), not to %s (%s): name another folder with %s, or go on "+
			"with that queue by %s", h.base, state.Place, state.ID, h.place, h.id, DirVariable, h.remember(state.ID))
	case state.Place == h.place, state.Place == h.former:
		return nil
	}
	there, err := idAt(ctx, state.Place)
	if err != nil {
		return err
	}
	if there == h.id && h.unmarked {
		return fmt.Errorf("the queue in %s belongs to %s, which still exists: name another folder with %s",
			h.base, state.Place, DirVariable)
	}
	if there == h.id {
		return fmt.Errorf("this is a copy of %s, which has the queue in %s: %s here, and the copy begins a queue of its own",
			state.Place, h.base, h.forget())
	}
	if h.unmarked { // an explicitly named folder, of a project that no longer exists
		return nil
	}
	return h.note()
}

// lost reports, as an error, the queue of a project that was here and is not this one by its id.
func (h *Home) lost() error {
	places := []string{h.place}
	for _, dir := range []string{h.Root, h.Top} {
		if dir != "" {
			places = append(places, resolved(dir), filepath.Join(resolved(dir), ".git"))
		}
	}
	if !h.unmarked && h.place == places[len(places)-1] && Exists(h.base) {
		return nil
	}
	id, err := h.claims(places...)
	if err != nil || id == "" || id == h.id && !h.unmarked {
		return err
	}
	return &GoneError{filepath.Join(h.home, id), h.remember(id)}
}

// A GoneError means that another project was in a folder before, whose queue is still there.
type GoneError struct {
	Folder string // its state
	goOn   string // the command that continues with its queue
}

func (e *GoneError) Error() string {
	return "another project was here, and its queue is in " + e.Folder + ": `ralph init --new` begins a new one and " +
		"keeps " +
		"that; to go on with it, bring that repository back, or " + e.goOn +
		"; if it was moved, `ralph status` there says so to ralph"
}

// Leave records that the queue's project has gone, so that another one may begin in its place.
func (e *GoneError) Leave() error {
	old := &Home{seat: seat{base: e.Folder}}
	r, err := old.recorded()
	if err != nil {
		return err
	}
	old.id = r.ID
	return old.note()
}

// note writes the record.
func (h *Home) note() error {
	text, err := json.Marshal(record{h.id, h.place})
	if err != nil {
		return err
	}
	part, err := os.CreateTemp(h.base, ".ralph-part-*")
	if err != nil {
		return err
	}
	_, err = part.Write(append(text, '\n'))
	if err = errors.Join(err, part.Sync(), part.Close()); err != nil {
		return errors.Join(err, os.Remove(part.Name()))
	}
	return os.Rename(part.Name(), h.record())
}

// Make creates the state folder, and gives the project its id unless it has that.
func (h *Home) Make(ctx context.Context) (err error) {
	fresh := !Exists(h.State) || !Exists(h.record())
	if err := os.MkdirAll(h.State, 0o700); err != nil {
		return fmt.Errorf("the folder for ralph's state: %w", err)
	}
	if kind := networkDisk(h.State); kind != "" {
		return fmt.Errorf("%s is on a network file system (%s), on which a database that several processes use is not safe: "+
			"name a folder on a local disk with XDG_STATE_HOME or %s", h.State, kind, DirVariable)
	}
	if fresh && !Exists(h.File(Database)) {
		if err := os.WriteFile(h.File(beginning), nil, 0o600); err != nil {
			return err
		}
	}
	if made, err := h.made(ctx); made || err != nil {
		return err
	}
	lock := flock.New(filepath.Join(filepath.Dir(h.base), ".ids.lock"))
	limited, cancel := context.WithTimeout(ctx, idsWait)
	defer cancel()
	if _, err := lock.TryLockContext(limited, idsLook); limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("another process has held %s for %v: end it", lock.Path(), idsWait)
	} else if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if made, err := h.made(ctx); made || err != nil {
		return err
	}
	if err := h.note(); err != nil {
		return err
	}
	return h.mark(ctx)
}

// How long, and how often, to try for the lock under which projects get their ids.
const (
	idsWait = 10 * time.Second
	idsLook = 20 * time.Millisecond
)

// made reports whether the state folder is recorded and the project has its id. Most commands find it so, and wait for
// no lock.
func (h *Home) made(ctx context.Context) (bool, error) {
	if state, err := h.recorded(); err != nil || state != (record{h.id, h.place}) {
		return false, nil //nolint:nilerr // a broken record is written anew
	}
	if h.Git && !h.beside {
		id, err := worktree.ID(ctx, h.Common)
		return id == h.id, err
	}
	id, err := readFile(filepath.Join(h.desk(), idName))
	return strings.TrimSpace(id) == h.id, err
}

// mark gives the project its id. If the project began without git, its id becomes the repository's.
func (h *Home) mark(ctx context.Context) error {
	file := filepath.Join(h.desk(), idName)
	if h.Git && !h.beside {
		if err := worktree.SetID(ctx, h.Common, h.id); err != nil {
			return err
		}
		h.unmarked = false
		if err := os.Remove(filepath.Join(h.Root, PlainName, idName)); err != nil && !errors.Is(err, fs.ErrNotExist) &&
			!errors.Is(err, syscall.ENOTDIR) {
			return err
		}
		return nil
	}
	if err := os.MkdirAll(h.desk(), 0o700); err != nil {
		return err
	}
	h.unmarked = false
	return os.WriteFile(file, []byte(h.id+"\n"), 0o600)
}
