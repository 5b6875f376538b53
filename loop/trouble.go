package loop

import (
	"context"
	"errors"
	"time"

	"ralph/internal/worktree"
	"ralph/loop/place"
)

// gitTries is how often in a row git may fail before a session begins until a run ends.
const gitTries = 3

// awaitGit notes that git has failed before a session began; ok is false where that is
// not what went wrong, or no use to wait for. Another git may just be writing there, or
// the machine be short of something. There is one work tree, so that no other task can
// be worked on instead of this one: where it lasts a run ends with the reason, for only
// people can mend it, and a daemon goes on waiting.
func (r *runner) awaitGit(cause error) (ok bool) {
	var trouble *place.GitError
	if !errors.As(cause, &trouble) || errors.Is(cause, worktree.ErrGone) {
		return false
	}
	if r.untold++; r.untold >= gitTries && !r.Daemon {
		return false
	}
	r.gitReason = cause.Error()
	r.gitNext = time.Now().Add(time.Second << min(r.untold-1, 6))
	r.Log.Warn("git fails before a session; it is tried again", "error", cause, "times", r.untold)
	return true
}

// waitForGit waits until git is asked again.
func (r *runner) waitForGit(ctx context.Context) error {
	if time.Until(r.gitNext) <= 0 {
		return nil
	}
	return r.wait(ctx, r.gitReason, r.gitNext)
}
