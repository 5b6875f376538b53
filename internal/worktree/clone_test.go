package worktree_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ralph/internal/worktree"
)

// cloned creates a repository with some commits, and a clone of it at the newest.
func cloned(t *testing.T, script string) (dir string, tree *worktree.Tree, c *worktree.Clone) {
	t.Helper()
	dir = t.TempDir()
	sh(t, dir, "git init -q -b main; git config user.name Ann; git config user.email ann@example.com; "+
		"echo '*.log' > .gitignore; echo a > a; mkdir sub; echo b > sub/b; git add -A; git commit -qm base; "+script)
	tree = open(t, dir)
	c, err := tree.Clone(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	fresh(t, tree, c)
	return dir, tree, c
}

func fresh(t *testing.T, tree *worktree.Tree, c *worktree.Clone) string {
	t.Helper()
	base, err := tree.Ref(t.Context(), "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Fresh(t.Context(), base, []string{"/linked"}, tree.User(t.Context()), false); err != nil {
		t.Fatal(err)
	}
	return base
}

// TestASessionsWorkInAClone: it comes back as one commit on the base, whatever the session did with git.
func TestASessionsWorkInAClone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, session string
		want          string // the files of the candidate
		commits       string // how many are on the base
	}{
		{"nothing", "true", ".gitignore a sub/b", "0"},
		{"edits", "echo x > a; echo y > new; rm sub/b; echo z > z.log", ".gitignore a new", "1"},
		{"commits", "echo x > new; git add -A; git commit -qm one; echo y > new; git commit -qam two", ".gitignore a new sub/b", "2"},
		{"commits and edits", "echo x > new; git add -A; git commit -qm one; echo y > other", ".gitignore a new other sub/b", "2"},
		{"on a branch", "git switch -qc mine; echo x > new; git add -A; git commit -qm one", ".gitignore a new sub/b", "1"},
		{"amended", "echo x > new; git add -A; git commit -q --amend -m other", ".gitignore a new sub/b", "1"},
		{"another history", "git checkout -q --orphan lone; git commit -qm lone; echo x > new", ".gitignore a new sub/b", "1"},
		{"committed although ignored", "echo x > x.log; git add -f x.log; git commit -qm log", ".gitignore a sub/b x.log", "1"},
		{"staged although ignored", "echo x > x.log; git add -f x.log; echo y >> x.log; git update-index --index-version 4; echo z > z.log", ".gitignore a sub/b x.log", "1"},
		{"staged although ignored, and gone", "echo x > x.log; mkdir d; echo d > d/d.log; git add -f x.log d; rm -r x.log d; ln -s sub d", ".gitignore a d sub/b", "1"},
		{"staged by a split index", "git config core.splitIndex true; echo x > x.log; git add -f x.log", ".gitignore a sub/b x.log", "1"},
		{"staged beyond a link", "ln -s sub link.log; mkdir d; echo d > d/b.log; git add -f link.log d; rm -r d; ln -s sub d; cp sub/b sub/b.log", ".gitignore a d link.log sub/b", "1"},
		{"a repository within, staged although ignored", "git init -q in.log; git -C in.log commit -q --allow-empty -m in; git add -f in.log", ".gitignore a in.log sub/b", "1"},
		{"hidden from git", "echo x > a; git update-index --assume-unchanged a; echo a > .git/info/exclude; echo x > new", ".gitignore a new sub/b", "1"},
		{"gc and stash", "echo x > a; git stash -q; git gc -q --prune=now; echo y > new", ".gitignore a new sub/b", "1"},
		{"HEAD leads nowhere", "echo 1234567890123456789012345678901234567890 > .git/HEAD; echo x > new", ".gitignore a new sub/b", "1"},
		{"a configuration that runs programs", "git config core.fsmonitor 'touch /tmp/ralph-ran'; git config filter.x.clean 'echo evil'; " +
			"echo '* filter=x' > .git/info/attributes; git config core.worktree /; echo x > new", ".gitignore a new sub/b", "1"},
		{"repacked, graphed", "for i in 1 2 3; do echo $i > new; git add -A; git commit -qm $i; done; git repack -adq; git commit-graph write --reachable", ".gitignore a new sub/b", "3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir, tree, c := cloned(t, "")
			base := fresh(t, tree, c)
			sh(t, c.Top(), tt.session)
			look, err := c.Snapshot(t.Context(), c.Scratch())
			if err != nil {
				t.Fatal(err)
			}
			made, err := c.Candidate(t.Context(), base, look.Content, "what was made", tree.User(t.Context()))
			if err != nil {
				t.Fatal(err)
			}
			if err := tree.Fetch(t.Context(), c, base, made.Head, "refs/ralph/changes/1"); err != nil {
				t.Fatal(err)
			}
			got := strings.Join(strings.Fields(sh(t, dir, "git ls-tree -r --name-only refs/ralph/changes/1")), " ")
			if commits := strings.TrimSpace(sh(t, dir, "git rev-list --count main..refs/ralph/changes/1")); got != tt.want || commits != tt.commits {
				t.Errorf("got %q in %s commits, want %q in %s", got, commits, tt.want, tt.commits)
			}
			sh(t, dir, "git merge-base --is-ancestor main refs/ralph/changes/1; git fsck --strict --no-dangling")
			if made.Tree != look.Content {
				t.Errorf("the candidate is of %s, looked at was %s", made.Tree, look.Content)
			}
		})
	}
}

