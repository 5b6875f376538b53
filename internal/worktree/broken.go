package worktree

import (
	"context"
	"errors"
	"strings"
	"time"

	"ralph/internal/lazy"
)

// broken matches git's messages about missing and unreadable objects, as opposed to other failures.
var broken = lazy.Regexp(`\b(missing|corrupt|broken link|unable to read|bad (\w+ )?object|garbage at end)\b`)

// examined is the number of newest commits to examine. Sessions need the tree of the newest one and the history back to
// the start of unmerged work. The cost of the complete history grows with each merge.
const examined = "200"

// Broken names the first missing object of the newest 200 commits of HEAD, with their trees and files; "" if nothing is
// missing, or at the time limit. Objects that a partial clone has not fetched do not count.
func (t *Tree) Broken(ctx context.Context, limit time.Duration) string {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	head := t.At(ctx)
	if head == "" {
		return "" // there is no commit yet
	}
	out, err := t.run(ctx, nil, "rev-list", "--objects", "--quiet", "--exclude-promisor-objects", "--max-count="+examined,
		head)
	var exit *exitError
	if ctx.Err() != nil || !errors.As(err, &exit) {
		return ""
	}
	said := strings.Join(strings.Fields(err.Error()+" "+string(out)), " ")
	if !broken().MatchString(said) {
		return "" // git itself failed
	}
	return said
}
