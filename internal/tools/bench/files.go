package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"ralph/internal/worktree"
)

// manyFiles is the repository that is searched for changed files.
const manyFiles = 100_000

const aSecond = 1100 * time.Millisecond

// files compares ralph's search for a session's changes with `git status`.
func (b *bench) files(ctx context.Context) []row {
	p := b.newProject(ctx, b.size(manyFiles))
	tree := must(worktree.Open(ctx, p.dir))
	var before, after, status samples
	for i := range b.rounds {
		p.time(ctx, "git", "checkout", "-q", ".")
		// Files changed in the same second as the index are read each time. A session
		// takes longer.
		pause(ctx, aSecond)
		p.time(ctx, "git", "status") // git status writes the index
		scratch := must(os.MkdirTemp(b.dir, "scratch-*"))
		begin := time.Now()
		start := must(tree.Snapshot(ctx, scratch))
		before.took(time.Since(begin))
		for f := range 10 {
			name := fmt.Sprintf("file%02d.go", f)
			path := filepath.Join(p.dir, "src", fmt.Sprintf("%04d", f*97%(b.size(manyFiles)/100)), name)
			check(os.WriteFile(path, fmt.Appendf(nil, "package p\n\nvar Changed%d = %d\n", f, i), 0o600))
		}
		pause(ctx, aSecond)
		status.took(p.time(ctx, "git", "--no-optional-locks", "status", "--porcelain"))
		begin = time.Now()
		changed := must(tree.Moved(ctx, scratch, start.Content, must(tree.Snapshot(ctx, scratch)).Content))
		after.took(time.Since(begin))
		if len(changed) != 10 {
			check(fmt.Errorf("%d files have changed instead of 10", len(changed)))
		}
	}
	return []row{
		ratio("files changed by a session in a repository of 100,000 files (floor: `git status --porcelain`)",
			after, status, 1.5),
		ratio("… the snapshot before it", before, status, 1.5),
	}
}