// TestBrokenObjectsAreNotTaken: objects that a session wrote into its .git by hand do not get into the repository,
// neither one by one nor in a pack.
func TestBrokenObjectsAreNotTaken(t *testing.T) {
	t.Parallel()
	const commit = "git add -A; git commit -qm x; "
	object := "f=.git/objects/$(git rev-parse HEAD:new | sed 's,..,&/,'); "
	for _, tt := range []struct {
		name, session string
		taken         bool
	}{
		{"nothing broken", commit, true},
		{"a file is missing", commit + object + "rm -f $f", false},
		{"a file is another one", commit + object + "chmod u+w $f; rm -f .git/objects/$(git rev-parse HEAD:a | sed 's,..,&/,'); " +
			"echo other > o; cp -f .git/objects/$(git hash-object -w o | sed 's,..,&/,') $f", false},
		{"a folder named .git", commit + "t=$(printf '040000 tree %s\\t.git\\n' $(git rev-parse HEAD:sub) | git mktree); " +
			"git reset -q --soft $(git commit-tree -p HEAD -m evil $t)", false},
		{"a parent is missing", "git reset -q --soft $(git commit-tree -p HEAD -m child $(git write-tree)); " + commit +
			"rm -f .git/objects/$(git rev-parse HEAD~1 | sed 's,..,&/,')", false},
	} {
		for _, many := range []string{"", "for i in $(seq 150); do echo $i > many$i; done; "} {
			t.Run(tt.name+strings.Repeat(", in a pack", min(len(many), 1)), func(t *testing.T) {
				t.Parallel()
				dir, tree, c := cloned(t, "")
				base := fresh(t, tree, c)
				sh(t, c.Top(), "echo new > new; "+many+tt.session)
				head := strings.TrimSpace(sh(t, c.Top(), "cat .git/HEAD | sed 's/ref: //' | xargs git rev-parse"))
				err := tree.Fetch(t.Context(), c, base, head, "refs/ralph/changes/1")
				got, _ := tree.Ref(t.Context(), "refs/ralph/changes/1")
				if taken := err == nil && got == head; taken != tt.taken || !taken && got != "" {
					t.Errorf("taken: %t (%v, the ref is at %q), want %t", taken, err, got, tt.taken)
				}
				packs := strings.Count(sh(t, dir, "ls .git/objects/pack"), ".pack")
				if tt.taken && packs != min(len(many), 1) {
					t.Errorf("there are %d packs", packs)
				}
				sh(t, dir, "git fsck --strict --no-dangling")
			})
		}
	}
}

