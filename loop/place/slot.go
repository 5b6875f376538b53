package place

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"ralph"

	"github.com/gofrs/flock"

	"ralph/internal/files"
	"ralph/internal/proc"
	"ralph/internal/worktree"
)

// Ref namespaces of ralph in the person's repository.
const (
	baseRefs  = "refs/ralph/base/"  // the base of each slot, protected from gc
	startRefs = "refs/ralph/start/" // the commit that a slot's session starts from, if that is not the base
	lostRefs  = "refs/ralph/lost/"  // unsaved work that was found in a slot
)

// Slots are the places of a project apart from the person's work tree: shared
// clones, some for sessions to work in and some to check their results.
type Slots struct {
	Here *Place // the person's place
	Dir  string // the folder of the slots
	Name string // the project's name

	Copy, Link       []string // globs of the person's ignored files that each slot gets
	Setup, Teardown  []string // commands
	SetupWhen        []string // files whose change makes Setup run again
	PortsFrom, Ports int      // the first port, and the number of ports per slot; 0 is none

	// How ralph's own commands run in slots.
	Env     []string
	Through func(io.Reader) io.Reader // masks secrets in their output; nil masks nothing
	// Enter and Prepare run them in the sandbox of sessions, and in that of checks with the network; nil is no sandbox.
	Enter, Prepare proc.Enter
	Layers         bool              // what the sandbox of checks runs writes to layers
	Caches         map[string]string // the user's caches that slots without layers get copies of, by name
	MinFree        uint64            // bytes of disk that those copies leave free
	Forges         bool              // checks may set the time of a file's last change

	Merged      func(ctx context.Context) (string, error) // the last commit of the target; nil is any
	Containment proc.Containment
	Timeout     time.Duration
	Log         *slog.Logger
}

// A Slot is the part of a Place that only ralph's own clones have.
type Slot struct {
	Number int // of the lane, from 1
	Checks bool
	Base   string // the commit that work in the slot is to land on

	slots  *Slots
	folder string
	clone  *worktree.Clone
	lock   *flock.Flock
	user   [2]string
	ready  ready // what was checked out in advance

	standsOn *flock.Flock // its ground, which stays while it is used
}

// A ready is what is checked out in a slot.
type ready struct{ base, commit, lay, hidden string }

// firstCheck is the lane number from which the slots for checks take their ports.
const firstCheck = 64

// FirstWorker is the number of the first slot for workers. A run's lanes have the slots below it.
const FirstWorker = 2*firstCheck + 1

// ErrTaken says that a slot is in use.
var ErrTaken = errors.New("the slot is in use")

// nameOf returns the name of a slot: "1", or "check-1".
func nameOf(number int, checks bool) string {
	if checks {
		return "check-" + strconv.Itoa(number)
	}
	return strconv.Itoa(number)
}

// Take locks a slot for the caller until [Place.Release], and creates it
// if necessary. The error wraps [ErrTaken] if it is in use.
func (s *Slots) Take(ctx context.Context, number int, checks bool) (*Place, error) {
	return s.take(ctx, number, checks, takeWait)
}

// TakeNow is like [Slots.Take] for a slot to work in, but does not wait for it.
func (s *Slots) TakeNow(ctx context.Context, number int) (*Place, error) {
	return s.take(ctx, number, false, 0)
}

// takeWait is how long to wait for a slot to work in. Another process may
// be removing it, which includes its teardown.
const takeWait = 4 * time.Minute

func (s *Slots) take(ctx context.Context, number int, checks bool, wait time.Duration) (*Place, error) {
	name := nameOf(number, checks)
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := s.lock(ctx, name, wait)
	if err != nil {
		return nil, err
	}
	return s.taken(ctx, number, checks, lock)
}

// taken opens a slot whose lock the caller holds.
func (s *Slots) taken(ctx context.Context, number int, checks bool, lock *flock.Flock) (*Place, error) {
	p, err := s.open(ctx, number, checks)
	if err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	p.Slot.lock = lock
	return p, nil
}

