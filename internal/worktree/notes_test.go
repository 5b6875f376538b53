package worktree_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ralph/internal/worktree"
)

// TestCommitNotes: an author, a date or words of others in a session's commits are named, and nothing else.
func TestCommitNotes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sh(t, dir, "git init -q -b main; git config user.name a; git config user.email a@example.com; git commit -q --allow-empty -m base")
	tree, err := worktree.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for _, tt := range []struct{ message, more, want string }{
		{"Add a function", "", ""},
		{"Fix 3 of 4 tests\n\nsee #12", "", ""},
		{"Add a\n\nCo-Authored-By: Claude <noreply@anthropic.com>", "", ""},
		{"Add a\n\nCo-authored-by: Copilot <1+Copilot@users.noreply.github.com>", "", ""},
		{"Add a\n\nCo-authored-by: Ada <ada@x>", "", "words Co-authored-by: Ada <ada@x>"},
		{"Add a\n\nSigned-off-by: Ada <ada@x>\nTask: 7", "", "words Signed-off-by: Ada <ada@x>, Task: 7"},
		{"Add a\n\nTask: TASK-7\nSession: s", "", ""},
		{"Add a [skip ci]", "", "words [skip ci]"},
		{"Add a [ci skip] ***NO_CI***", "", "words [ci skip], ***NO_CI***"},
		{"Add a\n\nskip-checks: true", "", "words skip-checks: true"},
		{"Add a\n\nCloses #1, fixed o/r#2, resolves https://x/o/r/issues/3", "", "words Closes #1, fixed o/r#2, resolves https://x/o/r/issues/3"},
		{"Add a", "--author='Ada <ada@x>'", "author Ada <ada@x>"},
		{"Add a", "--date=2001-02-03T00:00:00Z", "date 2001-02-03"},
		{"Add a", "--date=2090-02-03T00:00:00Z", "date 2090-02-03"},
		{"Add a", "-c committer", "author Bob <bob@x>"},
	} {
		env, more := "", tt.more
		if more == "-c committer" {
			env, more = "GIT_COMMITTER_NAME=Bob GIT_COMMITTER_EMAIL=bob@x ", ""
		}
		sh(t, dir, fmt.Sprintf("%sgit commit -q --allow-empty %s -m '%s'", env, more, tt.message))
		list, err := tree.CommitNotes(t.Context(), "HEAD", "HEAD^", now, "Task: TASK-7\nSession: s")
		if err != nil {
			t.Fatal(err)
		}
		var got string
		for _, n := range list {
			if n.Author != "" {
				got += "author " + n.Author
			}
			if !n.Date.IsZero() {
				got += "date " + n.Date.Format(time.DateOnly)
			}
			if len(n.Words) > 0 {
				got += "words " + strings.Join(n.Words, ", ")
			}
		}
		if got != tt.want {
			t.Errorf("%q %s: %q, not %q", tt.message, tt.more, got, tt.want)
		}
	}
	if list, err := tree.CommitNotes(t.Context(), "HEAD", "HEAD~15", now, ""); err != nil || len(list) != 11 {
		t.Error(list, err)
	}
}
