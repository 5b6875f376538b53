package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"ralph/internal/worktree"
)

// manyFiles is the repository in which changed files are looked for.
const manyFiles = 100_000

const aSecond = 1100 * time.Millisecond

// files compares how ralph finds what a session changed with `git status`.
func (b *bench) files(ctx context.Context) ([]row, error) {
	p, err := b.newProject(ctx, manyFiles)
	if err != nil {
		return nil, err
	}
	tree, err := worktree.Open(ctx, p.dir)
	if err != nil {
		return nil, err
	}
	var before, after, status samples
	for i := range b.rounds {
		if _, err := p.time(ctx, "git", "checkout", "-q", "."); err != nil {
			return nil, err
		}
		// Files that were changed in the second in which an index is written are read
		// each time. A session takes longer.
		if err := pause(ctx, aSecond); err != nil {
			return nil, err
		}
		if _, err := p.time(ctx, "git", "status"); err != nil { // which writes that down
			return nil, err
		}
		scratch, err := os.MkdirTemp(b.dir, "scratch-*")
		if err != nil {
			return nil, err
		}
		begin := time.Now()
		start, err := tree.Snapshot(ctx, scratch)
		if err != nil {
			return nil, err
		}
		before.took(time.Since(begin))
		for f := range 10 {
			path := filepath.Join(p.dir, "src", fmt.Sprintf("%04d", f*97), "file42.go")
			if err := os.WriteFile(path, fmt.Appendf(nil, "package p\n\nvar Changed%d = %d\n", f, i), 0o600); err != nil {
				return nil, err
			}
		}
		if err := pause(ctx, aSecond); err != nil {
			return nil, err
		}
		took, err := p.time(ctx, "git", "--no-optional-locks", "status", "--porcelain")
		if err != nil {
			return nil, err
		}
		status.took(took)
		begin = time.Now()
		end, err := tree.Look(ctx, scratch)
		if err != nil {
			return nil, err
		}
		changed, _, err := tree.Changes(ctx, start, end, scratch)
		if err != nil {
			return nil, err
		}
		after.took(time.Since(begin))
		if len(changed) != 10 {
			return nil, fmt.Errorf("%d files have changed instead of 10", len(changed))
		}
	}
	return []row{
		ratio("files changed by a session in a repository of 100,000 files (floor: `git status --porcelain`)", after, status, 1.5),
		ratio("… the snapshot before it", before, status, 1.5),
	}, nil
}