// TestGitStaysInItsClone, whatever a session made of the clone: ralph runs git outside of the sandbox, so git must
// start no configured program, follow no link out of the clone, and remove or write nothing elsewhere.
func TestGitStaysInItsClone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, session string }{
		{"its work tree is a link", "cd ..; mv tree away; ln -s $OUT tree"},
		{"its work tree is a file", "cd ..; rm -rf tree; echo x > tree"},
		{"a folder in it is a link", "rm -rf sub; ln -s $OUT sub; echo x > .gitignore"},
		{"its .git is a link", "rm -rf .git; ln -s $OUT .git"},
		{"its .git leads elsewhere", "rm -rf .git; echo gitdir: $OUT > .git"},
		{"parts of its .git are links", "rm -rf .git/refs .git/objects .git/logs .git/index; for i in refs objects logs index; do ln -s $OUT .git/$i; done"},
		{"its HEAD is a link", "ln -sf $OUT/kept .git/HEAD"},
		{"objects of elsewhere", "echo $OUT > .git/objects/info/alternates"},
		{"programs for all that git runs", "for k in core.fsmonitor core.sshCommand core.pager core.editor core.askPass core.gitProxy core.alternateRefsCommand diff.external " +
			"gpg.program uploadpack.packObjectsHook credential.helper filter.x.clean filter.x.smudge filter.x.process merge.x.driver diff.x.command diff.x.textconv; " +
			"do git config $k \"touch $OUT/ran\"; done; git config filter.x.required true; git config core.worktree $OUT; git config commit.gpgSign true; " +
			"git config core.hooksPath $PWD/hooks; mkdir hooks; for h in post-checkout post-index-change reference-transaction pre-commit post-commit fsmonitor-watchman; " +
			"do printf '#!/bin/sh\\ntouch $OUT/ran\\n' | tee .git/hooks/$h > hooks/$h; chmod +x .git/hooks/$h hooks/$h; done; " +
			"echo '* filter=x merge=x diff=x' | tee .gitattributes > .git/info/attributes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, tree, c := cloned(t, "")
			base := fresh(t, tree, c)
			out := t.TempDir()
			sh(t, out, "echo mine > kept; mkdir dir; echo mine > dir/a; echo mine > b; git init -q .")
			all := "find . -not -path './.git/*' | sort; cat kept dir/a b; find .git | sort"
			before := sh(t, out, all)
			sh(t, c.Top(), "export OUT="+out+"; mkdir -p .git/hooks; "+tt.session)
			// Work that cannot be read or taken is an error, and nothing else.
			if look, err := c.Snapshot(t.Context(), c.Scratch()); err == nil {
				if made, err := c.Candidate(t.Context(), base, look.Content, "what was made", tree.User(t.Context())); err == nil {
					_ = tree.Fetch(t.Context(), c, base, made.Head, "refs/ralph/changes/1")
				}
			}
			again, err := tree.Clone(t.Context(), filepath.Dir(c.Top()))
			if err != nil {
				t.Fatal(err)
			}
			fresh(t, tree, again)
			if got := sh(t, again.Top(), "pwd -P; git status --porcelain; cat a sub/b"); got != c.Top()+"\na\nb\n" {
				t.Errorf("the clone is %q", got)
			}
			if after := sh(t, out, all); after != before {
				t.Errorf("what is elsewhere was\n%s\nand is\n%s", before, after)
			}
		})
	}
}

