package worktree

import (
	"context"
	"strings"

	"ralph"
	"ralph/internal/lazy"
	"ralph/internal/text"
)

// A Revert is a commit whose message, like that of `git revert`, names the commits that it reverts.
type Revert struct {
	ralph.Commit
	Of []string // the ids
}

var reverts = lazy.Regexp(`(?m)^This reverts commit ([0-9a-f]{40,64})\b`)

// Reverts lists the reverting commits that tips have and lacks does not have, oldest first. If lacks is missing, it
// reads all commits of the tips.
func (t *Tree) Reverts(ctx context.Context, tips []string, lacks string) (list []Revert, err error) {
	args := []string{
		"log", "--no-show-signature", "--no-decorate", "--no-patch", "--reverse", "--ignore-missing",
		"--fixed-strings", "--grep=This reverts commit ", "--format=%H%x1f%an%x1f%s%x1f%b%x1e",
	}
	out, err := t.run(ctx, nil, append(append(args, tips...), "^"+lacks)...)
	for entry := range strings.SplitSeq(string(out), "\x1e") {
		f := strings.SplitN(strings.TrimPrefix(entry, "\n"), "\x1f", 4)
		if len(f) < 4 {
			continue
		}
		r := Revert{Commit: ralph.Commit{ID: f[0], Author: text.Clip(f[1], 60), Subject: text.Clip(f[2], 60)}}
		for _, m := range reverts().FindAllStringSubmatch(f[3], -1) {
			r.Of = append(r.Of, m[1])
		}
		list = append(list, r)
	}
	return list, err
}
