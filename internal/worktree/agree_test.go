package worktree_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ralph/internal/worktree"
)

// TestPairs: go-git and native git find the same files of two commits, with their contents, and ids for files that are
// no text.
func TestPairs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sh(t, dir, `git init -q -b main; printf 'a\r\n' > text; echo x > moved; : > empty; printf '\0\1' > binary; echo run > mode
		git init -q in; git -C in commit -q --allow-empty -m in; git add -A 2> /dev/null; git commit -qm one
		echo '* -diff text' > .gitattributes; echo b > text; git mv moved "$(printf 'n\tü')"; echo y > empty; printf '\0\2' > binary
		chmod +x mode; yes | head -c 1048577 > large; git -C in commit -q --allow-empty -m more; git add -A; git commit -qm two`)
	id := func(name string) string { return strings.TrimSpace(sh(t, dir, "git rev-parse '"+name+"'")) }
	type pair struct{ Was, Is string }
	want := map[string]pair{
		".gitattributes": {"", "* -diff text\n"}, "text": {"a\r\n", "b\n"}, "moved": {"x\n", ""}, "n\tü": {"", "x\n"},
		"empty": {"", "y\n"}, "mode": {"run\n", "run\n"}, "binary": {id("HEAD~1:binary"), id("HEAD:binary")},
		"large": {"", id("HEAD:large")},
		"in":    {"Subproject commit " + id("HEAD~1:in") + "\n", "Subproject commit " + id("HEAD:in") + "\n"},
	}
	for _, native := range []bool{false, true} {
		tree := open(t, dir)
		if native {
			worktree.OnlyNative(tree)
		}
		pairs, err := tree.Pairs(t.Context(), id("HEAD~1"), id("HEAD^{tree}"))
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]pair{}
		for _, p := range pairs {
			got[p.Path] = pair{string(p.Was), string(p.Is)}
			if (p.From == "") != (p.Was == nil) || (p.To == "") != (p.Is == nil) {
				t.Errorf("%s is in %q and %q, with contents %q and %q", p.Path, p.From, p.To, p.Was, p.Is)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("the pairs (-want +got):\n%s", d)
		}
		for _, f := range changes(t, tree, id("HEAD~1"), id("HEAD")) { // attributes hide no lines
			if f.Path == "text" && (f.Added != 1 || f.Removed != 1) {
				t.Errorf("text has %+v", f)
			}
		}
		if is := tree.Content(t.Context(), id("HEAD"), "./large"); len(is) != 1<<20 {
			t.Errorf("%d bytes of a large file", len(is))
		}
		if is := tree.Content(t.Context(), id("HEAD"), "none"); is != nil {
			t.Errorf("a missing file is %q", is)
		}
	}
}

// TestGoGitWritesLikeGit: commits, refs and facts about commits are the same with native git. Names that git changes or
// refuses are left to git.
func TestGoGitWritesLikeGit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sh(t, dir, `git init -q -b main; mkdir d; echo x > d/a; echo x > b; git add -A; git commit -qm one; echo y > d/a; git rm -q b
		echo z > c; git add -A; git commit -qm two; git switch -qc side HEAD~1; echo s > s; git add -A; git commit -qm three
		git switch -q main; git merge -q --no-edit side; git init -q in; git -C in commit -q --allow-empty -m in; git add in
		git commit -qm in 2> /dev/null`)
	ours, native := open(t, dir), open(t, dir)
	worktree.OnlyNative(native)
	id := func(name string) string {
		return strings.TrimSpace(sh(t, dir, "git rev-parse --verify -q '"+name+"' || true"))
	}
	for name, user := range map[string][2]string{
		"a person": {"Ann O'Neil", "ann@example.org"}, "ralph": {}, "quoted": {`"Ann" <x>`, " ann@example.org."}, "accents": {"Zoë.", "z"},
	} {
		var said []string
		for _, tree := range []*worktree.Tree{ours, native} {
			commit, err := tree.CommitTree(t.Context(), id("HEAD^{tree}"), []string{id("main"), id("side")}, "Title\n\nText\n\n", user)
			if err != nil {
				t.Fatal(name, err)
			}
			said = append(said, sh(t, dir, "git cat-file -p "+commit+` | sed -E 's/> [0-9]+ /> TIME /'; git fsck --strict --no-dangling `+commit))
		}
		if d := cmp.Diff(said[1], said[0]); d != "" {
			t.Errorf("%s: native git and go-git (+):\n%s", name, d)
		}
	}
	for _, tree := range []*worktree.Tree{ours, native} {
		if _, err := tree.CommitTree(t.Context(), strings.Repeat("1", 40), nil, "x", [2]string{}); err == nil {
			t.Error("a commit of a missing tree")
		}
		if err := tree.SetRef(t.Context(), "refs/ralph/x", strings.Repeat("1", 40)); err == nil {
			t.Error("a ref of a missing commit")
		}
		for _, to := range []string{"main", "side", "main"} {
			if err := tree.SetRef(t.Context(), "refs/ralph/x/y", id(to)); err != nil || id("refs/ralph/x/y") != id(to) {
				t.Errorf("refs/ralph/x/y is not at %s: %v", to, err)
			}
			sh(t, dir, "git pack-refs --all")
		}
		if err := tree.SetRef(t.Context(), "refs/ralph/x/y", ""); err != nil || id("refs/ralph/x/y") != "" {
			t.Errorf("refs/ralph/x/y is there: %v", err)
		}
		if left := sh(t, dir, "ls .git | grep ralph- || true"); left != "" {
			t.Errorf("left over: %s", left)
		}
	}
	read := func(tree *worktree.Tree) (links []worktree.Link, ancestors []bool) {
		links, err := tree.Links(t.Context(), id("side"), id("main"))
		if err != nil {
			t.Fatal(err)
		}
		for _, pair := range [][2]string{{"main", "side"}, {"side", "main"}, {"main~2", "side"}, {"side", "main~2"}, {"main", "main"}} {
			is, err := tree.Ancestor(t.Context(), id(pair[0]), id(pair[1]))
			if err != nil {
				t.Fatal(err)
			}
			ancestors = append(ancestors, is)
		}
		return links, ancestors
	}
	links, ancestors := read(ours)
	wantLinks, wantAncestors := read(native)
	if d := cmp.Diff(wantAncestors, ancestors); d != "" || len(links) != 1 ||
		links[0].Commit != wantLinks[0].Commit || links[0].Path != wantLinks[0].Path {
		t.Errorf("native git and go-git (+):\n%s%v %v", d, wantLinks, links)
	}
}
