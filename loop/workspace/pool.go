package workspace

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
	baseRefs  = "refs/ralph/base/"  // the base of each workspace, protected from gc
	startRefs = "refs/ralph/start/" // the commit that a workspace's session starts from, if that is not the base
	lostRefs  = "refs/ralph/lost/"  // unsaved work that was found in a workspace
)

// Pool are the workspaces of a project apart from the person's work tree: shared
// clones, some for sessions to work in and some to check their results.
type Pool struct {
	Here *Workspace // the person's own folder
	Dir  string     // the folder of the workspaces
	Name string     // the project's name

	Setup            []string // commands that make a workspace ready
	PortsFrom, Ports int      // the first port, and the number of ports per workspace; 0 is none

	// How ralph's own commands run in workspaces.
	Env     []string
	Through func(io.Reader) io.Reader // masks secrets in their output; nil masks nothing
	// Enter and Prepare run them in the sandbox of sessions, and in that of checks with the network; nil is no sandbox.
	Enter, Prepare proc.Enter
	Layers         bool              // what the sandbox of checks runs writes to layers
	Caches         map[string]string // the user's caches that workspaces without layers get copies of, by name
	MinFree        uint64            // bytes of disk that those copies leave free
	Forges         bool              // checks may set the time of a file's last change

	Merged      func(ctx context.Context) (string, error) // the last commit of the target; nil is any
	Containment proc.Containment
	Timeout     time.Duration
	Log         *slog.Logger
}

// A Clone is the part of a [Workspace] that only ralph's own clones have.
type Clone struct {
	Number int // of the session, from 1
	Checks bool
	Base   string // the commit that work in the workspace is to be merged into

	pool   *Pool
	folder string
	git    *worktree.Clone
	lock   *flock.Flock
	user   [2]string
	ready  ready // what was checked out in advance

	standsOn *flock.Flock // its ground, which stays while it is used
}

// A ready is what is checked out in a workspace.
type ready struct{ base, commit, lay, hidden string }

// firstCheck is the number from which the check workspaces take their ports.
const firstCheck = 64

// FirstWorker is the number of the first workspace for workers. A run's sessions have the workspaces below it.
const FirstWorker = 2*firstCheck + 1

// FirstReview is the number of the first workspace for reviews: so much above that of who made the change.
const FirstReview = 2 * FirstWorker

// ErrTaken says that a workspace is in use.
var ErrTaken = errors.New("the workspace is in use")

// nameOf returns the name of a workspace: "1", or "check-1".
func nameOf(number int, checks bool) string {
	if checks {
		return "check-" + strconv.Itoa(number)
	}
	return strconv.Itoa(number)
}

// Take locks a workspace for the caller until [Workspace.Release], and creates it
// if necessary. The error wraps [ErrTaken] if it is in use.
func (s *Pool) Take(ctx context.Context, number int, checks bool) (*Workspace, error) {
	return s.take(ctx, number, checks, takeWait)
}

// TakeNow is like [Pool.Take] for a workspace to work in, but does not wait for it.
func (s *Pool) TakeNow(ctx context.Context, number int) (*Workspace, error) {
	return s.take(ctx, number, false, 0)
}

// takeWait is how long to wait for a workspace to work in. Another process may
// be removing it, which includes its teardown.
const takeWait = 4 * time.Minute

