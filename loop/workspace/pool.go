package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/gofrs/flock"

	"ralph/internal/proc"
	"ralph/internal/worktree"
)

// Ref namespaces of ralph in the person's repository.
const (
	baseRefs  = "refs/ralph/base/"  // the base of each workspace, protected from gc
	startRefs = "refs/ralph/start/" // the commit that a workspace's session starts from, if that is not the base
	lostRefs  = "refs/ralph/lost/"  // unsaved work that was found in a workspace
)

// LostRef returns the ref for the work of a session that others had settled as lost.
func LostRef(session string) string { return lostRefs + session + "/workspace" }

// Pool are the workspaces of a project apart from the person's work tree: shared
// clones, some for sessions to work in and some to check their results.
type Pool struct {
	Here *Workspace // the person's own folder
	Dir  string     // the folder of the workspaces
	Name string     // the project's name

	Setup            []string // commands that make a workspace ready
	PortsFrom, Ports int      // the first port, and the number of ports per workspace; 0 is none

	// How ralph's own commands run in workspaces.
	Env      []string
	Through  func(io.Reader) io.Reader // masks secrets in their output; nil masks nothing
	Enter    proc.Enter                // runs them in the sandbox of the workspace's set-up; nil is no sandbox
	Layers   bool                      // the sandbox of checks sends writes to layers
	Steering []string                  // globs of files that steer agents: no session leaves one to the next

	MaxSize int64                    // bytes that a session's workspace and temporary files may take
	Temps   func(ws string) []string // the folders of these files outside of a workspace, by its name; nil for none

	Merged  func(ctx context.Context) (string, error) // the last commit of the target; nil is any
	Timeout time.Duration
	Log     *slog.Logger
}

// A Clone is the part of a [Workspace] that only ralph's own clones have.
type Clone struct {
	Number int // number of the session, from 1
	Checks bool
	Base   string // the commit that work in the workspace will be merged into

	pool   *Pool
	folder string
	git    *worktree.Clone
	lock   *flock.Flock
	user   [2]string

	standsOn *flock.Flock // its ground, which stays while it is used
}

// firstCheck is the first number for the ports of check workspaces.
const firstCheck = 64

// FirstWorker is the number of the first workspace for workers. A run's sessions have the workspaces below it.
const FirstWorker = 2*firstCheck + 1

// FirstReview is the number of the first workspace for reviews: so much above the number of the reviewed one.
const FirstReview = 2 * FirstWorker

// ErrTaken means that a workspace is in use.
var ErrTaken = errors.New("the workspace is in use")

// CheckPrefix begins the names of the folders of check workspaces.
const CheckPrefix = "check-"

// nameOf returns the name of a workspace: "1", or "check-1".
func nameOf(number int, checks bool) string {
	if checks {
		return CheckPrefix + strconv.Itoa(number)
	}
	return strconv.Itoa(number)
}

// Take locks a workspace for the caller until [Workspace.Release], and creates it
// if necessary. The error wraps [ErrTaken] if it is in use.
func (p *Pool) Take(ctx context.Context, number int, checks bool) (*Workspace, error) {
	return p.take(ctx, number, checks, takeWait)
}

// TakeNow is like [Pool.Take] for a workspace to work in, but does not wait.
func (p *Pool) TakeNow(ctx context.Context, number int) (*Workspace, error) {
	return p.take(ctx, number, false, 0)
}

// takeWait is the time to wait for a workspace to work in. Another process may be
// removing it, which includes its teardown.
const takeWait = 4 * time.Minute

