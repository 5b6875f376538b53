package worktree_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ralph"
	"ralph/internal/worktree"
)

// TestGoGitReadsLikeGit: go-git and native git read the same.
func TestGoGitReadsLikeGit(t *testing.T) {
	base := `git init -q -b main; seq 1 30 > list; printf 'a\nb' > open; printf '\0\1\2' > binary; : > empty; mkdir -p d/e
		ln -s list link; echo x > d/e/f; echo x > d/g; printf '*.log\n/out/\n!keep.log\n' > .gitignore; echo kept > keep.log
		git add -A; git commit -qm base; git tag -am x v1; seq 1 40 > list; git commit -qam second; echo '*.tmp' > .git/info/exclude; `
	for name, tt := range map[string]struct{ before, session string }{
		"edited":                    {"", "sed -i 's/^7$/seven/; /^9$/d' list; echo c >> open; printf '\\0\\3' > binary; echo y > empty"},
		"moved and edited":          {"", "git mv list d/moved; echo more >> d/moved; git mv d/e/f d/e/h"},
		"another mode and kind":     {"", "chmod +x list; rm link; ln -s open link; rm -r d; echo file > d; rm empty; mkdir empty; echo x > empty/x"},
		"ignored, and not":          {"", "mkdir out; echo x > out/x; echo x > a.log; echo x > d/b.log; echo x > a.tmp; echo y > keep.log; git add -f a.log"},
		"names":                     {"", "echo x > \"$(printf 'q\\n\\tü -n')\"; echo x > d.x; echo x > d0; mkdir d-; echo x > d-/x"},
		"large":                     {"", "seq 1 300000 > large; seq 1 20 > list"},
		"gone":                      {"", "git rm -qr d list; git commit -qm gone"},
		"committed":                 {"", "echo x > new; git add new; git commit -qm new; git commit -q --allow-empty --amend -m again"},
		"reset":                     {"", "echo x > new; git add new; git commit -qm new; git reset -q --hard HEAD~2"},
		"a branch of an old commit": {"", "git switch -qc old HEAD~1; echo x > new; git add new; git commit -qm new"},
		"merged":                    {"git switch -qc side HEAD~1; echo s > side; git add side; git commit -qm side; git switch -q main", "git merge -q --no-edit side"},
		"stashed and packed":        {"", "echo x >> list; git stash -q; echo y > new; git add new; git commit -qm new; git gc -q --prune=now"},
		"another's objects":         {"cd ..; git clone -qs old new; rm -rf shared; mv old shared; mv new old; cd old; git config advice.x 1; echo ../../../shared/.git/objects > .git/objects/info/alternates", "echo x > new; git add new; git commit -qm new"},
		"uncommitted before":        {"echo x >> list; echo x > mine; git rm -q --cached open", "echo y >> list; echo x > new; git add -A; git commit -qm all"},
		"a repository within":       {"git init -q in; cd in; git commit -q --allow-empty -m in; cd ..; git add in", "cd in; git commit -q --allow-empty -m more; echo x > x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "old")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			sh(t, dir, base+tt.before)
			ours, native := open(t, dir), open(t, dir)
			worktree.OnlyNative(native)
			begun := record(t, ours, "begun")
			sh(t, dir, tt.session)
			now := record(t, ours, "now")
			if d := cmp.Diff(changes(t, native, begun, now), changes(t, ours, begun, now)); d != "" {
				t.Errorf("the files by native git and go-git (+):\n%s", d)
			}
			commits := func(tree *worktree.Tree) []ralph.Commit {
				list, err := tree.Commits(t.Context(), now, begun)
				if err != nil {
					t.Fatal(err)
				}
				slices.SortFunc(list, func(a, b ralph.Commit) int { return strings.Compare(a.ID, b.ID) })
				return list
			}
			if d := cmp.Diff(commits(native), commits(ours)); d != "" {
				t.Errorf("the commits by native git and go-git (+):\n%s", d)
			}
		})
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