// TakeFree is like [Slots.Take], for the first free one of the given number of slots for checks.
func (s *Slots) TakeFree(ctx context.Context, places int) (p *Place, err error) {
	for until := time.Now().Add(freeWait); ; {
		for number := range places {
			if p, err = s.take(ctx, number+1, true, 0); !errors.Is(err, ErrTaken) {
				return p, err
			}
		}
		if ctx.Err() != nil || time.Now().After(until) {
			return p, err
		}
		time.Sleep(freeLook) // others may swap slots while this loop goes through them
	}
}

// How long to wait for a free slot, and how often to look.
const (
	freeWait = time.Minute
	freeLook = 20 * time.Millisecond
)

// lockWait is how long to wait for a slot that is only to be changed: a
// mere look at it holds the lock for an instant.
const lockWait = time.Second

// lock locks a slot for this process, at most until the process ends.
func (s *Slots) lock(ctx context.Context, name string, wait time.Duration) (*flock.Flock, error) {
	lock := flock.New(filepath.Join(s.Dir, name+".lock"))
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	ok, err := lock.TryLock()
	if err == nil && !ok && wait > 0 {
		ok, err = lock.TryLockContext(limited, 20*time.Millisecond)
	}
	if err != nil && limited.Err() == nil {
		return nil, fmt.Errorf("lock of slot %s: %w", name, err)
	}
	if !ok {
		return nil, fmt.Errorf("slot %s: %w", name, ErrTaken)
	}
	return lock, nil
}

// open opens a slot, without a lock.
func (s *Slots) open(ctx context.Context, number int, checks bool) (*Place, error) {
	folder := filepath.Join(s.Dir, nameOf(number, checks))
	clone, err := s.Here.Tree.Clone(ctx, folder)
	if err != nil {
		return nil, fmt.Errorf("slot %s: %w", nameOf(number, checks), err)
	}
	slot := &Slot{
		Number: number, Checks: checks, slots: s, folder: folder, clone: clone, user: s.Here.Tree.User(ctx),
	}
	if slot.Base, err = s.Here.Tree.Ref(ctx, slot.baseRef()); err != nil {
		return nil, err
	}
	return &Place{
		Dir: clone.Root(), Tree: clone.Tree, State: s.Here.State, Watched: s.Here.Watched, Slot: slot,
	}, nil
}

// Begun records that a session works in the place from now on: until [Place.Note],
// what is found in it is the session's work, which belongs under the ref.
func (p *Place) Begun(ref string) error {
	if p.Slot == nil {
		return nil
	}
	return os.WriteFile(filepath.Join(p.Slot.folder, ownerFile), []byte(ref), 0o600)
}

// Of takes the slot in which a session worked. It returns nil if there was
// none, or if it was removed or prepared for another use since. A slot that its
// worker still holds is returned without its lock: nobody else can take it then.
func (s *Slots) Of(ctx context.Context, dir, ref string) (*Place, error) {
	rel, err := filepath.Rel(s.Dir, dir)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, nil //nolint:nilerr // it worked elsewhere
	}
	number := 0
	if _, err := fmt.Sscanf(filepath.ToSlash(rel), "%d/tree", &number); err != nil {
		return nil, nil //nolint:nilerr // not one of our slots
	}
	wait := takeWait
	if number >= FirstWorker {
		wait = lockWait
	}
	p, err := s.named(ctx, nameOf(number, false), wait)
	if errors.Is(err, ErrTaken) && number >= FirstWorker {
		p, err = s.open(ctx, number, false)
	}
	if errors.Is(err, ErrNoSlot) {
		return nil, nil //nolint:nilerr // it is gone
	}
	if err != nil {
		return nil, err
	}
	if owner, err := p.Slot.owner(); err != nil || owner != ref {
		return nil, errors.Join(err, p.Release())
	}
	return p, nil
}

