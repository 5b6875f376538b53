package worktree

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"time"
)

// broken matches what git says of objects that it lacks or cannot read, as opposed to other failures.
var broken = regexp.MustCompile(`\b(missing|corrupt|broken link|unable to read|bad object|garbage at end)\b`)

// Broken says what the history of HEAD lacks; "" if it is whole, or if that is not known within the
// limit.
func (t *Tree) Broken(ctx context.Context, limit time.Duration) string {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if ref, err := t.run(ctx, nil, "rev-parse", "-q", "--verify", "HEAD"); err != nil || len(ref) == 0 {
		return "" // there is no commit yet
	}
	out, err := t.run(ctx, nil, "fsck", "--connectivity-only", "--no-dangling", "--no-reflogs", "--no-progress", "HEAD")
	var exit *exitError
	if ctx.Err() != nil || !errors.As(err, &exit) {
		return ""
	}
	said := strings.Join(strings.Fields(err.Error()+" "+string(out)), " ")
	if code := exit.ExitCode(); (code < 1 || code > 3) && !broken.MatchString(said) {
		return "" // git itself failed
	}
	return said
}
