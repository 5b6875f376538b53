package worktree_test

import (
	"fmt"
	"strings"
	"testing"

	"ralph"
	"ralph/internal/worktree"
)

func none(text string) (string, error) { return text, nil }

// TestNoSecretIsSavedInDifferences: not over several lines, in a commit's subject, or by another name of its file.
func TestNoSecretIsSavedInDifferences(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sh(t, dir, "git init -q -b main; echo PASSWORD=of-dotenv > .env; printf 'key\nfirst secret\nsecond secret\nend\n' > same; git add .; git commit -qm base")
	tree, err := worktree.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	before := record(t, tree, "before")
	sh(t, dir, `git mv .env plain; cp same new; git add .; git commit -qm 'Add first secret'; printf 'key
first secret
other
end
' > same`)
	commits, err := tree.Commits(t.Context(), "HEAD", before)
	after := record(t, tree, "after")
	files := changes(t, tree, before, after)
	if err != nil {
		t.Fatal(err)
	}
	mask := strings.NewReplacer("first secret\nsecond secret\n", "[KEY]\n", "first secret", "[KEY]", "other", "[KEY]")
	d, err := tree.Diffs(t.Context(), before, after, files, commits,
		func(text string) (string, error) { return mask.Replace(text), nil })
	if err != nil {
		t.Fatal(err)
	}
	said := fmt.Sprintf("%q", d)
	if strings.Contains(said, "second") || strings.Contains(said, "of-dotenv") || strings.Contains(said, "first") ||
		len(d.Files) != 3 || strings.Count(said, "[KEY]") < 3 {
		t.Error(said)
	}
}

// TestDifferencesAreSavedLineByLine: also uncommitted lines, and the reason for lines left out.
func TestDifferencesAreSavedLineByLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sh(t, dir, "git init -q -b main; printf 'a\\nb\\nc\\n' > a; echo old > gone; git add .; git commit -qm base")
	tree, err := worktree.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	before := record(t, tree, "before")
	sh(t, dir, `printf 'a\nB\nc\n' > a; git commit -qam 'Write B large'; rm gone; printf 'x\ny' > new; echo TOKEN=1 > .env
		printf '\0' > binary; chmod +x a; yes long | head -60000 > long; for i in 1 2 3 4 5 6 7 8 9 10 11; do yes l | head -c 250000 > part$i; done`)
	commits, err := tree.Commits(t.Context(), "HEAD", before)
	after := record(t, tree, "after")
	files := changes(t, tree, before, after)
	if err != nil {
		t.Fatal(err)
	}
	d, err := tree.Diffs(t.Context(), before, after, append(files, ralph.FileChange{Path: "within/x"}), commits, none)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Commits) != 1 || d.Commits[0].Subject != "Write B large" || d.Commits[0].ID != commits[0].ID {
		t.Errorf("the commits are %+v", d.Commits)
	}
	got, size := map[string]ralph.FileDiff{}, 0
	for _, f := range d.Files {
		got[f.Path] = f
		size += len(f.Diff)
		if (f.Diff == "") == (f.Left == "") {
			t.Errorf("%s: %d bytes, and %q", f.Path, len(f.Diff), f.Left)
		}
	}
	for path, want := range map[string]string{
		"a":      "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n",
		"gone":   "@@ -1,1 +0,0 @@\n-old\n",
		"binary": "# binary has binary contents: 1 NUL byte. Its first lines follow as text.\n@@ -0,0 +1 @@\n+\x00\n\\ No newline at end of file\n",
		"new":    "@@ -0,0 +1,2 @@\n+x\n+y\n\\ No newline at end of file\n",
	} {
		if got[path].Diff != want {
			t.Errorf("%s:\n%q, want\n%q", path, got[path].Diff, want)
		}
	}
	for path, why := range map[string]string{
		".env": "secrets", "long": "too many", "within/x": "a repository of its own",
	} {
		if f := got[path]; !strings.Contains(f.Left, why) {
			t.Errorf("%s: %q is left out because %q, want %q", path, f.Diff, f.Left, why)
		}
	}
	if size > 2<<20 {
		t.Errorf("%d bytes are kept", size)
	}
}
