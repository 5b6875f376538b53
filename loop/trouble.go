package loop

import (
	"context"
	"errors"
	"time"

	"ralph/internal/worktree"
	"ralph/loop/workspace"
)

// gitTries is the number of git failures in a row, before a session, that ends a run.
const gitTries = 3

// awaitGit schedules a retry after git failed before a session began. Another git may be
// writing just then, or the machine may be short of something. It returns false for any other
// error, if waiting is no use, or if git keeps failing. All tasks need the same work tree, so
// a run then ends with the reason, which only people can fix; a daemon keeps waiting.
func (r *runner) awaitGit(cause error) (ok bool) {
	var trouble *workspace.GitError
	if !errors.As(cause, &trouble) || errors.Is(cause, worktree.ErrGone) {
		return false
	}
	if r.untold++; r.untold >= gitTries && !r.Daemon {
		return false
	}
	r.gitReason = cause.Error()
	r.gitNext = time.Now().Add(time.Second << min(r.untold-1, 6))
	r.Log.Warn("git failed before a session; trying again", "error", cause, "times", r.untold)
	return true
}

// waitForGit waits until git may be tried again.
func (r *runner) waitForGit(ctx context.Context) error {
	if time.Until(r.gitNext) <= 0 {
		return nil
	}
	return r.wait(ctx, r.gitReason, r.gitNext)
}