// TestAFreshClone: a fresh clone equals its commit, except for ignored files.
func TestAFreshClone(t *testing.T) {
	t.Parallel()
	dir, tree, c := cloned(t, "git tag v1; git branch other")
	sh(t, c.Top(), "echo cache > c.log; ln -s / linked; echo x > a; rm -r sub; echo f > sub; mkdir d; echo x > d/x; git init -q nested; "+
		"git commit -qam mine; git branch -q evil; git config core.hooksPath /tmp; git stash -q -u; touch .git/index.lock")
	sh(t, dir, "git rm -q a; echo n > n; git add n; git commit -qm next")
	base := fresh(t, tree, c)
	got := strings.Fields(sh(t, c.Top(), "git status --porcelain; ls -A; git rev-parse HEAD; "+
		"git for-each-ref --format='%(refname:short)'; git stash list; cat sub/b; git config user.name"))
	want := []string{".git", ".gitignore", "c.log", "linked", "n", "sub", base, "origin/main", "origin/other", "v1", "b", "Ann"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if err := c.Fresh(t.Context(), "HEAD", nil, [2]string{}, true); err == nil {
		t.Error("HEAD is no commit")
	}
	if _, err := os.Stat(filepath.Join(dir, "a")); err == nil {
		t.Error("the person's work tree was changed")
	}
}

// TestAFreshCloneAfterAPowerCut that left half of its index.
func TestAFreshCloneAfterAPowerCut(t *testing.T) {
	t.Parallel()
	_, tree, c := cloned(t, "")
	sh(t, c.Top(), "truncate -s 10 ../git/index")
	sh(t, c.Top(), "echo x > a; echo cache > c.log")
	fresh(t, tree, c)
	if got := sh(t, c.Top(), "git status --porcelain; cat c.log"); got != "cache\n" {
		t.Errorf("the clone is %q", got)
	}
}

// TestClonesOfOddRepositories: a clone of a shallow or sparse repository, or of one with a
// submodule or an LFS pointer, has everything that is committed, and gives back exactly the
// changes.
func TestClonesOfOddRepositories(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"shallow":                       "git commit -qm more --allow-empty; git clone -q --depth 1 file://$PWD odd; mv odd/.git/shallow .git/shallow",
		"addresses that lead elsewhere": "git config url.nowhere/.insteadOf /",
		"sha256":                        "rm -rf .git; git init -q -b main --object-format=sha256; git add -A; git commit -qm base",
		"sparse":                        "git sparse-checkout set --cone nowhere",
		"submodule":                     "git init -q -b main ../lib; git -C ../lib commit -q --allow-empty -m lib; git -c protocol.file.allow=always submodule --quiet add ../lib lib; git commit -qm sub",
		"lfs": "printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%064d\\nsize 3\\n' 0 > big.bin; " +
			"echo '*.bin filter=lfs diff=lfs merge=lfs -text' > .gitattributes; git add -A; git commit -qm lfs",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "repo")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			sh(t, dir, "git init -q -b main; echo a > a; mkdir sub; echo b > sub/b; git add -A; git commit -qm base; "+script)
			tree := open(t, dir)
			c, err := tree.Clone(t.Context(), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			base := fresh(t, tree, c)
			sh(t, c.Top(), "test -f sub/b; echo x > new")
			look, err := c.Snapshot(t.Context(), c.Scratch())
			if err != nil {
				t.Fatal(err)
			}
			made, err := c.Candidate(t.Context(), base, look.Content, "x", tree.User(t.Context()))
			if err == nil {
				err = tree.Fetch(t.Context(), c, base, made.Head, "refs/ralph/changes/1")
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSpace(sh(t, dir, "git diff --name-only "+base+" refs/ralph/changes/1")); got != "new" {
				t.Errorf("got %q", got)
			}
			if files, err := tree.Files(t.Context(), base, made.Head); err != nil || !slices.Equal(files, []string{"new"}) {
				t.Errorf("it differs by %q, %v", files, err)
			}
		})
	}
}

// TestASubmoduleBesideTheRepository: a relative address leads to the same repository from a clone,
// without credentials.
func TestASubmoduleBesideTheRepository(t *testing.T) {
	t.Parallel()
	const remote, key = "git remote add origin ", `'submodule.a "b.url' `
	for name, tt := range map[string]struct{ said, script, want string }{
		"no remote":        {"../lib.git", "true", "$TOP/lib.git"},
		"a remote's":       {"../lib.git", remote + "https://token@example.com/team/app.git", "https://example.com/team/lib.git"},
		"by SSH":           {"./../lib.git", remote + "ssh://git:word@example.com/team/app", "ssh://git@example.com/team/lib.git"},
		"the short form":   {"../lib.git", remote + "git@example.com:team/app", "git@example.com:team/lib.git"},
		"a person's own":   {"../lib.git", "git config " + key + "https://ann:word@example.com/lib", "https://example.com/lib"},
		"a broken address": {"../lib.git", "git config " + key + "'https://ann:word@exa mple.com:x/lib'", ""},
		"a whole address":  {"https://example.com/other", "true", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			dir := filepath.Join(top, "app")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			sh(t, top, "git init -q -b main lib.git; git -C lib.git commit -q --allow-empty -m lib")
			sh(t, dir, "git init -q -b main; "+
				`git -c protocol.file.allow=always submodule --quiet add --name 'a "b' "$PWD/../lib.git" lib 2>&1; `+
				"git config --unset "+key+"; git config -f .gitmodules "+key+tt.said+"; git add -A; git commit -qm sub; "+tt.script)
			tree := open(t, dir)
			c, err := tree.Clone(t.Context(), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			fresh(t, tree, c)
			got := strings.TrimSpace(sh(t, c.Top(), "git config "+key+"|| true"))
			if want := strings.ReplaceAll(tt.want, "$TOP", top); got != want {
				t.Errorf("the clone has it from %q, want %q", got, want)
			}
			if tt.want == "$TOP/lib.git" {
				sh(t, c.Top(), "git -c protocol.file.allow=always submodule --quiet update --init && test -e lib/.git")
			}
		})
	}
}

