package loop

import (
	"context"
	"errors"
	"time"

	"ralph/internal/worktree"
	"ralph/loop/merging"
	"ralph/loop/workspace"
	"ralph/store"
)

// gitTries is how many git failures in a row, before a session, end a run.
const gitTries = 3

// awaitGit schedules a retry after git failed before a session began: another git may have been writing, or the machine
// may lack a resource. It returns false for any other error, if waiting does not help, or if git keeps failing. All
// tasks need the same work tree, so a run then ends with the reason, which only people can fix. A daemon keeps waiting.
func (r *runner) awaitGit(cause error) (ok bool) {
	var trouble *workspace.GitError
	if !errors.As(cause, &trouble) || errors.Is(cause, worktree.ErrGone) {
		return false
	}
	if r.untold++; r.untold >= gitTries && !r.Daemon {
		return false
	}
	r.gitReason = cause.Error()
	r.gitNext = r.Store.Now().Add(time.Second << min(r.untold-1, 6))
	r.Log.Warn("git failed before a session; trying again", "error", cause, "times", r.untold)
	return true
}

// waitForGit waits until git may be tried again.
func (r *runner) waitForGit(ctx context.Context) error {
	if !r.Store.Now().Before(r.gitNext) {
		return nil
	}
	return r.wait(ctx, r.gitReason, r.gitNext)
}

// awaitRemote schedules a retry after the remote was unreachable before a session that needs its commits. It returns
// any other error.
func (r *runner) awaitRemote(ctx context.Context, cause error) error {
	if !errors.Is(cause, merging.ErrAway) {
		return cause
	}
	q, err := store.Read(context.WithoutCancel(ctx), r.Store, (*store.Tx).MergeQueue)
	if err != nil {
		return err
	}
	r.Log.Warn("a task waits for the remote", "error", cause)
	r.remoteNext = r.Store.Now().Add(step)
	if q.WaitUntil.After(r.remoteNext) {
		r.remoteNext = q.WaitUntil.Time
	}
	return nil
}

// waitForRemote waits until the next try of the remote, or until somebody reports that it is back.
func (r *runner) waitForRemote(ctx context.Context) error {
	if !r.Store.Now().Before(r.remoteNext) {
		return nil
	}
	q, err := store.Read(ctx, r.Store, (*store.Tx).MergeQueue)
	if err != nil || q.Waits == "" {
		return err
	}
	const why = "for the remote, which cannot be reached"
	if r.busy() {
		return r.besides(ctx, "waiting "+why)
	}
	return r.wait(ctx, why, r.remoteNext)
}
