package worktree_test

import (
	"maps"
	"slices"
	"testing"
)

// TestUnmergedRefs: of any number of branches one git finds those with commits of their own, the newest first.
func TestUnmergedRefs(t *testing.T) {
	tree, dir, first, next := repository(t)
	sh(t, dir, `for n in 1 2 3; do git branch same-$n main; export GIT_COMMITTER_DATE="2026-01-0$n 00:00 +0000"
		git update-ref refs/heads/own-$n $(git commit-tree -p main -m $n main^{tree}); done; git tag own-tag own-1`)
	for most, want := range map[int][]string{
		10: {"refs/heads/next", "refs/heads/own-1", "refs/heads/own-2", "refs/heads/own-3"},
		2:  {"refs/heads/next", "refs/heads/own-3"},
	} {
		refs, err := tree.Unmerged(t.Context(), first, most, "refs/heads/", "refs/stash")
		if got := slices.Sorted(maps.Keys(refs)); err != nil || !slices.Equal(got, want) || refs["refs/heads/next"] != next {
			t.Errorf("%d: %q, %v, want %q", most, got, err, want)
		}
	}
}
