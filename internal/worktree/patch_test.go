package worktree_test

import (
	"strings"
	"testing"

	"ralph/internal/worktree"
)

// hides are ways to have git show no lines of a file, or other ones.
var hides = map[string]string{
	"nothing":           ":",
	"-diff":             "echo '*.sh -diff' > .gitattributes",
	"binary":            "echo '*.sh binary' > .gitattributes",
	"a macro":           "printf '[attr]quiet -diff -text\\n*.sh quiet\\n' > .gitattributes",
	"a driver":          "printf '*.sh diff=no\\n' > .gitattributes; git config diff.no.binary true; git config diff.no.textconv 'echo x #'; git config diff.no.command true",
	"below":             "mkdir -p sub/hooks; echo '*.sh -diff' > sub/hooks/.gitattributes",
	"of the repository": "mkdir -p .git/info; echo '*.sh -diff' > .git/info/attributes",
	"of the person":     "echo '*.sh -diff' > .git/mine; git config core.attributesFile $PWD/.git/mine",
	"settings":          "git config diff.external true; git config diff.noprefix true; git config diff.context 0; git config diff.relative true; git config core.bigFileThreshold 10; git config diff.suppressBlankEmpty true",
	"an order":          "printf 'z*\\n' > .git/order; git config diff.orderFile .git/order",
}

// TestNothingHidesALine: all differences of a file are shown, with NUL bytes and at any size, whatever the project, the
// repository and the person configure for it.
func TestNothingHidesALine(t *testing.T) {
	t.Parallel()
	for name, hide := range hides {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			sh(t, dir, "git init -q -b main; mkdir -p sub/hooks; printf 'one\\n\\ntwo\\n' > sub/hooks/a.sh; git add -A; git commit -qm base; git tag was")
			sh(t, dir, hide+`; printf 'one\n\nevil\n' > sub/hooks/a.sh; printf '#!/bin/sh\n# \0\nevil nul\n' > sub/hooks/nul.sh
				(printf 'x\n'; head -c 1100000 /dev/zero | tr '\0' ' '; printf 'evil large\n'; head -c 1000000 /dev/zero | tr '\0' y) > sub/hooks/large.sh
				git add -A; git commit -qm change; git rm -q --cached sub/hooks/a.sh; git checkout -q HEAD -- .`)
			for _, root := range []string{dir, dir + "/sub"} {
				tree, err := worktree.Open(t.Context(), root)
				if err != nil {
					t.Fatal(err)
				}
				was, err := tree.Ref(t.Context(), "refs/tags/was")
				if err != nil {
					t.Fatal(err)
				}
				is, err := tree.Ref(t.Context(), "refs/heads/main")
				if err != nil {
					t.Fatal(err)
				}
				paths := []string{"sub/hooks/a.sh", "sub/hooks/nul.sh", "sub/hooks/large.sh"}
				first, rest, err := tree.Shown(t.Context(), was, is, nil, paths)
				if err != nil {
					t.Fatal(err)
				}
				for _, line := range []string{"\n@@ -1,3 +1,3 @@\n one\n \n-two\n+evil\n", "\n+# \x00\n+evil nul\n", strings.Repeat(" ", 1100000) + "evil large\n+" + strings.Repeat("y", 1000000)} {
					if !strings.Contains(first, line) {
						t.Errorf("in %s, not shown: %.60q in %.600q", root, line, first)
					}
				}
				if strings.Contains(rest, "evil") {
					t.Errorf("twice: %.600q", rest)
				}
				part, more, err := tree.Shown(t.Context(), was, is, paths[:1], paths[:1])
				if err != nil || !strings.Contains(part, "+evil\n") || strings.Contains(part, "nul") || more != "" {
					t.Errorf("a part is %q, %q, %v", part, more, err)
				}
			}
		})
	}
}

// TestARenamedGuardedFileIsShown: a file whose new name runs for people is shown in full, although its content is old.
func TestARenamedGuardedFileIsShown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sh(t, dir, "git init -q -b main; seq 20 > notes; seq 30 > plain; git add -A; git commit -qm base; git mv notes hook; git mv plain simple; git commit -qm change")
	tree, err := worktree.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	first, rest, err := tree.Shown(t.Context(), "HEAD^1", "HEAD", nil, []string{"hook"})
	if err != nil || strings.Count(first, "\n+") < 20 || !strings.Contains(rest, "+++ b/simple") || strings.Contains(rest, "hook") {
		t.Errorf("%v: %s\n-- rest\n%s", err, first, rest)
	}
	if !strings.Contains(rest, "--- a/notes\n+++ /dev/null\n") { // that the old file is removed is not secret
		t.Errorf("%v: %s\n-- rest\n%s", err, first, rest)
	}
}

// TestWhereWorkBegins: work that was merged from a target is not its own. Work that a target contains is shown all the
// same.
func TestWhereWorkBegins(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sh(t, dir, `c() { echo $1 > $1; git add -A; git commit -qm $1; git tag $1; }
		git init -q -b main; c base; git checkout -qb work; c mine
		git checkout -q main; c theirs; git branch old; c newer
		git checkout -q work; git merge -q -m merge theirs; c more; git tag merged
		git checkout -q main; git branch taken work; git checkout -q --orphan other; c alone`)
	tree, err := worktree.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return strings.TrimSpace(sh(t, dir, "git rev-parse "+name)) }
	for name, c := range map[string]struct {
		head    string
		targets []string
		want    string
	}{
		"it merged the target":        {"more", []string{"refs/heads/main"}, "theirs"},
		"it merged nothing":           {"mine", []string{"refs/heads/main"}, "base"},
		"several targets":             {"more", []string{"refs/heads/none", "refs/heads/old", "refs/heads/main"}, "theirs"},
		"a target that is behind":     {"more", []string{"refs/tags/base"}, "base"},
		"the target has it":           {"mine", []string{"refs/heads/taken"}, "base"},
		"there is no target":          {"more", []string{"refs/heads/none"}, "base"},
		"nothing in common":           {"more", []string{"refs/tags/alone"}, "base"},
		"work without a common start": {"alone", []string{"refs/heads/main"}, "base"},
	} {
		got, err := tree.Begin(t.Context(), at("base"), at(c.head), c.targets...)
		if err != nil || got != at(c.want) {
			t.Errorf("%s: %.8s, %v, want %s %.8s", name, got, err, c.want, at(c.want))
		}
	}
	if got, err := tree.Begin(t.Context(), at("base"), strings.Repeat("1", 40), "refs/heads/main"); err == nil {
		t.Errorf("a commit that is not there is compared with %s", got)
	}
}
