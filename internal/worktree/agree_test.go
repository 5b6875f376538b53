package worktree_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ralph"
	"ralph/internal/worktree"
)

// TestGoGitSaysWhatGitSays: go-git reads the same as native git, and so it does for the work tree
// without a git program.
func TestGoGitSaysWhatGitSays(t *testing.T) {
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
		"nothing committed":         {"rm -rf .git; git init -q -b main", "echo x > new"},
		"a repository within":       {"git init -q in; cd in; git commit -q --allow-empty -m in; cd ..; git add in", "cd in; git commit -q --allow-empty -m more; echo x > x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "old")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			sh(t, dir, base+tt.before)
			ours, scratch := open(t, dir), t.TempDir()
			native := open(t, dir)
			worktree.OnlyNative(native)
			begun := look(t, ours, scratch)
			sh(t, dir, tt.session)
			now := look(t, ours, scratch)
			changes := func(tree *worktree.Tree) (files []ralph.FileChange, commits []string, standing ralph.Standing) {
				files, commits, err := tree.Changes(t.Context(), begun, now, scratch)
				if err != nil {
					t.Fatal(err)
				}
				if standing, err = tree.Standing(t.Context(), begun, now, scratch, []string{"mine", "list"}); err != nil {
					t.Fatal(err)
				}
				slices.Sort(commits)
				slices.Sort(standing.Taken)
				return files, commits, standing
			}
			files, commits, standing := changes(ours)
			wantFiles, wantCommits, wantStanding := changes(native)
			if d := cmp.Diff(wantFiles, files) + cmp.Diff(wantCommits, commits) + cmp.Diff(wantStanding, standing); d != "" {
				t.Errorf("native git and go-git (+):\n%s", d)
			}
			without := open(t, dir)
			worktree.WithoutNative(without)
			s, err := without.Snapshot(t.Context(), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(now.Digest(), s.Digest()) + cmp.Diff(now.Refs, s.Refs); d != "" || now.Head != s.Head {
				t.Errorf("without a git program:\n%s", d)
			}
		})
	}
}
