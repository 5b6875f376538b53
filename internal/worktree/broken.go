package worktree

import (
	"context"
	"errors"
	"strings"
	"time"
)

// Broken says what the history of HEAD lacks; "" if it is whole, or if that is not known within the
// limit.
func (t *Tree) Broken(ctx context.Context, limit time.Duration) string {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if ref, err := t.run(ctx, nil, "rev-parse", "-q", "--verify", "HEAD"); err != nil || len(ref) == 0 {
		return "" // there is no commit yet
	}
	_, err := t.run(ctx, nil, "fsck", "--connectivity-only", "--no-dangling", "--no-reflogs", "--no-progress", "HEAD")
	var exit *exitError
	if ctx.Err() != nil || !errors.As(err, &exit) || exit.ExitCode() < 1 || exit.ExitCode() > 3 {
		return ""
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}
