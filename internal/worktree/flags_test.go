package worktree_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ralph"
)

// TestNoMarkHidesAChange: git can be told to ignore changes of a file.
func TestNoMarkHidesAChange(t *testing.T) {
	for _, version := range []string{"2", "4", "sha256", "split"} {
		for name, lie := range map[string]string{
			"assume unchanged": "git update-index --assume-unchanged src/lib/b src/lib/bb",
			"skip the file":    "git update-index --skip-worktree src/lib/b src/lib/bb",
			"both, and intent": "echo n > n; git add -N n; git update-index --skip-worktree --assume-unchanged src/lib/b src/lib/bb; git rm -q --cached n; rm n",
		} {
			t.Run(version+": "+name, func(t *testing.T) {
				dir := t.TempDir()
				format := map[string]string{"2": "git config index.version 2", "4": "git config index.version 4", "sha256": "true", "split": "git config core.splitIndex true"}[version]
				init := "git init -q"
				if version == "sha256" {
					init += " --object-format=sha256"
				}
				sh(t, dir, init+"; "+format+"; mkdir -p src/lib; for f in a src/lib/b src/lib/bb src/lib/c z; do printf old > $f; touch -d 2020-01-01T00:00:00Z $f; done; git add .; git commit -qm base")
				tree, scratch := open(t, dir), t.TempDir()
				before := look(t, tree, scratch)
				sh(t, dir, lie+"; for f in src/lib/b src/lib/bb; do printf newer > $f; touch -d 2020-01-01T00:00:00Z $f; done")
				index, err := os.ReadFile(filepath.Join(dir, ".git", "index"))
				if err != nil {
					t.Fatal(err)
				}
				after := look(t, tree, scratch)
				files, _, err := tree.Changes(t.Context(), before, after, scratch)
				want := []ralph.FileChange{{Path: "src/lib/b", Added: 1, Removed: 1, Status: "modified"}, {Path: "src/lib/bb", Added: 1, Removed: 1, Status: "modified"}}
				if diff := cmp.Diff(want, files); err != nil || diff != "" {
					t.Errorf("%v %s", err, diff)
				}
				if now, err := os.ReadFile(filepath.Join(dir, ".git", "index")); err != nil || string(now) != string(index) {
					t.Errorf("the index was touched (%v)", err)
				}
			})
		}
	}
}

// TestASparseCheckoutIsNoDeletion: a file outside of a sparse checkout is not deleted.
func TestASparseCheckoutIsNoDeletion(t *testing.T) {
	dir := t.TempDir()
	sh(t, dir, "git init -q; mkdir in out; echo a > in/a; echo b > out/b; git add .; git commit -qm base; git sparse-checkout set in")
	tree, scratch := open(t, dir), t.TempDir()
	if got, err := tree.Uncommitted(t.Context(), look(t, tree, scratch), scratch); err != nil || len(got) != 0 {
		t.Errorf("got %q, %v", got, err)
	}
}