func (s *Pool) take(ctx context.Context, number int, checks bool, wait time.Duration) (*Workspace, error) {
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

// taken opens a workspace whose lock the caller holds.
func (s *Pool) taken(ctx context.Context, number int, checks bool, lock *flock.Flock) (*Workspace, error) {
	p, err := s.open(ctx, number, checks)
	if err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	p.Clone.lock = lock
	return p, nil
}

// TakeFree is like [Pool.Take], for the first free one of the given number of check workspaces.
func (s *Pool) TakeFree(ctx context.Context, most int) (p *Workspace, err error) {
	for until := time.Now().Add(freeWait); ; {
		for number := range most {
			if p, err = s.take(ctx, number+1, true, 0); !errors.Is(err, ErrTaken) {
				return p, err
			}
		}
		if ctx.Err() != nil || time.Now().After(until) {
			return p, err
		}
		time.Sleep(freeLook) // others may swap workspaces while this loop goes through them
	}
}

// How long to wait for a free workspace, and how often to look.
const (
	freeWait = time.Minute
	freeLook = 20 * time.Millisecond
)

// lockWait is how long to wait for a workspace that is only to be changed: a
// mere look at it holds the lock for an instant.
const lockWait = time.Second

// lock locks a workspace for this process, at most until the process ends.
func (s *Pool) lock(ctx context.Context, name string, wait time.Duration) (*flock.Flock, error) {
	lock := flock.New(filepath.Join(s.Dir, name+".lock"))
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	ok, err := lock.TryLock()
	if err == nil && !ok && wait > 0 {
		ok, err = lock.TryLockContext(limited, 20*time.Millisecond)
	}
	if err != nil && limited.Err() == nil {
		return nil, fmt.Errorf("lock of workspace %s: %w", name, err)
	}
	if !ok {
		return nil, fmt.Errorf("workspace %s: %w", name, ErrTaken)
	}
	return lock, nil
}

// open opens a workspace, without a lock.
func (s *Pool) open(ctx context.Context, number int, checks bool) (*Workspace, error) {
	folder := filepath.Join(s.Dir, nameOf(number, checks))
	clone, err := s.Here.Tree.Clone(ctx, folder)
	if err != nil {
		return nil, fmt.Errorf("workspace %s: %w", nameOf(number, checks), err)
	}
	ws := &Clone{
		Number: number, Checks: checks, pool: s, folder: folder, git: clone, user: s.Here.Tree.User(ctx),
	}
	if ws.Base, err = s.Here.Tree.Ref(ctx, ws.baseRef()); err != nil {
		return nil, err
	}
	return &Workspace{
		Dir: clone.Root(), Tree: clone.Tree, State: s.Here.State, Watched: s.Here.Watched, Clone: ws,
	}, nil
}

// Begun records that a session works in the workspace from now on: until [Workspace.Note],
// what is found in it is the session's work, which belongs under the ref.
func (p *Workspace) Begun(ref string) error {
	if p.Clone == nil {
		return nil
	}
	return os.WriteFile(filepath.Join(p.Clone.folder, ownerFile), []byte(ref), 0o600)
}

// Of takes the workspace in which a session worked. It returns nil if there was
// none, or if it was removed or prepared for another use since. A workspace that its
// worker still holds is returned without its lock: nobody else can take it then.
func (s *Pool) Of(ctx context.Context, dir, ref string) (*Workspace, error) {
	rel, err := filepath.Rel(s.Dir, dir)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, nil //nolint:nilerr // it worked elsewhere
	}
	number := 0
	if _, err := fmt.Sscanf(filepath.ToSlash(rel), "%d/tree", &number); err != nil {
		return nil, nil //nolint:nilerr // not one of our workspaces
	}
	wait := takeWait
	if number >= FirstWorker {
		wait = lockWait
	}
	p, err := s.named(ctx, nameOf(number, false), wait)
	if errors.Is(err, ErrTaken) && number >= FirstWorker {
		p, err = s.open(ctx, number, false)
	}
	if errors.Is(err, ErrNotFound) {
		return nil, nil //nolint:nilerr // it is gone
	}
	if err != nil {
		return nil, err
	}
	if owner, err := p.Clone.owner(); err != nil || owner != ref {
		return nil, errors.Join(err, p.Release())
	}
	return p, nil
}

