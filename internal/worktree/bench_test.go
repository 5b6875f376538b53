package worktree_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"ralph/internal/worktree"
)

// BenchmarkGit compares native git with go-git, at 1,000 and 100,000 files. It produced the figures
// in docs/decisions/git.md:
//
//	go test ./internal/worktree -run '^$' -bench Git -benchtime 5x
func BenchmarkGit(b *testing.B) {
	for _, folders := range []int{10, 1000} {
		dir := b.TempDir()
		for d := range folders {
			folder := filepath.Join(dir, fmt.Sprintf("d%03d", d))
			if err := os.Mkdir(folder, 0o700); err != nil {
				b.Fatal(err)
			}
			for f := range 100 {
				if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("f%d.txt", f)), fmt.Appendf(nil, "%d\n%d\n", d, f), 0o600); err != nil {
					b.Fatal(err)
				}
			}
		}
		sh(b, dir, `git init -q -b main; git config gc.auto 0; git add -A; git commit -qm base; git repack -qad
			for i in 1 2 3 4 5 6 7 8 9 10; do echo $i >> d001/f$i.txt; git commit -qam $i; done; sleep 1.1; git status > /dev/null`)
		tree, scratch := open(b, dir), b.TempDir()
		begun, err := tree.Snapshot(b.Context(), scratch)
		if err != nil {
			b.Fatal(err)
		}
		sh(b, dir, "for i in 1 2 3 4 5 6 7 8 9 10; do echo x >> d00$((i % 10))/f$i.txt; done; git commit -qam x; sleep 1.1; git status > /dev/null")
		now, err := tree.Snapshot(b.Context(), scratch)
		if err != nil {
			b.Fatal(err)
		}
		for _, op := range []struct {
			name string
			do   func(context.Context, *worktree.Tree) error
		}{
			{"snapshot", func(ctx context.Context, t *worktree.Tree) error { _, err := t.Snapshot(ctx, scratch); return err }},
			{"files and lines", func(ctx context.Context, t *worktree.Tree) error {
				_, _, err := t.Changes(ctx, begun, now, scratch)
				return err
			}},
			{"standing", func(ctx context.Context, t *worktree.Tree) error {
				_, err := t.Standing(ctx, begun, now, scratch, nil)
				return err
			}},
			{"status", func(ctx context.Context, t *worktree.Tree) error { _, _, err := t.Loose(ctx); return err }},
		} {
			for _, way := range []struct {
				name string
				set  func(*worktree.Tree)
			}{{"both", func(*worktree.Tree) {}}, {"native", worktree.OnlyNative}, {"go-git", worktree.WithoutNative}} {
				b.Run(fmt.Sprintf("%d/%s/%s", folders*100, op.name, way.name), func(b *testing.B) {
					t := open(b, dir)
					way.set(t)
					for b.Loop() {
						if err := op.do(b.Context(), t); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}