// TestSubmodulesComeFromTheUsersCopies, without a network. Submodules without a copy are empty.
func TestSubmodulesComeFromTheUsersCopies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, script, want string }{
		{"as they are", "true", "lib deep"},
		{"addresses are gone", "rm -rf ../lib ../deep", "lib deep"},
		{"not initialised", "git submodule --quiet deinit -f --all; rm -rf .git/modules", ""},
		{"emptied", "git submodule --quiet deinit -f --all", "lib deep"},
		{"the inner one is not there", "rm -rf .git/modules/lib/modules", "lib"},
		{"a commit that the copy lacks", "git update-index --cacheinfo 160000,$(git rev-parse HEAD),lib; git commit -qm other", ""},
		{"no copy of what was never a submodule", "git config -f .gitmodules submodule.lib.path elsewhere; git commit -qam odd", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			dir := filepath.Join(top, "app")
			sh(t, top, `for r in deep lib app; do git init -q -b main $r; echo $r > $r/$r; git -C $r add -A; git -C $r commit -qm $r; done
				git -C lib -c protocol.file.allow=always submodule --quiet add $PWD/deep in/deep; git -C lib commit -qm deep
				git -C app -c protocol.file.allow=always submodule --quiet add $PWD/lib lib; git -C app commit -qm lib
				git -C app -c protocol.file.allow=always submodule --quiet update --init --recursive`)
			sh(t, dir, tt.script)
			before := sh(t, dir, "find . -path ./lib -prune -o -type f -print | sort | xargs sha256sum")
			tree := open(t, dir)
			c, err := tree.Clone(t.Context(), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			base := fresh(t, tree, c)
			got := strings.Join(strings.Fields(sh(t, c.Top(), "cat lib/lib lib/in/deep/deep 2>/dev/null || true")), " ")
			if got != tt.want {
				t.Errorf("the clone has %q, want %q", got, tt.want)
			}
			look, err := c.Snapshot(t.Context(), c.Scratch())
			if err != nil {
				t.Fatal(err)
			}
			made, err := c.Candidate(t.Context(), base, look.Content, "x", tree.User(t.Context()))
			if err != nil || made.Head != base {
				t.Errorf("it differs from its commit: %v, %v", made, err)
			}
			if tt.want != "" {
				sh(t, c.Top(), "cd lib && echo x > x && git add x && git commit -qm x && git log -1 && git remote get-url origin")
			}
			if after := sh(t, dir, "find . -path ./lib -prune -o -type f -print | sort | xargs sha256sum"); after != before {
				t.Errorf("the user's repository is another: %s\n%s", before, after)
			}
		})
	}
}

// TestNoCloneOfFilteredFiles: a repository with filtered files is not cloned, except for LFS
// pointers; a filter without files does not matter.
func TestNoCloneOfFilteredFiles(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, script, want string }{
		{"git-crypt", "git config filter.git-crypt.smudge cat; echo '*.key filter=git-crypt diff=git-crypt' > sub/.gitattributes", "git-crypt"},
		{"in the repository's own attributes", "git config filter.x.process cat; echo '* filter=x' > .git/info/attributes", "filter x"},
		{"lfs", "git config filter.lfs.smudge cat; echo '*.bin filter=lfs' > .gitattributes", ""},
		{"not configured", "echo '*.key filter=git-crypt' > .gitattributes", ""},
		{"configured alone", "git config filter.x.clean cat; echo '#*.key filter=x' > .gitattributes", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			sh(t, dir, "git init -q -b main; mkdir sub; echo a > a; "+tt.script+"; git add -A; git commit -qm base")
			why := open(t, dir).Uncloned(t.Context())
			if !strings.Contains(why, tt.want) || tt.want == "" && why != "" {
				t.Errorf("it says %q, want %q", why, tt.want)
			}
		})
	}
}

