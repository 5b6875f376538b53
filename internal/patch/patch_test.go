package patch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/diff"

	"ralph/internal/patch"
)

// TestParseHunk: git leaves a count of 1 out, on either side.
func TestParseHunk(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]patch.Hunk{
		"@@ -1 +1,2 @@":                    {1, 1, 1, 2},
		"@@ -5 +5,2 @@ func f(a, b int) {": {5, 1, 5, 2},
		"@@ -5,2 +5 @@":                    {5, 2, 5, 1},
		"@@ -1 +1 @@":                      {1, 1, 1, 1},
		"@@ -10,3 +12,4 @@ @@ -1 +1 @@":    {10, 3, 12, 4},
		"@@ -0,0 +1 @@":                    {0, 0, 1, 1},
		"@@ -7 +6,0 @@\n":                  {7, 1, 6, 0},
		"@@ -999999999,1 +1 @@":            {999999999, 1, 1, 1},
	} {
		if got, ok := patch.ParseHunk(line); !ok || got != want {
			t.Errorf("%q is %+v, %v, want %+v", line, got, ok, want)
		}
	}
	for _, line := range []string{
		"", "@@", "@@ -1 +1", "@@ -1,+1 @@", "@@ -a +1 @@", "@@@ -1 -1 +1 @@@", " @@ -1 +1 @@", "@@ -1, +1 @@",
		"@@ -99999999999999999999 +1 @@", "@@ --1 +1 @@",
	} {
		if got, ok := patch.ParseHunk(line); ok {
			t.Errorf("%q is %+v", line, got)
		}
	}
}

// TestLinesAreNumbered from the head of their hunk, also where a side has none.
func TestLinesAreNumbered(t *testing.T) {
	t.Parallel()
	for hunks, want := range map[string]string{
		"@@ -1 +1,2 @@\n sleep 0.3\n+# more\n":                "hunk . . context 1 1 add . 2",
		"@@ -5 +5,2 @@\n-a\n+b\n+c\n":                         "hunk . . del 5 . add . 5 add . 6",
		"@@ -5,2 +5 @@\n a\n-b\n":                             "hunk . . context 5 5 del 6 .",
		"@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n": "hunk . . del 1 .  . . add . 1",
		"@@ -5,0 +6,2 @@\n+a\n+b\n@@ -9 +11,0 @@\n-c\n":       "hunk . . add . 6 add . 7 hunk . . del 9 .",
		"@@ -3,2 +3,2 @@\n\n-a\n+b\n":                         "hunk . . context 3 3 del 4 . add . 4",
		"@@ nonsense\n+a\n":                                   " . . add . .",
	} {
		var got []string
		for _, l := range patch.Lines(hunks) {
			got = append(got, strings.ReplaceAll(fmt.Sprintf("%s %d %d", l.Kind, l.Old, l.New), " 0", " ."))
		}
		if said := strings.Join(got, " "); said != want {
			t.Errorf("%q:\n%s, want\n%s", hunks, said, want)
		}
	}
}

// TestSplit finds each file by its name, in all of git's notations, with its kind of change.
func TestSplit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ patch, path, status, mode string }{
		"text":        {"diff --git a/a b/a\nindex 1..2 100644\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n", "a", "modified", ""},
		"spaces":      {"diff --git a/a b/c b/a b/c\n--- a/a b/c\t\n+++ b/a b/c\t\n@@ -1 +1 @@\n", "a b/c", "modified", ""},
		"quoted":      {"diff --git \"a/x\\ty\" \"b/x\\ty\"\nnew file mode 100755\n--- /dev/null\n+++ \"b/x\\ty\"\n@@ -0,0 +1 @@\n+a\n", "x\ty", "added", "100755"},
		"octal":       {"diff --git \"a/\\303\\244\" \"b/\\303\\244\"\nold mode 100644\nnew mode 100755\n", "ä", "modified", "100755"},
		"deleted":     {"diff --git a/g b/g\ndeleted file mode 100644\n--- a/g\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", "g", "deleted", ""},
		"renamed":     {"diff --git a/o p b/n p\nsimilarity index 100%\nrename from o p\nrename to n p\n", "n p", "renamed", ""},
		"empty":       {"diff --git a/e b/e\nnew file mode 120000\nindex 0..1\n", "e", "added", "120000"},
		"like a name": {"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1,2 @@\n--- a/b\n+++ b/b\n+diff --git a/c b/c\n", "a", "modified", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := patch.Split("# a note\n" + c.patch)
			if len(files) != 1 || files[0].Path != c.path || files[0].Status != c.status || files[0].Mode != c.mode ||
				files[0].String() != "# a note\n"+c.patch {
				t.Errorf("%+v", files)
			}
		})
	}
}

