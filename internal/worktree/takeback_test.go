package worktree_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ralph/internal/worktree"
)

// shows returns the visible state of a work tree and its index: names, modes and contents.
const shows = `find . -name .git -prune -o \( -type f -printf '%P %m ' -exec cat {} \; -o -type l -printf '%P -> %l\n' \) | sort; git status --porcelain`

// TestTakeBack: files that have changed since the session stay as they are.
func TestTakeBack(t *testing.T) {
	base := "git init -q -b main; mkdir d; for f in a b d/c; do echo $f > $f; done; git add .; git commit -qm one; "
	for _, tt := range []struct {
		name, before, session, since string
		want                         worktree.TakenBack
		shown                        string // by what it is as if that had been done after before; "" is nothing
	}{
		{"nothing", base, "true", "", worktree.TakenBack{}, ""},
		{
			"changed, removed and added", base, "echo x >> a; rm b; rm -r d; mkdir -p e/f; echo y > e/f/g; chmod +x a", "",
			worktree.TakenBack{Files: []string{"a", "b", "d/c", "e/f/g"}},
			"",
		},
		{
			"a person's uncommitted files", base + "echo mine >> a; echo mine > new; rm b", "echo x > a; rm new; echo y > b", "",
			worktree.TakenBack{Files: []string{"a", "b", "new"}},
			"",
		},
		{
			"a person's edits meanwhile", base, "echo x >> a; echo x >> b; echo y > new; echo z > other", "echo mine >> a; rm other",
			worktree.TakenBack{Files: []string{"b", "new"}, Left: []string{"a", "other"}},
			"echo x >> a; echo mine >> a",
		},
		{"what was staged", base, "echo x >> a; echo y > new; git rm -q b; git add -A", "", worktree.TakenBack{Files: []string{"a", "b", "new"}}, ""},
		{
			"a person's staged file stays in the index", base + "echo mine >> a; git add a; echo more >> a", "echo x >> a; echo x >> b; git add b", "",
			worktree.TakenBack{Files: []string{"a", "b"}},
			"",
		},
		{
			"commits stay, with what they have", base + "echo mine > p", "echo x >> a; git commit -qam x; echo y >> a; echo z >> b; echo q >> p; git add p; git commit -qm p; rm p", "",
			worktree.TakenBack{Files: []string{"a", "b", "p"}},
			"echo q >> p; echo x >> a; git add a p; git commit -qm x",
		},
		{
			"a person commits meanwhile", base, "echo x >> a; echo y > new", "git add a; git commit -qm mine",
			worktree.TakenBack{Left: []string{"new"}},
			"echo x >> a; git add a; git commit -qm mine; echo y > new",
		},
		{
			"a folder in a file's place", base, "rm a; mkdir a; echo x > a/x; rm -r d; echo d > d", "",
			worktree.TakenBack{Files: []string{"a", "a/x", "d", "d/c"}},
			"",
		},
		{
			"a person's file in such a folder", base, "rm a; mkdir a; echo x > a/x", "echo mine > a/mine",
			worktree.TakenBack{Files: []string{"a/x"}, Left: []string{"a"}},
			"rm a; mkdir a; echo mine > a/mine",
		},
		{
			"an ignored file in such a folder", base + "echo '*.o' > .gitignore", "rm a; mkdir a; echo x > a/x; echo o > a/x.o", "",
			worktree.TakenBack{Files: []string{"a/x"}, Left: []string{"a"}},
			"rm a; mkdir a; echo o > a/x.o",
		},
		{
			"a person's link in a folder's place", base, "echo x >> d/c", "rm -r d; ln -s nowhere d",
			worktree.TakenBack{Left: []string{"d/c"}},
			"rm -r d; ln -s nowhere d",
		},
		{"links and modes", base + "ln -s a l; chmod +x b", "rm l; ln -s b l; chmod -x b", "", worktree.TakenBack{Files: []string{"b", "l"}}, ""},
		{"before the first commit", "git init -q -b main; echo a > a", "echo x >> a; echo y > b; git add .", "", worktree.TakenBack{Files: []string{"a", "b"}}, "echo x >> a; git add a; echo a > a"},
		{"names with odd letters", base, "echo x > 'ä b'; echo y > ':(top)q'", "", worktree.TakenBack{Files: []string{":(top)q", "ä b"}}, ""},
		{
			"what is spared and what others may have changed", base, "echo x > spared; echo y > others", "",
			worktree.TakenBack{Left: []string{"others"}},
			"echo x > spared; echo y > others",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir, expected := filepath.Join(t.TempDir(), "p"), filepath.Join(t.TempDir(), "p")
			for _, d := range []string{dir, expected} {
				sh(t, filepath.Dir(d), "mkdir p")
				sh(t, d, tt.before)
			}
			sh(t, expected, tt.shown+"\ntrue")
			got := takeBack(t, dir, dir, tt.session, tt.since)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(seen(t, expected), seen(t, dir)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func seen(t *testing.T, dir string) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", shows)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// takeBack lets a session work in a project of a repository, then something else happen, and then
// restores the session's changes.
func takeBack(t *testing.T, repository, project, session, since string) worktree.TakenBack {
	t.Helper()
	scratch := t.TempDir()
	tree, err := worktree.Open(t.Context(), project)
	if err != nil {
		t.Fatal(err)
	}
	before, err := tree.Snapshot(t.Context(), scratch)
	if err != nil {
		t.Fatal(err)
	}
	sh(t, repository, session)
	left, err := tree.Look(t.Context(), scratch)
	if err != nil {
		t.Fatal(err)
	}
	sh(t, repository, since+"\ntrue")
	is := func(name string) func(string) bool { return func(path string) bool { return path == name } }
	got, err := tree.TakeBack(t.Context(), before, left, scratch, is("spared"), is("others"))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestTakeBackBelowTheTop: files outside of the project are not its sessions' work.
func TestTakeBackBelowTheTop(t *testing.T) {
	dir := t.TempDir()
	sh(t, dir, "git init -q -b main; mkdir web; echo a > web/a; echo a > a; git add .; git commit -qm one; echo mine > web/mine")
	got := takeBack(t, dir, filepath.Join(dir, "web"), "echo x >> a; echo x >> web/a; rm web/mine; echo n > web/n; git add -A", "")
	if diff := cmp.Diff(worktree.TakenBack{Files: []string{"a", "mine", "n"}}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("a 644 a\nweb/a 644 a\nweb/mine 644 mine\nx\nM  a\n?? web/mine\n", seen(t, dir)); diff != "" {
		t.Error(diff)
	}
}

// TestTakeBackLeavesRepositoriesWithin: nested repositories stay as the session left them.
func TestTakeBackLeavesRepositoriesWithin(t *testing.T) {
	dir := t.TempDir()
	sh(t, dir, "git init -q -b main; git init -q lib; cd lib; echo l > l; git add .; git commit -qm lib; cd ..; git add lib 2>/dev/null; git commit -qm one")
	got := takeBack(t, dir, dir, "echo x >> lib/l; git -C lib commit -qam more; echo y > y", "")
	if diff := cmp.Diff(worktree.TakenBack{Files: []string{"y"}, Within: []string{"lib"}}, got); diff != "" {
		t.Error(diff)
	}
}