// TestRefsOfAClone: after a snapshot, git does not hang on a session's refs, and reads the valid ones.
func TestRefsOfAClone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, session string
		broken        bool // git may not be able to read it
	}{
		{"nothing", "true", false},
		{"commits, branches, tags", "git commit -qm x --allow-empty; git branch b; git tag t; git tag -a -m t u; git update-ref refs/mine/own HEAD", false},
		{"packed", "git branch b; git tag -a -m t u; git pack-refs --all; git branch -f b HEAD~0; git commit -qm x --allow-empty; git branch c", false},
		{"packed and moved", "git branch b; git pack-refs --all; git commit -qm x --allow-empty; git branch -f b; git branch -d b; git branch b HEAD~1", false},
		{"stashes", "for i in 1 2 3; do echo $i > a; git stash -q; done", false},
		{"a stash without a log", "echo 1 > a; git stash -q; rm -r .git/logs", false},
		{"on a branch", "git switch -qc mine; git commit -qm x --allow-empty", false},
		{"a lock", "cp .git/HEAD .git/refs/heads/b.lock", false},
		{"no logs", "rm -r .git/logs", false},
		{"not packed", "rm .git/packed-refs", false},
		{"no refs", "rm -r .git/refs", true},
		{"a symbolic ref", "git branch b; git symbolic-ref refs/heads/c refs/heads/b", true},
		{"a broken ref", "echo x > .git/refs/heads/b", true},
		{"a ref to nothing", "git rev-parse HEAD | tr '[0-9a-f]' 0 > .git/refs/heads/b", true},
		{"a name that is none", "cp .git/HEAD .git/refs/heads/a..b", true},
		{"broken packed refs", "echo x >> .git/packed-refs", true},
		{"a link", "git branch b; ln -s b .git/refs/heads/c", false},
		{"a link to elsewhere", "git branch b; mv .git/refs ..; ln -s ../../refs .git/refs", true},
		{"more folders than anybody needs", "seq -f .git/refs/heads/%g 2001 | xargs mkdir", true},
		{"a pipe", "git branch b; mkfifo .git/refs/heads/c", true},
		{".git is a link", "mv .git ../theirs; ln -s ../theirs .git", true},
		{"no .git", "rm -rf .git", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, _, c := cloned(t, "git branch other; git tag v1; git tag -a -m v2 v2")
			sh(t, c.Top(), "git branch own; "+tt.session)
			_, serr := c.Snapshot(t.Context(), t.TempDir())
			refs, err := c.Refs(t.Context(), "refs/")
			if !tt.broken && (serr != nil || err != nil || refs["refs/heads/own"] == "") {
				t.Errorf("%v, %v: %v", serr, err, refs)
			}
		})
	}
}

// TestPipesOfASession: nothing waits for a named pipe that a session has put in the place of a file.
func TestPipesOfASession(t *testing.T) {
	for name, tt := range map[string]struct {
		script string
		look   func(ctx context.Context, tree *worktree.Tree, c *worktree.Clone) error
	}{
		"of the packed refs, which git waits for": {
			"rm .git/packed-refs; mkfifo .git/packed-refs",
			func(ctx context.Context, _ *worktree.Tree, c *worktree.Clone) error {
				ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
				defer cancel()
				if _, err := c.Ref(ctx, "refs/heads/none"); !errors.Is(err, context.DeadlineExceeded) {
					return fmt.Errorf("the question for a ref ends with %w", err)
				}
				return nil
			},
		},
		"of a branch that ralph moves": {
			"mkfifo .git/refs/heads/tip",
			func(ctx context.Context, tree *worktree.Tree, c *worktree.Clone) error {
				base, err := tree.Ref(ctx, "HEAD")
				if err = errors.Join(err, c.Branch("tip", base)); err != nil {
					return err
				}
				if at, err := c.Ref(ctx, "refs/heads/tip"); at != base || err != nil {
					return fmt.Errorf("it is at %q: %w", at, err)
				}
				return nil
			},
		},
		"of a file that may hold secrets": {
			"mkfifo .npmrc",
			func(_ context.Context, _ *worktree.Tree, c *worktree.Clone) error {
				if c.SecretFile(".npmrc") {
					return errors.New("it has secrets")
				}
				return nil
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, tree, c := cloned(t, "true")
			sh(t, c.Top(), tt.script)
			if err := tt.look(t.Context(), tree, c); err != nil {
				t.Error(err)
			}
		})
	}
}
