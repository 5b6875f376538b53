package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"ralph"
	"ralph/internal/worktree"
	"ralph/signals"
	"ralph/store"
)

// maxUncommitted bounds how many uncommitted files a session remembers.
const maxUncommitted = 10_000

// look takes a snapshot, and lists the small ignored files. git does
// both at the same time: neither writes what the other reads.
func (l *Loop) look(ctx context.Context, s *session) (snapshot worktree.Snapshot, ignored worktree.Ignored, err error) {
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() (err error) {
		snapshot, err = l.Tree.Snapshot(ctx, s.scratch())
		return err
	})
	both.Go(func() (err error) {
		ignored, err = l.Tree.Ignored(ctx)
		return err
	})
	return snapshot, ignored, both.Wait()
}

// A treeError says that git fails in the work tree.
type treeError struct{ error }

// Unwrap is what git said.
func (e *treeError) Unwrap() error { return e.error }

// untold says that git does not tell the state of the work tree, and how people see why.
func untold(err error) error {
	return &treeError{fmt.Errorf("git cannot tell the state of the work tree (`git status` says why): %w", err)}
}

// gitTries is how often in a row git may fail before a session begins until a run ends.
const gitTries = 3

// awaitGit notes that git has failed before a session began; ok is false where that is
// not what went wrong, or no use to wait for. Another git may just be writing there, or
// the machine be short of something. There is one work tree, so that no other task can
// be worked on instead of this one: where it lasts a run ends with the reason, for only
// people can mend it, and a daemon goes on waiting.
func (r *runner) awaitGit(cause error) (ok bool) {
	var trouble *treeError
	if !errors.As(cause, &trouble) || errors.Is(cause, worktree.ErrGone) {
		return false
	}
	if r.untold++; r.untold >= gitTries && !r.Daemon {
		return false
	}
	r.gitReason = shortly(cause)
	r.gitNext = time.Now().Add(time.Second << min(r.untold-1, 6))
	r.Log.Warn("git fails before a session; it is tried again", "error", cause, "times", r.untold)
	return true
}

// waitForGit waits until git is asked again. It reports whether it waited at all.
func (r *runner) waitForGit(ctx context.Context) (bool, error) {
	left := time.Until(r.gitNext)
	if left <= 0 {
		return false, nil
	}
	if err := r.state(ctx, "waiting", r.gitReason, r.gitNext); err != nil {
		return false, err
	}
	r.sleep(ctx, min(left, pollWaiting))
	return true, nil
}

// saveWork keeps what people have not committed before a session may touch it, and
// notes which files that are (unattended, "Git").
func (l *Loop) saveWork(ctx context.Context, s *session, snapshot worktree.Snapshot, ignored worktree.Ignored) (found store.Uncommitted, err error) {
	if found.Files, err = l.Tree.Uncommitted(ctx, snapshot, s.scratch()); err != nil {
		return found, err
	}
	found.Files = found.Files[:min(len(found.Files), maxUncommitted)]
	// Of what git ignores, secrets alone are nothing that a session may commit.
	found.Files = append(found.Files, l.Tree.Secrets(ignored)...)
	if !l.Snapshots {
		return found, nil
	}
	saved, ok, err := l.Tree.Save(ctx, snapshot, ignored, s.scratch(), fmt.Sprintf("before attempt on TASK-%d, session %.8s", s.task.ID, s.row.ID))
	if err != nil || !ok {
		return found, err
	}
	found.Snapshot = saved.ID
	return found, nil
}

// lostWork finds the saved files that a session has removed.
func (s *session) lostWork(ctx context.Context) error {
	var found store.Uncommitted
	if err := s.Store.View(ctx, func(tx *store.Tx) (err error) {
		found, err = tx.Uncommitted(s.row.ID)
		return err
	}); err != nil || found.Snapshot == 0 {
		return err
	}
	saved, err := s.Tree.Saved(ctx, found.Snapshot)
	if err != nil {
		return nil // it has been dropped since; there is nothing to point to
	}
	files, err := s.Tree.SavedFiles(ctx, saved)
	if err != nil {
		return err
	}
	s.row.SnapshotID = found.Snapshot
	s.row.Gone, err = s.Tree.Missing(files)
	return err
}

// commitTask commits what a completed task's sessions left uncommitted. Files that
// were not committed before its first session hold a person's work too and are
// left alone.
func (l *Loop) commitTask(ctx context.Context, s *session, closing signals.Payload) (err error) {
	var sessions []ralph.Session
	var mine store.Uncommitted // people's, that is
	if err := l.Store.View(ctx, func(tx *store.Tx) error {
		if sessions, err = tx.Sessions(store.SessionFilter{Task: s.task.ID}); err != nil {
			return err
		}
		mine, err = tx.Uncommitted(sessions[len(sessions)-1].ID)
		return err
	}); err != nil {
		return err
	}
	var files, left []string
	for _, earlier := range sessions {
		for _, f := range earlier.Files {
			list := &files
			if slices.Contains(mine.Files, f.Path) {
				list = &left
			}
			if !slices.Contains(*list, f.Path) {
				*list = append(*list, f.Path)
			}
		}
	}
	id, filtered, err := l.Tree.Commit(ctx, files, commitMessage(s, closing))
	if len(filtered) > 0 {
		l.Log.Warn("files that belong to a filter of git's (.gitattributes), which ralph does not run, are left uncommitted", "task", s.task.ID, "files", strings.Join(filtered, ", "))
	}
	if err != nil {
		return err
	}
	if len(left) > 0 {
		slices.Sort(left)
		l.Log.Warn("files that were not committed before the task are left uncommitted", "task", s.task.ID, "files", strings.Join(left, ", "))
	}
	if id == "" {
		return nil
	}
	return l.Store.Tx(ctx, func(tx *store.Tx) error { return tx.AddCommit(s.row.ID, id) })
}

// commitMessage names the task, in the trailers so that programs find it.
func commitMessage(s *session, closing signals.Payload) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", strings.Join(strings.Fields(s.task.Title), " "))
	if done, ok := closing.(signals.Done); ok {
		fmt.Fprintf(&b, "%s\n\n", strings.TrimSpace(done.Summary))
	}
	fmt.Fprintf(&b, "Ralph-Task: TASK-%d\nRalph-Session: %s\n", s.task.ID, s.row.ID)
	return b.String()
}
