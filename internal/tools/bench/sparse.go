package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"ralph/internal/worktree"
	"ralph/loop/workspace"
)

// sparse returns the gain of workspace.sparse: a new workspace with 2 % of the folders of a large repository, and one
// with all.
func (b *bench) sparse(ctx context.Context) []row {
	files := b.size(manyFiles)
	p := b.newProject(ctx, files)
	var folders []string
	for i := range max(files/100/50, 1) {
		folders = append(folders, fmt.Sprintf("src/%04d", i))
	}
	var whole, part samples
	number := 0
	ready := func(folders []string) time.Duration {
		tree := must(worktree.Open(ctx, p.dir))
		tree.Sparse = folders
		pool := &workspace.Pool{
			Here: &workspace.Workspace{Dir: p.dir, Tree: tree, State: p.state()},
			Dir:  filepath.Join(p.state(), "workspaces"), Name: "bench",
			Timeout: time.Minute, Log: slog.New(slog.DiscardHandler),
		}
		number++
		tip := must(tree.Ref(ctx, "HEAD"))
		begin := time.Now()
		w := must(pool.Take(ctx, number, false))
		must(w.Begin(ctx, tip, ""))
		took := time.Since(begin)
		check(w.Release())
		return took
	}
	p.time(ctx, p.ralph, "status") // makes the state folder
	for range b.rounds {
		whole.took(ready(nil))
		part.took(ready(folders))
	}
	return []row{ratio(fmt.Sprintf("a new workspace with 2 %% of %d files, against all", files), part, whole, 0.1)}
}
