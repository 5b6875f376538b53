package web_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ralph"
	"ralph/internal/web"
)

// TestFilesOf splits git's output into files, with their lines or the reason why there are none.
func TestFilesOf(t *testing.T) {
	t.Parallel()
	patch := "diff --git a/a b/a\nindex 1..2 100644\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+diff --git a/no b/no\n" +
		"diff --git a/old name b/new name\nsimilarity index 100%\nrename from old name\nrename to new name\n" +
		"diff --git a/p.png b/p.png\nBinary files a/p.png and b/p.png differ\n" +
		"diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n" +
		"diff --git a/long b/long\n--- a/long\n+++ b/long\n@@ -0,0 +1 @@\n" + strings.Repeat("+"+strings.Repeat("y", 1000)+"\n", 3000)
	files := web.FilesOf(patch, func(string) bool { return false })
	want := []web.Changed{
		{FileChange: ralph.FileChange{Path: "a", Added: 1, Removed: 1, Status: "modified"}},
		{FileChange: ralph.FileChange{Path: "new name", Status: "renamed"}},
		{FileChange: ralph.FileChange{Path: "p.png", Status: "modified"}, Left: "it is not text"},
		{FileChange: ralph.FileChange{Path: "gone", Removed: 1, Status: "deleted"}},
	}
	if len(files) != 5 {
		t.Fatalf("%d files", len(files))
	}
	for i, w := range want {
		if files[i].FileChange != w.FileChange || files[i].Left != w.Left {
			t.Errorf("%d: %+v", i, files[i])
		}
	}
	if lines := files[0].Lines; len(lines) != 3 || lines[2].Text != "+diff --git a/no b/no" {
		t.Errorf("the lines are %+v", lines)
	}
	last := files[4]
	said := fmt.Sprintf("%d more lines are not shown here: `ralph diff` has them.", 3001-len(last.Lines))
	if len(last.Lines) > 2100 || last.Added != 3000 || !slices.Contains(last.Notes, strings.Replace(said, "more lines", "lines more", 1)) {
		t.Errorf("a long one has %d lines, of %d: %q", len(last.Lines), last.Added, last.Notes)
	}
	whole := web.FilesOf(patch, func(path string) bool { return path == "long" })[4]
	if len(whole.Lines) != 3001 || len(whole.Notes) > 0 || !whole.Guarded {
		t.Errorf("of a long one on which a person decides there are %d lines: %q", len(whole.Lines), whole.Notes)
	}
}

// TestShownFilesMatchTheirCounts: without git, a task's files are counted line by line.
func TestShownFilesMatchTheirCounts(t *testing.T) {
	t.Parallel()
	s, n := newNight(t)
	page := s.browser().get(fmt.Sprint("/tasks/", n.Merged[0]))
	has(t, page, `<span class="badge blue">modified</span>`, `<span class="badge green">added</span>`,
		`<span class="plus">+3</span> <span class="minus">−1</span>`, `<span class="plus">+3</span> <span class="minus">−0</span>`,
		`Change <span class="plus">+6</span> <span class="minus">−1</span>`)
}

// TestATaskShowsOneDifference over all of its sessions: that of the commit that merged it.
func TestATaskShowsOneDifference(t *testing.T) {
	t.Parallel()
	s, n := newNight(t)
	s.server.Patch = func(_ context.Context, _, from, to string) (string, error) {
		if from != to+"^1" {
			t.Errorf("%s is compared with %s", to, from)
		}
		return "diff --git a/b.go b/b.go\n@@ -1 +1 @@\n-old <b>\n+new <b>\n", nil
	}
	path := "/tasks/17"
	has(t, s.browser().get(path), "new &lt;b&gt;", "red before, green now")
	s.server.Patch = func(context.Context, string, string, string) (string, error) { return "", errors.New("no such commit") }
	delete(n.Files, n.Ended[17]+"/diffs")
	has(t, s.browser().get(path), "git cannot compare its commits")
}