func (p *Pool) take(ctx context.Context, number int, checks bool, wait time.Duration) (*Workspace, error) {
	name := nameOf(number, checks)
	if err := os.MkdirAll(p.Dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := p.lock(ctx, name, wait)
	if err != nil {
		return nil, err
	}
	return p.taken(ctx, number, checks, lock)
}

// taken opens a workspace whose lock the caller holds.
func (p *Pool) taken(ctx context.Context, number int, checks bool, lock *flock.Flock) (*Workspace, error) {
	w, err := p.open(ctx, number, checks)
	if err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	w.Clone.lock = lock
	return w, nil
}

// TakeCheck takes a check workspace for work of another workspace; nil stands for the merge queue. A worker has its
// own, so that workers never prevent a run from checking. The others share the check workspaces: one for each
// possible session, and one for the merge queue.
func (p *Pool) TakeCheck(ctx context.Context, of *Workspace, sessions int) (w *Workspace, err error) {
	if of != nil && of.Clone != nil && of.Clone.Number >= FirstWorker {
		return p.Take(ctx, of.Clone.Number, true)
	}
	for until := time.Now().Add(freeWait); ; {
		for number := range sessions + 1 {
			if w, err = p.take(ctx, number+1, true, 0); !errors.Is(err, ErrTaken) {
				return w, err
			}
		}
		if ctx.Err() != nil || time.Now().After(until) {
			return w, err
		}
		time.Sleep(freeLook) // others may swap workspaces while this loop goes through them
	}
}

// The time to wait for a free workspace, and the polling interval.
const (
	freeWait = time.Minute
	freeLook = 20 * time.Millisecond
)

// lockWait is the time to wait for a workspace that only needs changes: a mere look at it
// holds the lock for an instant.
const lockWait = time.Second

// lock locks a workspace for this process, at most until the process ends.
func (p *Pool) lock(ctx context.Context, name string, wait time.Duration) (*flock.Flock, error) {
	lock := flock.New(filepath.Join(p.Dir, name+".lock"))
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
func (p *Pool) open(ctx context.Context, number int, checks bool) (*Workspace, error) {
	folder := filepath.Join(p.Dir, nameOf(number, checks))
	clone, err := p.Here.Tree.Clone(ctx, folder)
	if err != nil {
		return nil, fmt.Errorf("workspace %s: %w", nameOf(number, checks), err)
	}
	c := &Clone{
		Number: number, Checks: checks, pool: p, folder: folder, git: clone, user: p.Here.Tree.User(ctx),
	}
	if c.Base, err = p.Here.Tree.Ref(ctx, c.baseRef()); err != nil {
		return nil, err
	}
	return &Workspace{
		Dir: clone.Root(), Tree: clone.Tree, State: p.Here.State, Watched: p.Here.Watched, Clone: c,
	}, nil
}

// Begun records that a session works in the workspace from now on: until [Workspace.Note], changes in it are the
// session's work, to be kept under the ref.
func (w *Workspace) Begun(ref string) error {
	if w.Clone == nil {
		return nil
	}
	return os.WriteFile(filepath.Join(w.Clone.folder, ownerFile), []byte(ref), 0o600)
}

// Of takes the workspace in which a session worked. It returns nil if there was none, or
// if it was removed or prepared for another use since. If its worker still holds the
// workspace, it is returned without its lock: nobody else can take it then.
func (p *Pool) Of(ctx context.Context, dir, ref string) (*Workspace, error) {
	rel, err := filepath.Rel(p.Dir, dir)
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
	w, err := p.named(ctx, nameOf(number, false), wait)
	if errors.Is(err, ErrTaken) && number >= FirstWorker {
		w, err = p.open(ctx, number, false)
	}
	if errors.Is(err, ErrNotFound) {
		return nil, nil //nolint:nilerr // it is gone
	}
	if err != nil {
		return nil, err
	}
	if owner, err := w.Clone.owner(); err != nil || owner != ref {
		return nil, errors.Join(err, w.Release())
	}
	return w, nil
}

// owner returns the ref for saving the workspace's content; "" if it is nobody's work.
func (c *Clone) owner() (string, error) {
	b, err := os.ReadFile(filepath.Join(c.folder, ownerFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return string(b), err
}

// Release unlocks a workspace.
func (w *Workspace) Release() error {
	if w.Clone == nil || w.Clone.lock == nil {
		return nil
	}
	return errors.Join(w.drop(), w.Clone.stepOff(), w.Clone.lock.Unlock())
}

func (c *Clone) name() string    { return nameOf(c.Number, c.Checks) }
func (c *Clone) baseRef() string { return baseRefs + c.name() }

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
