// Package workspace provides the folders for sessions: their work trees, their work as commits, and their processes.
// Sessions work and are checked in workspaces, clones that belong to ralph; a person works in their own folder.
package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ralph/internal/proc"
	"ralph/internal/worktree"
)

// A Workspace is a folder in which somebody works.
type Workspace struct {
	Dir     string // the root of the project in it
	Tree    *worktree.Tree
	State   string   // the folder for ralph's own files
	Watched []string // files whose changes count even if git ignores them, relative to Dir

	Clone *Clone // set if the workspace is a clone of ralph's; nil for a person's own folder
}

// Has reports whether a session worked here. Old sessions have no record of their workspace.
func (w *Workspace) Has(dir string) bool { return dir == "" || dir == w.Dir }

// Path returns the absolute path of a slash-separated name relative to the root.
func (w *Workspace) Path(name string) string { return filepath.Join(w.Dir, filepath.FromSlash(name)) }

// Here returns the folder where people work.
func (w *Workspace) Here() *Workspace {
	if w.Clone != nil {
		return w.Clone.pool.Here
	}
	return w
}

// Folder returns the folder of a session's transcript.
func (w *Workspace) Folder(session string) string { return filepath.Join(w.State, "sessions", session) }

// DiffsFile is the file in a session's folder with its changes line by line, as the JSON of [ralph.Differences].
const DiffsFile = "changes.json"

// HiddenLog is the file in a session's folder with the output of the checks that it did not see.
const HiddenLog = "hidden.log"

// Scratch returns the folder for the objects of a session's snapshots,
// which is removed once it is decided.
func (w *Workspace) Scratch(session string) string {
	if w.Clone != nil {
		return w.Clone.git.Scratch() // candidates are fetched from there
	}
	return filepath.Join(w.Folder(session), "objects")
}

// Channel returns the folder through which a session's agent reaches the run, outside of
// ralph's state. Its path is short enough for a socket's.
func Channel(session string) string {
	const most = 100 // of 104 bytes on some systems, with "/mcp"
	name := "ralph-" + session
	if path := filepath.Join(os.TempDir(), name); len(path) < most-len("/mcp") {
		return path
	}
	return filepath.Join("/tmp", name)
}

// Snapshot scans the work tree.
func (w *Workspace) Snapshot(ctx context.Context, scratch string) (worktree.Snapshot, error) {
	seen, err := w.Tree.Snapshot(ctx, scratch)
	return seen, untold(err)
}

// Mark commits the contents of a person's folder before they begin to work on a task, under the ref: earlier changes
// are not the task's. Without uncommitted changes, it returns HEAD.
func (w *Workspace) Mark(ctx context.Context, ref string) (began worktree.Snapshot, err error) {
	began, made, err := w.Candidate(ctx, ref, "What was there before the task was claimed\n")
	began.Head = made.Head
	return began, err
}

// Candidate commits the present contents of the workspace, in the person's repository under the ref: in a workspace,
// on top of its base; in a person's folder, on HEAD, without changing folder or index. Later events in the workspace
// do not change the commit. In a workspace debris is left out, unless keep names the file.
func (w *Workspace) Candidate(
	ctx context.Context, ref, message string, keep ...string,
) (at worktree.Snapshot, made worktree.Candidate, err error) {
	if w.Clone == nil {
		scratch, err := os.MkdirTemp(w.State, "record-*")
		if err != nil {
			return at, made, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
		if made, err = w.Tree.Record(ctx, scratch, ref, message); err != nil {
			return at, made, untold(err)
		}
		at.Head = w.Tree.At(ctx)
		at.Content, err = w.Tree.Committed(ctx, made.Head)
		return at, made, untold(err)
	}
	if at, err = w.Snapshot(ctx, w.Scratch("")); err != nil {
		return at, made, err
	}
	made, at.Debris, err = w.commit(ctx, at.Content, ref, message, keep)
	return at, made, err
}

// ResultKey returns the key for verification results of a tree that was checked in a workspace: it includes the set-up
// there, and people's files. It is nil if either is unknown.
func (p *Pool) ResultKey(tree string) string {
	const kind = "integration:"
	if p == nil {
		return kind + tree
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q\n", p.Setup, p.Here.Tree.Sparse)
	if info, err := os.Stat(p.Here.Path(includeFile)); err == nil {
		fmt.Fprintf(sum, "%d %d\n", info.Size(), info.ModTime().UnixNano())
	}
	return kind + tree + ":" + hex.EncodeToString(sum.Sum(nil))[:16]
}

// untold wraps an error of git about the state of the work tree, and tells how people can see the
// cause.
func untold(err error) error {
	if err == nil {
		return nil
	}
	return &GitError{fmt.Errorf("git cannot tell the state of the work tree (`git status` says why): %w", err)}
}

// A GitError means that git failed in the work tree.
type GitError struct{ error }

// Unwrap returns git's error.
func (e *GitError) Unwrap() error { return e.error }

// Marker returns the variable that marks a session's processes in their environment.
func Marker(session string) string { return "RALPH_SESSION_ID=" + session }

// CPUTime returns the CPU time used so far by the processes that a session's agent has started. The agent itself uses
// some while it only waits for its model.
func (w *Workspace) CPUTime(session string) (time.Duration, error) {
	return proc.CPUTime(Marker(session), func(command string) bool { return strings.HasSuffix(command, " mcp") })
}

// Sweep kills the processes that a session left running. If they cannot be found, it does
// nothing.
func (w *Workspace) Sweep(session string) ([]proc.Leftover, error) {
	killed, err := proc.Sweep(Marker(session))
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return killed, fmt.Errorf("kill leftover processes: %w", err)
	}
	return killed, nil
}
