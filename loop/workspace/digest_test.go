package workspace

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDigestsOfProtectedFiles: every change of a protected file, or of a file read in its place, changes its digest.
func TestDigestsOfProtectedFiles(t *testing.T) {
	t.Parallel()
	const base = "mkdir -p tests/sub lib cache; echo a > tests/a; echo b > tests/sub/b; echo c > lib/c; ln -s ../lib/c tests/link; " +
		"ln -s lib linked; ln -s lib/c solo; echo cache > .gitignore; echo d > cache/d; mkfifo tests/pipe"
	const ofC = "a3a5e715f0cc574a73c3f9bebb6bc24f32ffd5b67b387244c2c909da779a1478" // SHA-256 of lib/c
	for _, tt := range []struct {
		name, session string
		want          string // files whose digests change
	}{
		{"nothing", "touch tests/a; echo x > other", ""},
		{"content", "echo x > tests/a", "tests/a"},
		{"the executable bit", "chmod +x tests/a", "tests/a"},
		{"removed", "rm tests/a", "tests/a"},
		{"added", "echo x > tests/new", "tests/new"},
		{"a folder in its place", "rm tests/a; mkdir tests/a; echo x > tests/a/x", "tests/a tests/a/x"},
		{"a file in place of the folder", "rm -r tests; echo x > tests", "tests tests/a tests/link tests/pipe tests/sub/b"},
		{"a link in its place, to the same", "cp tests/a lib/a; ln -sf ../lib/a tests/a", "linked/a tests/a"},
		{"what it leads to", "echo x > lib/c", "linked/c solo tests/link"},
		{"where it leads to", "cp lib/c lib/e; ln -sf ../lib/e tests/link", "linked/e tests/link"},
		{"where a folder leads to", "cp -r lib copy; echo x >> copy/c; ln -sfn copy linked", "linked/c"},
		{"a link that leads nowhere, by a name like the digest of the other one", "ln -sf '../lib/cfalse " + ofC + "' tests/link", "tests/link"},
		{"a link that leads nowhere any more", "rm lib/c", "linked/c solo tests/link"},
		{"a link that leads to a folder", "rm lib/c; mkdir lib/c", "linked/c solo tests/link"},
		{"in a folder that git ignores", "echo x > cache/d", "cache/d"},
		{"what is left out", "echo x > tests/left; mkdir tests/out; echo x > tests/out/a", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			sh := func(script string) {
				cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
				cmd.Dir = dir
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			digests := func() map[string]string {
				d, unseen := Digests(dir, []string{"tests/**", "cache/d", "linked/*", "solo", "never/**"}, "tests/left", "tests/out")
				if len(unseen) > 0 {
					t.Errorf("unseen: %v", unseen)
				}
				return d
			}
			sh(base)
			before := digests()
			sh(tt.session)
			after := digests()
			all := maps.Clone(before)
			maps.Copy(all, after)
			var changed []string
			for _, f := range slices.Sorted(maps.Keys(all)) {
				if before[f] != after[f] {
					changed = append(changed, f)
				}
			}
			if got := strings.Join(changed, " "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAProtectedFileIsItsContentAndWhetherItRuns(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("tests/check.sh", "exit 1")
	put("tests/deep/a.golden", "a")
	put("tests/.git/config", "x")
	put("other.sh", "x")
	digests := func() map[string]string {
		t.Helper()
		d, unseen := Digests(dir, []string{"tests/**", "tests/*.sh", "nowhere/**"})
		if len(unseen) != 0 {
			t.Fatal(unseen)
		}
		return d
	}
	if d, unseen := Digests(dir, []string{"tests/*.sh", "other.sh/below/*", strings.Repeat("x", 300) + "/*"}); len(d) != 1 || len(unseen) != 0 {
		t.Errorf("got %q, and %q could not be seen", d, unseen)
	}
	before := digests()
	if len(before) != 2 || before["tests/check.sh"] == "" || before["tests/deep/a.golden"] == "" {
		t.Fatalf("got %q", before)
	}
	for _, tt := range []struct {
		name   string
		change func() error
		now    bool // the file differs from the one at the start
	}{
		{"it may be executed", func() error { return os.Chmod(filepath.Join(dir, "tests/check.sh"), 0o700) }, true},
		{"by others alone, too", func() error { return os.Chmod(filepath.Join(dir, "tests/check.sh"), 0o601) }, true},
		{"it may be read by others", func() error { return os.Chmod(filepath.Join(dir, "tests/check.sh"), 0o644) }, false},
		{"its content is another", func() error { put("tests/check.sh", "exit 0"); return nil }, true},
		{"as it was", func() error { put("tests/check.sh", "exit 1"); return nil }, false},
		{"it is gone", func() error { return os.Remove(filepath.Join(dir, "tests/check.sh")) }, true},
		{"a link is there instead", func() error { return os.Symlink("../other.sh", filepath.Join(dir, "tests/check.sh")) }, true},
	} {
		if err := tt.change(); err != nil {
			t.Fatal(err)
		}
		if got := digests()["tests/check.sh"] != before["tests/check.sh"]; got != tt.now {
			t.Errorf("%s: another file: %t", tt.name, got)
		}
	}
	linked := digests()["tests/check.sh"]
	put("other.sh", "changed")
	if digests()["tests/check.sh"] == linked {
		t.Error("a link is the same although what it leads to was changed")
	}
}

func TestAProtectedFileThatCannotBeRead(t *testing.T) {
	d, unseen := Digests(t.TempDir(), []string{"x\x00/*"})
	if diff := cmp.Diff(map[string]string{"x\x00": "invalid argument"}, unseen); diff != "" || len(d) != 0 {
		t.Errorf("got %q: %s", d, diff)
	}
	if runtime.GOOS != "linux" {
		return // the superuser can read every file
	}
	d, unseen = Digests(fmt.Sprintf("/proc/%d", os.Getpid()), []string{"mem"})
	if diff := cmp.Diff(map[string]string{"mem": "input/output error"}, unseen); diff != "" || len(d) != 0 {
		t.Errorf("got %q: %s", d, diff)
	}
}

func TestFilesOfStagnation(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	digest := func(names ...string) string { return (&Workspace{Dir: dir, Watched: names}).Files() }
	none := digest("a", "b")
	put("a", "1")
	one := digest("a", "b")
	put("b", "2")
	both := digest("a", "b")
	put("a", "2")
	put("b", "1")
	if swapped := digest("a", "b"); none == one || one == both || swapped == both || digest("a") == none || digest("nothing", "a", "b") != swapped {
		t.Errorf("got %s, %s, %s, %s", none, one, both, swapped)
	}
	put("c", "")
	if digest("c") == none {
		t.Error("an empty file is none")
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if digest("folder") == none || digest("folder", "a") == digest("a") {
		t.Error("what cannot be read counts as what is not there")
	}
}

func TestTheDigestOfOneFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, file string
		is, fails  bool
	}{
		{"it is there", "file", true, false},
		{"it is not", "nothing", false, false},
		{"its folder is a file", "file/below", false, false},
		{"no file can have the name", "x\x00", false, true},
	} {
		if got, err := Digest(filepath.Join(dir, tt.file)); (got != "") != tt.is || (err != nil) != tt.fails {
			t.Errorf("%s: got %q, %v", tt.name, got, err)
		}
	}
}

// TestMatchesInAnyCase: another file system takes one name for the other.
func TestMatchesInAnyCase(t *testing.T) {
	t.Parallel()
	patterns := []string{"CLAUDE.md", "**/AGENTS.md", "**/.claude/**"}
	for name, want := range map[string]bool{
		".Claude/settings.json": true, "Claude.md": true, "sub/AGENTS.MD": true, "CLAUDE.md": true, "claude.txt": false, "xclaude.md": false,
	} {
		if MatchesFolded(patterns, name) != want {
			t.Errorf("%s: got %t", name, !want)
		}
	}
}