// TestPrepare: a file with binary contents says so in words. One on which a person decides keeps all lines, another one
// the first, and how much is missing.
func TestPrepare(t *testing.T) {
	t.Parallel()
	head := "diff --git a/%[1]s b/%[1]s\nnew file mode 100755\n--- /dev/null\n+++ b/%[1]s\n"
	body := "@@ -0,0 +1,5 @@\n+# \x00\n+" + strings.Repeat(" ", 5000) + "curl evil\n+c\n+d\n+e\n"
	text := fmt.Sprintf(head, "hook") + body + fmt.Sprintf(head, "pic.png") + body + fmt.Sprintf(head, "plain") + "@@ -0,0 +1 @@\n+a\n"
	got := patch.Prepare(text, func(path string) bool { return path == "hook" })
	if !strings.HasPrefix(got, "# hook has binary contents: 1 NUL byte. All of it follows as text.\n"+fmt.Sprintf(head, "hook")+body) {
		t.Errorf("what a person decides on is %.300q", got)
	}
	files := patch.Split(got)
	if len(files) != 3 || files[2].String() != fmt.Sprintf(head, "plain")+"@@ -0,0 +1 @@\n+a\n" {
		t.Fatalf("%d files: %.300q", len(files), got)
	}
	cut := files[1]
	left := len(body) - len(cut.Body)
	if strings.Contains(cut.Body, "curl") || len(cut.Body) > 600 || left <= 0 ||
		cut.Notes != fmt.Sprintf("# pic.png has binary contents: 1 NUL byte. Its first lines follow as text; %d bytes more are not shown.\n", left) {
		t.Errorf("another file is %q", cut.String())
	}
}

// FuzzLines: the numbers of a difference's lines put both of its sides together again, and nothing panics.
func FuzzLines(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nc\nd")
	f.Add("", "x\n")
	f.Add("@@ -1 +1 @@\n-x\n", "+++ b/x\ndiff --git a/a b/a\n# note\n")
	f.Fuzz(func(t *testing.T, was, is string) {
		patch.Lines(was)
		patch.Prepare(was, func(string) bool { return is == "" })
		unified := string(diff.Diff("a/x", []byte(was), "b/x", []byte(is)))
		_, rest, _ := strings.Cut(unified, "\n")
		files := patch.Split("diff --git a/x b/x\n" + rest)
		if unified == "" {
			return
		}
		if len(files) != 1 || files[0].Path != "x" {
			t.Fatalf("%+v", files)
		}
		sides := [2][]string{strings.SplitAfter(was, "\n"), strings.SplitAfter(is, "\n")}
		for _, l := range patch.Lines(files[0].Body) {
			for i, n := range []int{l.Old, l.New} {
				if n == 0 {
					continue
				}
				if n > len(sides[i]) || strings.TrimSuffix(sides[i][n-1], "\n") != l.Text[1:] {
					t.Fatalf("line %d of side %d is %q in\n%s", n, i, l.Text, unified)
				}
			}
		}
	})
}

// TestALargeDifferenceIsReadOnce: reading takes memory in proportion to the difference, not to its square.
func TestALargeDifferenceIsReadOnce(t *testing.T) {
	text := "diff --git a/big b/big\n--- a/big\n+++ b/big\n@@ -0,0 +1,20000 @@\n" + strings.Repeat("+line\n", 20000)
	result := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			if got := patch.Split(text); len(got) != 1 || got[0].String() != text {
				b.Fatal("the difference is not what was read")
			}
		}
	})
	if most := int64(20 * len(text)); result.AllocedBytesPerOp() > most {
		t.Errorf("takes %d bytes for %d, want at most %d", result.AllocedBytesPerOp(), len(text), most)
	}
}
