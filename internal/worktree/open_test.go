package worktree_test

import (
	"testing"

	"ralph/internal/worktree"
)

// open opens a work tree.
func open(t testing.TB, dir string) *worktree.Tree {
	t.Helper()
	tree, err := worktree.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}
