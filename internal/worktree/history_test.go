package worktree_test

import (
	"strings"
	"testing"

	"ralph/internal/worktree"
)

func TestAncestor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sh(t, dir, `git init -q -b main; git config user.name Ann; git config user.email ann@example.com
		git commit -q --allow-empty -m first
		git checkout -q -b side; git commit -q --allow-empty -m side
		git checkout -q main; git commit -q --allow-empty -m main; git merge -q --no-edit side
		at=$(git rev-parse HEAD) tree=$(git rev-parse HEAD^{tree})
		for i in $(seq 60); do at=$(git commit-tree -m $i -p $at $tree); done; git branch far $at
		git checkout -q --orphan other; git commit -q --allow-empty -m other`)
	id := func(name string) string { return strings.TrimSpace(sh(t, dir, "git rev-parse "+name)) }
	for _, native := range []bool{false, true} {
		tree := open(t, dir)
		if native {
			worktree.OnlyNative(tree)
		}
		for _, tt := range []struct {
			commit, of string
			want       bool
		}{
			{"main", "main", true},
			{"main~2", "main", true},
			{"side", "main", true},
			{"main", "side", false},
			{"main", "main~2", false},
			{"far~1", "far", true},
			{"side", "far", true}, // more than 50 commits away
			{"far", "side", false},
			{"other", "far", false},
			{"far", "other", false},
		} {
			is, err := tree.Ancestor(t.Context(), id(tt.commit), id(tt.of))
			if err != nil || is != tt.want {
				t.Errorf("%s is an ancestor of %s: %v, %v; want %v (git alone: %v)", tt.commit, tt.of, is, err, tt.want, native)
			}
		}
		if _, err := tree.Ancestor(t.Context(), strings.Repeat("1", 40), id("main")); err == nil {
			t.Errorf("no error for a commit that does not exist (git alone: %v)", native)
		}
	}
}

func TestMergingAMissingCommitIsAnError(t *testing.T) {
	tree, dir, first, _ := repository(t)
	sh(t, dir, "git init -q --bare ../other.git") // a commit that comes later
	missing := strings.TrimSpace(sh(t, dir, `git -C ../other.git -c user.name=a -c user.email=a@b commit-tree -m x \
		"$(git -C ../other.git mktree </dev/null)"`))
	for range 2 { // the second time it would be known
		if m, err := tree.MergeTree(t.Context(), first, missing); err == nil {
			t.Errorf("%+v", m)
		}
	}
}

// TestARepositoryThatIsGoneIsAnError: an unreadable repository does not prove that a ref is missing.
func TestARepositoryThatIsGoneIsAnError(t *testing.T) {
	tree, dir, first, _ := repository(t)
	if at, err := tree.Ref(t.Context(), "refs/heads/main"); at != first || err != nil {
		t.Fatalf("got %q, %v", at, err)
	}
	if at, err := tree.Ref(t.Context(), "refs/heads/none"); at != "" || err != nil {
		t.Errorf("of a ref that is not there: %q, %v", at, err)
	}
	sh(t, dir, "mv .git ../gone")
	for range 2 { // with the git that has answered, and with a new one
		if at, err := tree.Ref(t.Context(), "refs/heads/main"); err == nil {
			t.Errorf("got %q", at)
		}
	}
}
