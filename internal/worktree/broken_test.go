package worktree_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ralph/internal/worktree"
)

// TestABrokenRepositoryIsNamed: an object that is gone or damaged is found, and nothing else.
func TestABrokenRepositoryIsNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, object string
		hurt         func(path string) error
		want         string
	}{
		{"whole", "HEAD", func(string) error { return nil }, ""},
		{"a file is gone", "HEAD:a", os.Remove, "HEAD:a"},
		{"the folder is gone", "HEAD:", os.Remove, "HEAD:"},
		{"the commit is gone", "HEAD", os.Remove, "HEAD"},
		{"the folder is damaged", "HEAD:", func(path string) error {
			return os.WriteFile(path, []byte("x"), 0o600)
		}, "HEAD:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			git := func(args ...string) string {
				cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
				cmd.Dir = dir
				out, err := cmd.Output()
				if err != nil {
					t.Fatal(args, err)
				}
				return strings.TrimSpace(string(out))
			}
			git("init", "-q")
			if err := os.WriteFile(filepath.Join(dir, "a"), []byte("a"), 0o600); err != nil {
				t.Fatal(err)
			}
			git("add", "a")
			git("commit", "-qm", "a")
			id := git("rev-parse", c.object)
			tree, err := worktree.Open(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, ".git", "objects", id[:2], id[2:])
			if err := os.Chmod(path, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := c.hurt(path); err != nil {
				t.Fatal(err)
			}
			got := tree.Broken(t.Context(), time.Minute)
			if (got == "") != (c.want == "") || c.want != "" && !strings.Contains(got, id) {
				t.Errorf("%q, want %q", got, id)
			}
		})
	}
}