// owner returns the ref under which the slot's content is to be saved; "" if it is nobody's work.
func (s *Slot) owner() (string, error) {
	b, err := os.ReadFile(filepath.Join(s.folder, ownerFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return string(b), err
}

// Release unlocks a slot.
func (p *Place) Release() error {
	if p.Slot == nil || p.Slot.lock == nil {
		return nil
	}
	return errors.Join(p.drop(), p.Slot.stepOff(), p.Slot.lock.Unlock())
}

func (s *Slot) name() string    { return nameOf(s.Number, s.Checks) }
func (s *Slot) baseRef() string { return baseRefs + s.name() }

// Begin prepares the slot for a session: at the base, with the commit that
// an earlier session of the task left merged onto it, if kept is not "".
// Marked are files of that commit in which ralph had put conflict marks.
// Conflicts are the files that have such marks now.
func (p *Place) Begin(ctx context.Context, base, kept string, marked ...string) (conflicts []string, err error) {
	start, lay := base, ""
	if kept != "" {
		if start, lay, conflicts, err = p.Slot.merged(ctx, base, kept); err != nil {
			return nil, fmt.Errorf("merge what an earlier session of the task left: %w", err)
		}
		for _, name := range p.Slot.marks(ctx, kept, marked) {
			if !slices.Contains(conflicts, name) {
				conflicts = append(conflicts, name)
			}
		}
	}
	return conflicts, errors.Join(p.fresh(ctx, base, start, lay), p.Slot.mark(conflicts))
}

// Merge merges a commit of the target into the slot, in which a session has made the candidate, and returns the files
// that conflict: they have conflict marks. The next candidate has both as parents.
func (p *Place) Merge(ctx context.Context, tip string, made worktree.Candidate) (conflicts []string, err error) {
	m, err := p.Slot.slots.Here.Tree.MergeTree(ctx, tip, made.Head)
	if err != nil {
		return nil, err
	}
	return m.Conflicts, errors.Join(p.Slot.mark(m.Conflicts), p.Slot.clone.Merge(ctx, tip, made.Tree, m.Tree))
}

// mark records the files of the slot, from its top, in which ralph has put conflict marks.
func (s *Slot) mark(names []string) error {
	if len(names) == 0 {
		return nil
	}
	b, err := json.Marshal(names)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.folder, marksFile), b, 0o600)
}