// owner returns the ref under which the workspace's content is to be saved; "" if it is nobody's work.
func (s *Clone) owner() (string, error) {
	b, err := os.ReadFile(filepath.Join(s.folder, ownerFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return string(b), err
}

// Release unlocks a workspace.
func (p *Workspace) Release() error {
	if p.Clone == nil || p.Clone.lock == nil {
		return nil
	}
	return errors.Join(p.drop(), p.Clone.stepOff(), p.Clone.lock.Unlock())
}

func (s *Clone) name() string    { return nameOf(s.Number, s.Checks) }
func (s *Clone) baseRef() string { return baseRefs + s.name() }

// Begin prepares the workspace for a session: at the base, with the commit that
// an earlier session of the task left merged onto it, if kept is not "".
// Marked are files of that commit in which ralph had put conflict marks.
// Conflicts are the files that have such marks now.
func (p *Workspace) Begin(ctx context.Context, base, kept string, marked ...string) (conflicts []string, err error) {
	start, lay := base, ""
	if kept != "" {
		if start, lay, conflicts, err = p.Clone.merged(ctx, base, kept); err != nil {
			return nil, fmt.Errorf("merge what an earlier session of the task left: %w", err)
		}
		for _, name := range p.Clone.marks(ctx, kept, marked) {
			if !slices.Contains(conflicts, name) {
				conflicts = append(conflicts, name)
			}
		}
	}
	return conflicts, errors.Join(p.fresh(ctx, base, start, lay), p.Clone.mark(conflicts))
}

// Merge merges a commit of the target into the workspace, in which a session has made the candidate, and returns the
// files that conflict: they have conflict marks. The next candidate has both as parents.
func (p *Workspace) Merge(ctx context.Context, tip string, made worktree.Candidate) (conflicts []string, err error) {
	m, err := p.Clone.pool.Here.Tree.MergeTree(ctx, tip, made.Head)
	if err != nil {
		return nil, err
	}
	return m.Conflicts, errors.Join(p.Clone.mark(m.Conflicts), p.Clone.git.Merge(ctx, tip, made.Tree, m.Tree))
}

// mark records the files of the workspace, from its top, in which ralph has put conflict marks.
func (s *Clone) mark(names []string) error {
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
func (p *Workspace) Marks(ctx context.Context, head string) ([]string, error) {
	b, err := os.ReadFile(filepath.Join(p.Clone.folder, marksFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	if err == nil {
		err = json.Unmarshal(b, &names)
	}
	return p.Clone.marks(ctx, head, names), err
}

// conflictMark matches the begin and the end of a conflict as git merge-tree marks it, with a commit's id.
var conflictMark = regexp.MustCompile(`(?m)^(<{7}|>{7}) ([0-9a-f]{40}|[0-9a-f]{64})(:|\r?$)`)

func (s *Clone) marks(ctx context.Context, commit string, names []string) (marked []string) {
	for _, name := range names {
		if conflictMark.Match(s.pool.Here.Tree.Content(ctx, commit, name)) {
			marked = append(marked, name)
		}
	}
	return marked
}

// merged returns the commit from which a session continues the kept work,
// and the tree to lay over it if they conflict.
func (s *Clone) merged(ctx context.Context, base, kept string) (start, lay string, conflicts []string, err error) {
	tree := s.pool.Here.Tree
	if upon, err := tree.Ancestor(ctx, base, kept); err != nil || upon {
		return kept, "", nil, err
	}
	if merged, err := tree.Ancestor(ctx, kept, base); err != nil || merged {
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

// Prepare checks out the base in advance, for the session whose [Workspace.Begin] is next.
func (p *Workspace) Prepare(ctx context.Context, base string) error {
	given, err := p.Clone.pool.given(ctx)
	if err != nil {
		return err
	}
	is := ready{base: base, commit: base, hidden: fmt.Sprintf("%q", given.patterns())}
	if err := p.checkOut(ctx, is, given); err != nil {
		return err
	}
	p.Clone.ready = is
	return nil
}

// fresh prepares the workspace.
func (p *Workspace) fresh(ctx context.Context, base, commit, lay string) (err error) {
	defer func() {
		var exit *exec.ExitError
		var setup *SetupError
		if errors.As(err, &exit) && !errors.As(err, &setup) {
			err = &GitError{err} // it may pass
		}
	}()
	s := p.Clone
	given, err := s.pool.given(ctx)
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
		tree, err := s.pool.Here.Tree.Whole(ctx, commit)
		if err != nil {
			return err
		}
		return p.note(standing{commit, tree})
	}
	return p.Note(ctx)
}

// checkOut checks out a commit in the workspace, with the files of the tree lay over it unless that is "".
func (p *Workspace) checkOut(ctx context.Context, wanted ready, given given) error {
	s := p.Clone
	if !s.Checks { // nobody works there: what is left in it is from commands
		if err := p.rescue(ctx); err != nil {
			return err
		}
	}
	if err := errors.Join(s.forget(leftFile), s.forget(laidFile), s.forget(marksFile), s.forget(ownerFile)); err != nil {
		return err
	}
	if err := s.pool.Here.Tree.SetRef(ctx, s.baseRef(), wanted.base); err != nil {
		return err
	}
	if wanted.commit != wanted.base {
		if err := s.pool.Here.Tree.SetRef(ctx, startRefs+s.name(), wanted.commit); err != nil {
			return err
		}
	}
	s.Base = wanted.base
	spoiled := exists(filepath.Join(s.folder, spoiledFile)) || s.Checks && s.pool.Layers // nothing is of use there
	if spoiled {
		if err := s.forget(setupFile); err != nil {
			return err
		}
	}
	err := s.git.Fresh(ctx, wanted.commit, given.patterns(), s.user, spoiled)
	if err != nil && ctx.Err() == nil {
		if err = p.scrap(ctx, err); err == nil {
			err = s.git.Fresh(ctx, wanted.commit, given.patterns(), s.user, true)
		}
	}
	if err != nil {
		return fmt.Errorf("workspace %s: %w", s.name(), err)
	}
	if err := s.forget(spoiledFile); err != nil {
		return err
	}
	if wanted.lay != "" {
		if err := s.git.Lay(ctx, wanted.lay); err != nil {
			return fmt.Errorf("workspace %s: %w", s.name(), err)
		}
	}
	temp := filepath.Join(s.folder, "tmp")
	if err := s.discard(temp); err != nil {
		return err
	}
	return os.MkdirAll(temp, 0o700)
}

// Files of a workspace next to its work tree.
const (
	leftFile    = "left"    // the state in which nothing in it needed saving
	setupFile   = "setup"   // a digest of the set-up's input
	spoiledFile = "spoiled" // its ignored files are left from a refused change
	laidFile    = "laid"    // files that differ on purpose from the session's first commit
	marksFile   = "marks"   // files in which ralph has put conflict marks
	ownerFile   = "owner"   // the ref for the work in it, until that was inspected
)

// forget removes one of these files.
func (s *Clone) forget(name string) error {
	err := os.Remove(filepath.Join(s.folder, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Spoil has the workspace's ignored files removed before its next use.
func (p *Workspace) Spoil() error {
	return os.WriteFile(filepath.Join(p.Clone.folder, spoiledFile), nil, 0o600)
}

// laid lists files of a workspace that were replaced on purpose when its session began.
type laid struct {
	Commit string            // the session's first commit
	Files  map[string]string // digests by name, after the replacement
}

// Lay gives files of the workspace the content that a commit has, without those being changes of the session: unless
// somebody changes them, a candidate contains them as they were.
func (p *Workspace) Lay(ctx context.Context, commit string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	l := laid{p.Clone.git.Head(ctx), map[string]string{}}
	root, err := os.OpenRoot(p.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, name := range names {
		v, err := p.Clone.pool.Here.Tree.Version(ctx, commit, name)
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
		err = os.WriteFile(filepath.Join(p.Clone.folder, laidFile), b, 0o600)
	}
	return errors.Join(err, p.Note(ctx))
}

// lifted returns the tree of the whole repository with the laid files as the commit has them.
func (p *Workspace) lifted(ctx context.Context, tree string) (string, error) {
	var l laid
	b, err := os.ReadFile(filepath.Join(p.Clone.folder, laidFile))
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
	clone := p.Clone.git
	return clone.With(ctx, tree, l.Commit, slices.Sorted(maps.Keys(l.Files)), clone.Scratch())
}

// A standing is the state of a workspace.
type standing struct{ Head, Content string }

func (p *Workspace) standing(ctx context.Context) (standing, error) {
	look, err := p.Clone.git.Whole(ctx)
	return standing{look.Head, look.Content}, err
}

// Note records that the workspace's present state needs no saving.
func (p *Workspace) Note(ctx context.Context) error {
	now, err := p.standing(ctx)
	if err != nil {
		return err
	}
	return p.note(now)
}

// NoteAs is [Workspace.Note] for the state that was looked at: what has changed since is saved before the next use.
func (p *Workspace) NoteAs(ctx context.Context, at worktree.Snapshot) error {
	if at.Content == "" || p.Clone.git.Below("") != "" { // it is not of the whole work tree
		return p.Note(ctx)
	}
	return p.note(standing{at.Head, at.Content})
}

// Discard makes nothing of what is in the workspace, of which even the ignored files are removed before its next use.
// It reports whether anything else was changed since the workspace was prepared.
func (p *Workspace) Discard(ctx context.Context) (changed bool, err error) {
	b, err := os.ReadFile(filepath.Join(p.Clone.folder, leftFile))
	var was, now standing
	if err == nil {
		err = json.Unmarshal(b, &was)
	}
	if err == nil {
		now, err = p.standing(ctx)
	}
	return now != was, errors.Join(err, p.Spoil(), p.Clone.forget(leftFile), p.Clone.forget(ownerFile))
}

func (p *Workspace) note(now standing) error {
	b, err := json.Marshal(now)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(p.Clone.folder, leftFile), b, 0o600), p.Clone.forget(ownerFile))
}

// rescue saves work in the workspace that is newer than the last Note, either
// for the session, which is then decided without the workspace, or for people.
func (p *Workspace) rescue(ctx context.Context) error {
	s := p.Clone
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
		if saved, err = s.pool.Here.Tree.Ref(ctx, ref); err != nil {
			return err
		}
	}
	if ref == "" || saved != "" { // the session's work was saved and decided before
		ref = lostRefs + s.name() + "-" + time.Now().UTC().Format("20060102T150405.000")
	}
	if saved != "" {
		tree, err := s.pool.Here.Tree.Whole(ctx, saved)
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
		made, err := s.candidate(ctx, now.Content, "Found in workspace "+s.name()+"\n")
		if err == nil {
			err = s.pool.Here.Tree.Fetch(ctx, s.git, s.Base, made.Head, ref)
		}
		return err
	}); err != nil {
		if ctx.Err() == nil {
			err = p.putAway(ctx, err)
		}
		return err
	}
	s.pool.Log.Warn("saved unsaved work from a workspace as a commit", "workspace", s.name(), "ref", ref)
	return nil
}

// taking has do take what is in the workspace, once more with a .git of ralph's if git refuses what is in the
// workspace's.
func (p *Workspace) taking(ctx context.Context, do func(ctx context.Context) error) error {
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

// Renew puts a new .git into the workspace, as git refuses something in the present one. Why says what. The files
// stay.
func (p *Workspace) Renew(ctx context.Context, why error) error {
	p.Clone.pool.Log.Warn("put a new .git into a workspace, as git refuses what was in it; the files are as they were",
		"workspace", p.Clone.name(), "error", why)
	return p.Clone.git.Renew(ctx)
}

// putAway moves a workspace's files aside for people, as nothing can be taken from them.
func (p *Workspace) putAway(ctx context.Context, why error) error {
	if os.Remove(p.Clone.git.Top()) == nil { // it is empty
		return os.MkdirAll(p.Dir, 0o700)
	}
	return p.without(ctx, func(path string) error {
		folder, err := p.Clone.aside("lost-", path)
		if err == nil {
			p.Clone.pool.Log.Warn("moved aside a workspace's files, of which nothing can be taken",
				"workspace", p.Clone.name(), "folder", folder, "error", why)
		}
		return err
	})
}

// scrap removes a workspace's files, which git could not clean, ignored ones included.
func (p *Workspace) scrap(ctx context.Context, why error) error {
	p.Clone.pool.Log.Warn("made a workspace anew, as git could not clean it", "workspace", p.Clone.name(), "error", why)
	if err := p.Clone.forget(setupFile); err != nil {
		return err
	}
	return p.without(ctx, p.Clone.discard)
}

// without has the workspace's files taken away, or all of the workspace if that fails, and makes an empty workspace.
func (p *Workspace) without(ctx context.Context, take func(path string) error) error {
	s := p.Clone
	err := take(s.git.Top())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		if err := take(s.folder); err != nil {
			return fmt.Errorf("workspace %s can be neither used nor replaced: %w", s.name(), err)
		}
	}
	if s.git, err = s.pool.Here.Tree.Clone(ctx, s.folder); err == nil {
		p.Tree = s.git.Tree
	}
	return err
}

// stuckPrefix begins the names of what could not be removed.
const stuckPrefix = "stuck-"

// discard removes a file or a folder of the workspace, or moves it away if it cannot be removed.
func (s *Clone) discard(path string) error {
	err := files.RemoveAll(path)
	if err == nil {
		return nil
	}
	folder, rerr := s.aside(stuckPrefix, path)
	if rerr != nil {
		return errors.Join(err, rerr)
	}
	s.pool.Log.Warn("cannot remove files of a workspace, and moved them aside",
		"workspace", s.name(), "folder", folder, "error", err)
	return nil
}

// aside moves a file or a folder of the workspace next to the workspaces.
func (s *Clone) aside(prefix, path string) (to string, err error) {
	to = filepath.Join(s.pool.Dir, prefix+s.name()+"-"+time.Now().UTC().Format("20060102T150405.000000"))
	return to, os.Rename(path, to)
}

func (s *Clone) candidate(ctx context.Context, tree, message string) (worktree.Candidate, error) {
	return s.git.Candidate(ctx, s.Base, tree, message, s.user)
}

// commit commits the scanned tree of a session's workspace on top of the base, in the person's repository under the
// ref.
func (p *Workspace) commit(ctx context.Context, tree, ref, message string) (worktree.Candidate, error) {
	s := p.Clone
	if s.git.Below("") != "" { // the project is only a part of the repository
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
	return made, s.pool.Here.Tree.Fetch(ctx, s.git, s.Base, made.Head, ref)
}

// SaveLoose saves the session's commits and stashes in the workspace that are
// not part of head, as they would be lost with the workspace.
func (p *Workspace) SaveLoose(ctx context.Context, session, head string) error {
	s := p.Clone
	refs, err := s.git.Refs(ctx, "refs/")
	if err != nil {
		return err
	}
	for name, commit := range refs {
		if !strings.HasPrefix(name, "refs/heads/") && name != "refs/stash" || name == "refs/heads/"+TipBranch {
			continue
		}
		in, err := s.git.Ancestor(ctx, commit, head)
		if err == nil && !in {
			err = s.pool.Here.Tree.Fetch(ctx, s.git, s.Base, commit, lostRefs+session+"/"+strings.TrimPrefix(name, "refs/"))
		}
		if err != nil {
			return fmt.Errorf("%s of the workspace: %w", name, err)
		}
	}
	return nil
}

// Aside returns what a session left in its workspace beside a commit: branches and stashes.
func (p *Workspace) Aside(ctx context.Context, head string) ([]ralph.Aside, []string, error) {
	return p.Clone.git.Aside(ctx, p.Clone.Base, head, TipBranch)
}

// TipBranch is the branch in a workspace that shows the target's tip.
const TipBranch = "ralph/main"

// ShowTip sets [TipBranch] to a commit.
func (p *Workspace) ShowTip(commit string) error { return p.Clone.git.Branch(TipBranch, commit) }

// Environ returns the environment variables for all processes in the workspace.
func (p *Workspace) Environ() (env []string) {
	s := p.Clone
	if s == nil {
		return nil
	}
	env = []string{
		"RALPH_WORKSPACE=" + strconv.Itoa(s.Number), "RALPH_ROOT=" + s.pool.Here.Dir,
		"TMPDIR=" + filepath.Join(s.folder, "tmp"),
		"COMPOSE_PROJECT_NAME=" + composeName(s.pool.Name) + "-" + s.name(),
	}
	if n := s.pool.Ports; n > 0 {
		number := s.Number - 1
		if s.Checks {
			number += firstCheck
		}
		first := s.pool.PortsFrom + number*n
		env = append(env, "RALPH_PORT="+strconv.Itoa(first), fmt.Sprintf("RALPH_PORTS=%d-%d", first, first+n-1))
	}
	return env
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
