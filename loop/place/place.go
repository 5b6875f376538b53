// Package place has where sessions work: a folder with its work tree, what is told of
// both by digests, and the processes of a session there. The one kind so far is `here`:
// the folder in which people work, too.
package place

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"ralph/internal/proc"
	"ralph/internal/worktree"
	"ralph/store"
)

// A Place is where sessions work.
type Place struct {
	Dir   string // its root
	Tree  *worktree.Tree
	State string // the folder for what ralph keeps beside it
	Saves bool   // people's uncommitted files are saved before each session
	// TakesBack tells that what a session changed that failed is taken back.
	TakesBack bool
	Watched   []string // files that count as a change, relative to the root, also where git ignores them
}

// Has reports whether a session worked here: of an older one it is not known where.
func (p *Place) Has(dir string) bool { return dir == "" || dir == p.Dir }

// Path is a file of the place by its path as people write it, relative to the root.
func (p *Place) Path(name string) string { return filepath.Join(p.Dir, filepath.FromSlash(name)) }

// Named is a path for people.
func (p *Place) Named(path string) string {
	if rel, err := filepath.Rel(p.Dir, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return path
}

// Folder is where a session's transcript is kept.
func (p *Place) Folder(session string) string { return filepath.Join(p.State, "sessions", session) }

// Scratch is where the objects of a session's snapshots are kept until it is settled.
func (p *Place) Scratch(session string) string { return filepath.Join(p.Folder(session), "objects") }

// Look is the work tree as it is now.
func (p *Place) Look(ctx context.Context, scratch string) (worktree.Snapshot, error) {
	look, err := p.Tree.Look(ctx, scratch)
	return look, untold(err)
}

// Now is the state of the work tree.
func (p *Place) Now(ctx context.Context, scratch string) (s store.State, err error) {
	look, err := p.Tree.Look(ctx, scratch)
	if err == nil {
		s.Content = look.Digest()
		s.Committed, err = p.Tree.Committed(ctx, look.Head)
	}
	return s, untold(err)
}

// untold says that git does not tell the state of the work tree, and how people see why.
func untold(err error) error {
	if err == nil {
		return nil
	}
	return &GitError{fmt.Errorf("git cannot tell the state of the work tree (`git status` says why): %w", err)}
}

// A GitError says that git fails in the work tree.
type GitError struct{ error }

// Unwrap is what git said.
func (e *GitError) Unwrap() error { return e.error }

// Marker is what the environment of a session's processes has.
func Marker(session string) string { return "RALPH_SESSION_ID=" + session }

// CPUTime is what a session's processes have used of the processors so far.
func (p *Place) CPUTime(session string) (time.Duration, error) { return proc.CPUTime(Marker(session)) }

// Sweep kills what a session has left running; none where that cannot be found.
func (p *Place) Sweep(session string) ([]proc.Leftover, error) {
	killed, err := proc.Sweep(Marker(session))
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return killed, fmt.Errorf("processes that it left: %w", err)
	}
	return killed, nil
}