// Marks returns those of the files in which ralph has put conflict marks that a candidate still has with one.
func (p *Place) Marks(ctx context.Context, head string) ([]string, error) {
	b, err := os.ReadFile(filepath.Join(p.Slot.folder, marksFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	if err == nil {
		err = json.Unmarshal(b, &names)
	}
	return p.Slot.marks(ctx, head, names), err
}

// conflictMark matches the begin and the end of a conflict as git merge-tree marks it, with a commit's id.
var conflictMark = regexp.MustCompile(`(?m)^(<{7}|>{7}) ([0-9a-f]{40}|[0-9a-f]{64})(:|\r?$)`)

func (s *Slot) marks(ctx context.Context, commit string, names []string) (marked []string) {
	for _, name := range names {
		if conflictMark.Match(s.slots.Here.Tree.Content(ctx, commit, name)) {
			marked = append(marked, name)
		}
	}
	return marked
}

// merged returns the commit from which a session continues the kept work,
// and the tree to lay over it if they conflict.
func (s *Slot) merged(ctx context.Context, base, kept string) (start, lay string, conflicts []string, err error) {
	tree := s.slots.Here.Tree
	if upon, err := tree.Ancestor(ctx, base, kept); err != nil || upon {
		return kept, "", nil, err
	}
	if landed, err := tree.Ancestor(ctx, kept, base); err != nil || landed {
		return base, "", nil, err
	}
	m, err := tree.MergeTree(ctx, base, kept)
	if err != nil {
		return "", "", nil, err
	}
	if len(m.Conflicts) > 0 {
		return base, m.Tree, m.Conflicts, nil
	}
	message := "Merge what an earlier session left\n"
	start, err = tree.CommitTree(ctx, m.Tree, []string{base, kept}, message, s.user)
	return start, "", nil, err
}

// Prepare checks out the base in advance, for the session whose [Place.Begin] is next.
func (p *Place) Prepare(ctx context.Context, base string) error {
	given, err := p.Slot.slots.given(ctx)
	if err != nil {
		return err
	}
	is := ready{base: base, commit: base, hidden: fmt.Sprintf("%q", given.patterns())}
	if err := p.checkOut(ctx, is, given); err != nil {
		return err
	}
	p.Slot.ready = is
	return nil
}

// fresh prepares the slot.
func (p *Place) fresh(ctx context.Context, base, commit, lay string) (err error) {
	defer func() {
		var exit *exec.ExitError
		var setup *SetupError
		if errors.As(err, &exit) && !errors.As(err, &setup) {
			err = &GitError{err} // it may pass
		}
	}()
	s := p.Slot
	given, err := s.slots.given(ctx)
	if err != nil {
		return err
	}
	wanted := ready{base, commit, lay, fmt.Sprintf("%q", given.patterns())}
	is := s.ready
	s.ready = ready{}
	if is != wanted {
		if err := p.checkOut(ctx, wanted, given); err != nil {
			return err
		}
	}
	if err := p.latest(ctx); err != nil {
		return err
	}
	as, err := p.equip(ctx, given)
	if err != nil {
		return err
	}
	if as && lay == "" { // its state is known without a scan
		tree, err := s.slots.Here.Tree.Whole(ctx, commit)
		if err != nil {
			return err
		}
		return p.note(standing{commit, tree})
	}
	return p.Note(ctx)
}

// checkOut checks out a commit in the slot, with the files of the tree lay over it unless that is "".
func (p *Place) checkOut(ctx context.Context, wanted ready, given given) error {
	s := p.Slot
	if !s.Checks { // nobody works there: what is left in it is from commands
		if err := p.rescue(ctx); err != nil {
			return err
		}
	}
	if err := errors.Join(s.forget(leftFile), s.forget(laidFile), s.forget(marksFile), s.forget(ownerFile)); err != nil {
		return err
	}
	if err := s.slots.Here.Tree.SetRef(ctx, s.baseRef(), wanted.base); err != nil {
		return err
	}
	if wanted.commit != wanted.base {
		if err := s.slots.Here.Tree.SetRef(ctx, startRefs+s.name(), wanted.commit); err != nil {
			return err
		}
	}
	s.Base = wanted.base
	spoiled := exists(filepath.Join(s.folder, spoiledFile)) || s.Checks && s.slots.Layers // nothing is of use there
	if spoiled {
		if err := s.forget(setupFile); err != nil {
			return err
		}
	}
	err := s.clone.Fresh(ctx, wanted.commit, given.patterns(), s.user, spoiled)
	if err != nil && ctx.Err() == nil {
		if err = p.scrap(ctx, err); err == nil {
			err = s.clone.Fresh(ctx, wanted.commit, given.patterns(), s.user, true)
		}
	}
	if err != nil {
		return fmt.Errorf("slot %s: %w", s.name(), err)
	}
	if err := s.forget(spoiledFile); err != nil {
		return err
	}
	if wanted.lay != "" {
		if err := s.clone.Lay(ctx, wanted.lay); err != nil {
			return fmt.Errorf("slot %s: %w", s.name(), err)
		}
	}
	temp := filepath.Join(s.folder, "tmp")
	if err := s.discard(temp); err != nil {
		return err
	}
	return os.MkdirAll(temp, 0o700)
}

// Files of a slot next to its work tree.
const (
	leftFile    = "left"    // the state in which nothing in it needed saving
	setupFile   = "setup"   // a digest of the set-up's input
	spoiledFile = "spoiled" // its ignored files are left from a refused change
	laidFile    = "laid"    // files that differ on purpose from the session's first commit
	marksFile   = "marks"   // files in which ralph has put conflict marks
	ownerFile   = "owner"   // the ref for the work in it, until that was inspected
)

// forget removes one of these files.
func (s *Slot) forget(name string) error {
	err := os.Remove(filepath.Join(s.folder, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Spoil has the slot's ignored files removed before its next use.
func (p *Place) Spoil() error {
	return os.WriteFile(filepath.Join(p.Slot.folder, spoiledFile), nil, 0o600)
}

// laid lists files of a slot that were replaced on purpose when its session began.
type laid struct {
	Commit string            // the session's first commit
	Files  map[string]string // digests by name, after the replacement
}

// Lay gives files of the slot the content that a commit has, without those being changes of the session: unless
// somebody changes them, a candidate contains them as they were.
func (p *Place) Lay(ctx context.Context, commit string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	l := laid{p.Slot.clone.Head(ctx), map[string]string{}}
	root, err := os.OpenRoot(p.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, name := range names {
		v, err := p.Slot.slots.Here.Tree.Version(ctx, commit, name)
		if err == nil {
			err = v.Write(root, name)
		}
		if err == nil {
			l.Files[name], err = Digest(p.Path(name))
		}
		if err != nil {
			return fmt.Errorf("put %s back as it is on the branch: %w", name, err)
		}
	}
	b, err := json.Marshal(l)
	if err == nil {
		err = os.WriteFile(filepath.Join(p.Slot.folder, laidFile), b, 0o600)
	}
	return errors.Join(err, p.Note(ctx))
}

// lifted returns the tree of the whole repository with the laid files as the commit has them.
func (p *Place) lifted(ctx context.Context, tree string) (string, error) {
	var l laid
	b, err := os.ReadFile(filepath.Join(p.Slot.folder, laidFile))
	if errors.Is(err, fs.ErrNotExist) {
		return tree, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &l)
	}
	if err != nil {
		return "", err
	}
	maps.DeleteFunc(l.Files, func(name, digest string) bool {
		now, err := Digest(p.Path(name))
		return err != nil || now != digest
	})
	if len(l.Files) == 0 {
		return tree, nil
	}
	clone := p.Slot.clone
	return clone.With(ctx, tree, l.Commit, slices.Sorted(maps.Keys(l.Files)), clone.Scratch())
}

// A standing is the state of a slot.
type standing struct{ Head, Content string }

func (p *Place) standing(ctx context.Context) (standing, error) {
	look, err := p.Slot.clone.Whole(ctx)
	return standing{look.Head, look.Content}, err
}

// Note records that the slot's present state needs no saving.
func (p *Place) Note(ctx context.Context) error {
	now, err := p.standing(ctx)
	if err != nil {
		return err
	}
	return p.note(now)
}

// NoteAs is [Place.Note] for the state that was looked at: what has changed since is saved before the next use.
func (p *Place) NoteAs(ctx context.Context, at worktree.Snapshot) error {
	if at.Content == "" || p.Slot.clone.Below("") != "" { // it is not of the whole work tree
		return p.Note(ctx)
	}
	return p.note(standing{at.Head, at.Content})
}

func (p *Place) note(now standing) error {
	b, err := json.Marshal(now)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(p.Slot.folder, leftFile), b, 0o600), p.Slot.forget(ownerFile))
}

// rescue saves work in the slot that is newer than the last Note, either
// for the session, which is then settled without the slot, or for people.
func (p *Place) rescue(ctx context.Context) error {
	s := p.Slot
	b, err := os.ReadFile(filepath.Join(s.folder, leftFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was just being prepared
	}
	var was standing
	if err != nil || json.Unmarshal(b, &was) != nil {
		return err
	}
	var now standing
	if err := p.taking(ctx, func(ctx context.Context) (err error) { now, err = p.standing(ctx); return err }); err != nil {
		if ctx.Err() == nil {
			err = p.putAway(ctx, err)
		}
		return err
	}
	if now == was || s.Base == "" {
		return nil
	}
	ref, err := s.owner()
	if err != nil {
		return err
	}
	saved := ""
	if ref != "" {
		if saved, err = s.slots.Here.Tree.Ref(ctx, ref); err != nil {
			return err
		}
	}
	if ref == "" || saved != "" { // the session's work was saved and settled before
		ref = lostRefs + s.name() + "-" + time.Now().UTC().Format("20060102T150405.000")
	}
	if saved != "" {
		tree, err := s.slots.Here.Tree.Whole(ctx, saved)
		if err != nil {
			return err
		}
		if tree == now.Content {
			return nil // ralph was killed before it noted so
		}
	}
	if err := p.taking(ctx, func(ctx context.Context) error {
		now, err := p.standing(ctx)
		if err != nil {
			return err
		}
		made, err := s.candidate(ctx, now.Content, "Found in slot "+s.name()+"\n")
		if err == nil {
			err = s.slots.Here.Tree.Fetch(ctx, s.clone, s.Base, made.Head, ref)
		}
		return err
	}); err != nil {
		if ctx.Err() == nil {
			err = p.putAway(ctx, err)
		}
		return err
	}
	s.slots.Log.Warn("saved unsaved work from a slot as a commit", "slot", s.name(), "ref", ref)
	return nil
}

// taking has do take what is in the slot, once more with a .git of ralph's if git refuses what is in the slot's.
func (p *Place) taking(ctx context.Context, do func(ctx context.Context) error) error {
	limited, cancel := worktree.Limited(ctx)
	err := do(limited)
	cancel()
	if err == nil || ctx.Err() != nil || !worktree.Refused(err) {
		return err
	}
	if rerr := p.Renew(ctx, err); rerr != nil {
		return errors.Join(err, rerr)
	}
	limited, cancel = worktree.Limited(ctx)
	defer cancel()
	return do(limited)
}

// Renew puts a new .git into the slot, as git refuses something in the present one. Why says what. The files
// stay.
func (p *Place) Renew(ctx context.Context, why error) error {
	p.Slot.slots.Log.Warn("put a new .git into a slot, as git refuses what was in it; the files are as they were",
		"slot", p.Slot.name(), "error", why)
	return p.Slot.clone.Renew(ctx)
}

// putAway moves a slot's files aside for people, as nothing can be taken from them.
func (p *Place) putAway(ctx context.Context, why error) error {
	if os.Remove(p.Slot.clone.Top()) == nil { // it is empty
		return os.MkdirAll(p.Dir, 0o700)
	}
	return p.without(ctx, func(path string) error {
		folder, err := p.Slot.aside("lost-", path)
		if err == nil {
			p.Slot.slots.Log.Warn("moved aside a slot's files, of which nothing can be taken",
				"slot", p.Slot.name(), "folder", folder, "error", why)
		}
		return err
	})
}

// scrap removes a slot's files, which git could not clean, ignored ones included.
func (p *Place) scrap(ctx context.Context, why error) error {
	p.Slot.slots.Log.Warn("made a slot anew, as git could not clean it", "slot", p.Slot.name(), "error", why)
	if err := p.Slot.forget(setupFile); err != nil {
		return err
	}
	return p.without(ctx, p.Slot.discard)
}

// without has the slot's files taken away, or all of the slot if that fails, and makes an empty slot.
func (p *Place) without(ctx context.Context, take func(path string) error) error {
	s := p.Slot
	err := take(s.clone.Top())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		if err := take(s.folder); err != nil {
			return fmt.Errorf("slot %s can be neither used nor replaced: %w", s.name(), err)
		}
	}
	if s.clone, err = s.slots.Here.Tree.Clone(ctx, s.folder); err == nil {
		p.Tree = s.clone.Tree
	}
	return err
}

// stuckPrefix begins the names of what could not be removed.
const stuckPrefix = "stuck-"

// discard removes a file or a folder of the slot, or moves it away if it cannot be removed.
func (s *Slot) discard(path string) error {
	err := files.RemoveAll(path)
	if err == nil {
		return nil
	}
	folder, rerr := s.aside(stuckPrefix, path)
	if rerr != nil {
		return errors.Join(err, rerr)
	}
	s.slots.Log.Warn("cannot remove files of a slot, and moved them aside",
		"slot", s.name(), "folder", folder, "error", err)
	return nil
}

// aside moves a file or a folder of the slot next to the slots.
func (s *Slot) aside(prefix, path string) (to string, err error) {
	to = filepath.Join(s.slots.Dir, prefix+s.name()+"-"+time.Now().UTC().Format("20060102T150405.000000"))
	return to, os.Rename(path, to)
}

func (s *Slot) candidate(ctx context.Context, tree, message string) (worktree.Candidate, error) {
	return s.clone.Candidate(ctx, s.Base, tree, message, s.user)
}

// commit commits the scanned tree of a session's slot on top of the base, in the person's repository under the ref.
func (p *Place) commit(ctx context.Context, tree, ref, message string) (worktree.Candidate, error) {
	s := p.Slot
	if s.clone.Below("") != "" { // the project is only a part of the repository
		now, err := p.standing(ctx)
		if err != nil {
			return worktree.Candidate{}, err
		}
		tree = now.Content
	}
	tree, err := p.lifted(ctx, tree)
	if err != nil {
		return worktree.Candidate{}, err
	}
	made, err := s.candidate(ctx, tree, message)
	if err != nil || made.Head == s.Base {
		return made, err
	}
	return made, s.slots.Here.Tree.Fetch(ctx, s.clone, s.Base, made.Head, ref)
}

// SaveLoose saves the session's commits and stashes in the slot that are
// not part of head, as they would be lost with the slot.
func (p *Place) SaveLoose(ctx context.Context, session, head string) error {
	s := p.Slot
	refs, err := s.clone.Refs(ctx, "refs/")
	if err != nil {
		return err
	}
	for name, commit := range refs {
		if !strings.HasPrefix(name, "refs/heads/") && name != "refs/stash" || name == "refs/heads/"+TipBranch {
			continue
		}
		in, err := s.clone.Ancestor(ctx, commit, head)
		if err == nil && !in {
			err = s.slots.Here.Tree.Fetch(ctx, s.clone, s.Base, commit, lostRefs+session+"/"+strings.TrimPrefix(name, "refs/"))
		}
		if err != nil {
			return fmt.Errorf("%s of the slot: %w", name, err)
		}
	}
	return nil
}

// Aside returns what a session left in its slot beside a commit: branches and stashes.
func (p *Place) Aside(ctx context.Context, head string) ([]ralph.Aside, []string, error) {
	return p.Slot.clone.Aside(ctx, p.Slot.Base, head, TipBranch)
}

// TipBranch is the branch in a slot that shows the target's tip.
const TipBranch = "ralph/main"

// ShowTip sets [TipBranch] to a commit.
func (p *Place) ShowTip(commit string) error { return p.Slot.clone.Branch(TipBranch, commit) }

// Environ returns the environment variables for all processes in the place.
func (p *Place) Environ() (env []string) {
	s := p.Slot
	if s == nil {
		return nil
	}
	env = []string{
		"RALPH_SLOT=" + strconv.Itoa(s.Number), "RALPH_ROOT=" + s.slots.Here.Dir,
		"TMPDIR=" + filepath.Join(s.folder, "tmp"),
		"COMPOSE_PROJECT_NAME=" + composeName(s.slots.Name) + "-" + s.name(),
	}
	if n := s.slots.Ports; n > 0 {
		lane := s.Number - 1
		if s.Checks {
			lane += firstCheck
		}
		first := s.slots.PortsFrom + lane*n
		env = append(env, "RALPH_PORT="+strconv.Itoa(first), fmt.Sprintf("RALPH_PORTS=%d-%d", first, first+n-1))
	}
	return env
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
