package web_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"ralph"
	"ralph/internal/web"
)

// TestFilesOf splits what git prints into files, with their lines or why there are none.
func TestFilesOf(t *testing.T) {
	t.Parallel()
	patch := "diff --git a/a b/a\nindex 1..2 100644\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+diff --git a/no b/no\n" +
		"diff --git a/old name b/new name\nsimilarity index 100%\nrename from old name\nrename to new name\n" +
		"diff --git a/p.png b/p.png\nBinary files a/p.png and b/p.png differ\n" +
		"diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n" +
		"diff --git a/long b/long\n--- a/long\n+++ b/long\n@@ -0,0 +1 @@\n" + strings.Repeat("+"+strings.Repeat("y", 1000)+"\n", 3000)
	files := web.FilesOf(patch)
	want := []ralph.FileDiff{
		{Path: "a", Diff: "@@ -1 +1 @@\n-x\n+diff --git a/no b/no\n"},
		{Path: "new name"},
		{Path: "p.png", Left: "it is no text"},
		{Path: "gone", Diff: "@@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n"},
	}
	if len(files) != 5 {
		t.Fatalf("%d files", len(files))
	}
	for i, w := range want {
		if files[i] != w {
			t.Errorf("%d: %+v", i, files[i])
		}
	}
	if last := files[4]; !strings.Contains(last.Left, "longer") || len(last.Diff) > 2<<20 {
		t.Errorf("a long one has %d bytes: %q", len(last.Diff), last.Left)
	}
}

// TestATaskShowsOneDifference over all of its sessions: that of the commit that merged it, which git is asked for once.
func TestATaskShowsOneDifference(t *testing.T) {
	t.Parallel()
	s, n := newNight(t)
	asked := 0
	s.server.Patch = func(_ context.Context, from, to string) (string, error) {
		asked++
		if from != to+"^1" {
			t.Errorf("%s is compared with %s", to, from)
		}
		return "diff --git a/b.go b/b.go\n@@ -1 +1 @@\n-old <b>\n+new <b>\n", nil
	}
	b := s.browser()
	path := "/tasks/17"
	for range 2 {
		has(t, b.get(path), "new &lt;b&gt;", "What proves it", "red before, green now", "as it was merged")
	}
	if asked != 1 {
		t.Errorf("git is asked %d times", asked)
	}
	s.server.Patch = func(context.Context, string, string) (string, error) { return "", errors.New("no such commit") }
	delete(n.Files, n.Ended[17]+"/diffs")
	has(t, s.browser().get(path), "git cannot compare its commits")
}
