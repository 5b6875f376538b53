package loop_test

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"ralph/loop"
)

// TestDigestsOfProtectedFiles: whatever a session does to one, or to what is read in
// its place, changes its digest.
func TestDigestsOfProtectedFiles(t *testing.T) {
	t.Parallel()
	const base = "mkdir -p tests/sub lib cache; echo a > tests/a; echo b > tests/sub/b; echo c > lib/c; ln -s ../lib/c tests/link; " +
		"ln -s lib linked; ln -s lib/c solo; echo cache > .gitignore; echo d > cache/d; mkfifo tests/pipe"
	for _, tt := range []struct {
		name, session string
		want          string // files of which the digest is another one
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
		{"a link that leads nowhere any more", "rm lib/c", "linked/c solo tests/link"},
		{"a link that leads to a folder", "rm lib/c; mkdir lib/c", "linked/c solo tests/link"},
		{"in a folder that git ignores", "echo x > cache/d", "cache/d"},
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
				d, unseen := loop.DigestProtected(dir, []string{"tests/**", "cache/d", "linked/*", "solo", "never/**"})
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
