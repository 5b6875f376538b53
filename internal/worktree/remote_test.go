package worktree_test

import (
	"strings"
	"sync"
	"testing"

	"ralph/internal/worktree"
)

// TestFetchesAtTheSameTime: git refuses one of two processes that fetch the same branch, and that is no fault of the
// remote.
func TestFetchesAtTheSameTime(t *testing.T) {
	top := t.TempDir()
	sh(t, top, "git init -q -b main far && cd far && git commit -q --allow-empty -m base && cd .. && git clone -q far here")
	tree, err := worktree.Open(t.Context(), top+"/here")
	if err != nil {
		t.Fatal(err)
	}
	remote, err := tree.Remote(t.Context(), "origin", t.TempDir()+"/remote.git", nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		want := strings.TrimSpace(sh(t, top+"/far", "git commit -q --allow-empty -m more && git rev-parse HEAD"))
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if got, err := remote.Fetch(t.Context(), "main"); err != nil || got != want {
					t.Errorf("fetched %q, %v, want %s", got, err, want)
				}
			})
		}
		all.Wait()
	}
}
