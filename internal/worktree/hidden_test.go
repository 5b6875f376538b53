package worktree_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ralph/internal/worktree"
)

// TestNewIgnoreRulesHideNothing: what counts is decided by the ignore rules from before the session.
func TestNewIgnoreRulesHideNothing(t *testing.T) {
	const base = "git init -q -b main; echo a > a; mkdir web; echo w > web/w; printf 'ignored\\n*.log\\n' > .gitignore; git add .; git commit -qm base; echo mine > untracked"
	for _, tt := range []struct {
		name, before, session string
		files, hidden         string
	}{
		{"the rules are as before", "true", "echo x > ignored; mkdir logs; echo x > logs/x.log; echo y > new", "new added", ""},
		{
			"everything is ignored", "true", "echo '*' > .gitignore; echo x > ignored; echo y > new; echo y > web/new; mkdir p; echo z > p/q",
			".gitignore modified, new added, p/q added, web/new added", "new, p/, untracked, web/new",
		},
		{"by the repository's own excludes", "true", "echo new > .git/info/exclude; echo y > new", "new added", "new"},
		{"by the excludes of the user", "true", "mkdir -p $XDG_CONFIG_HOME/git; echo new > $XDG_CONFIG_HOME/git/ignore; echo y > new", "new added", "new"},
		{"by those that git is told of", "git config core.excludesFile ../own; echo new > ../own", "echo two >> ../own; echo x > new; echo y > two", "two added", "two"},
		{"by a file that ignores itself", "true", "mkdir p; echo '*' > p/.gitignore; echo y > p/q", "p/.gitignore added, p/q added", "p/"},
		{"it ignored itself before", "mkdir p; printf '*.html\\n.gitignore\\n' > p/.gitignore; echo x > p/q", "echo x > p/new.html", "", ""},
		{"by a link, which git does not follow", "ln -s web/w web/.gitignore", "echo y > web/new", "web/new added", ""},
		{
			"a person's file is changed and hidden, another one only hidden", "echo x > other", "printf 'untracked\\nother\\n' >> .gitignore; echo x >> untracked",
			".gitignore modified, untracked modified", "other, untracked",
		},
		{"what was ignored is so by its folder now", "true", "mkdir logs; echo x > logs/x.log; echo logs/ >> .gitignore", ".gitignore modified", ""},
		{"a folder becomes ignored with what is new in it", "mkdir p; echo x > p/x", "echo p/ >> .gitignore; echo y > p/y", ".gitignore modified, p/y added", "p/"},
		{
			"a large folder is named", "true", "echo deps/ >> .gitignore; mkdir -p deps/x; for i in $(seq 101); do echo x > deps/x/$i; done",
			".gitignore modified, deps/ added", "deps/",
		},
		{
			"a repository of its own is named", "true", "echo in/ >> .gitignore; git init -q in; echo x > in/x; git -C in add x; git -C in commit -qm x",
			".gitignore modified, in/ added", "in/",
		},
		{"ralph's own", "true", "echo .ralph/ >> .gitignore; mkdir .ralph; echo x > .ralph/x", ".gitignore modified", ""},
		{"an unusual name", "true", "echo '*' > .git/info/exclude; echo x > \"$(printf 'q\"\\n\\tü -n')\"", "q\"\n\tü -n added", "q\"\n\tü -n, untracked"},
		{
			"names that are no plain paths to git", "true", "echo '*' >> .git/info/exclude; for n in :x ':!y' ':(top)z' '!a' '#b' 'c ' '\\d'; do echo x > \"$n\"; done",
			"!a added, #b added, :!y added, :(top)z added, :x added, \\d added, c  added", "!a, #b, :!y, :(top)z, :x, \\d, c , untracked",
		},
		{"what was ignored has such a name", "true", "echo x > ':!y.log'", "", ""},
		{
			"by rules of the user behind a link", "mkdir -p $XDG_CONFIG_HOME/git; echo new > ../own; ln -s $PWD/../own $XDG_CONFIG_HOME/git/ignore; ln -sf $PWD/../own .git/info/exclude",
			"echo x > new", "", "",
		},
		{"by rules in other letters", "git config core.ignoreCase true; echo NEW/ > .gitignore; git commit -qam case", "mkdir new; echo x > new/x", "", ""},
		{"after a mark of its encoding", "printf '\\357\\273\\277new\\n' > .git/info/exclude; mkdir -p $XDG_CONFIG_HOME/git; echo x > $XDG_CONFIG_HOME/git/ignore", "echo x > new", "", ""},
		{"a person's folder is only hidden", "mkdir p; echo x > p/x", "echo p/ > .git/info/exclude", "", "p/"},
		{
			"a person's large folder is hidden", "mkdir p; for i in $(seq 101); do echo x > p/$i; done", "echo p/ >> .gitignore",
			".gitignore modified, p/ modified", "p/",
		},
		{
			"a person's repository is hidden", "git init -q in; echo x > in/x; git -C in add x; git -C in commit -qm x", "echo in/ >> .gitignore",
			".gitignore modified, in/ modified", "in/",
		},
		{"fewer rules", "echo x > ignored", "echo '*.log' > .gitignore; echo y > new", ".gitignore modified, new added", ""},
		{
			"no rules", "mkdir logs; echo x > ignored; echo x > 'a b.log'; echo x > logs/x.log", "rm .gitignore; echo y > logs/new; git add ignored",
			".gitignore deleted, ignored added, logs/new added", "",
		},
		{"an ignored folder is ignored in part", "echo p/ > .git/info/exclude; mkdir p; echo x > p/x; echo x > p/y", "echo p/y > .git/info/exclude", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("XDG_CONFIG_HOME", home)
			dir := filepath.Join(t.TempDir(), "project")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			sh(t, dir, base+"; "+tt.before)
			files, hidden := hiddenBy(t, dir, tt.session)
			if d := cmp.Diff(tt.files, files) + cmp.Diff(tt.hidden, hidden); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestIgnoreRulesWithoutAHome: a service may have none.
func TestIgnoreRulesWithoutAHome(t *testing.T) {
	dir := t.TempDir()
	sh(t, dir, "git init -q -b main; echo a > a; echo '*.log' > .gitignore; git add .; git commit -qm base")
	t.Setenv("HOME", "")
	t.Setenv("XDG_CONFIG_HOME", "")
	if files, hidden := hiddenBy(t, dir, "echo x > x.log; echo y > new"); files != "new added" || hidden != "" {
		t.Errorf("files %q, hidden %q", files, hidden)
	}
}

// TestRulesAboveAPackage: a project below the top obeys the ignore files above it, too.
func TestRulesAboveAPackage(t *testing.T) {
	top := t.TempDir()
	sh(t, top, "git init -q -b main; mkdir -p p/web; echo w > p/web/w; git add .; git commit -qm base; echo '*.log' > .gitignore; echo .gitignore >> .gitignore")
	files, hidden := hiddenBy(t, filepath.Join(top, "p", "web"), "echo x > x.log; echo y > new; echo new > ../.gitignore")
	if d := cmp.Diff("new added", files) + cmp.Diff("new", hidden); d != "" {
		t.Error(d)
	}
	sh(t, top, "rm p/.gitignore p/web/new; git rm -q --cached p/web/w")
	files, hidden = hiddenBy(t, filepath.Join(top, "p", "web"), "echo '*' > .gitignore; echo y > new; echo z > w")
	if d := cmp.Diff("new added, w modified", files) + cmp.Diff("new, w", hidden); d != "" {
		t.Error(d)
	}
}

// hiddenBy returns the files that a session changed, and what it hid.
func hiddenBy(t *testing.T, dir, session string) (files, hidden string) {
	t.Helper()
	tree, err := worktree.Open(t.Context(), dir, ".ralph")
	if err != nil {
		t.Fatal(err)
	}
	scratch := t.TempDir()
	before, err := tree.Snapshot(t.Context(), scratch)
	if err != nil {
		t.Fatal(err)
	}
	sh(t, dir, session)
	after, err := tree.Look(t.Context(), scratch)
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := tree.Changes(t.Context(), before, after, scratch)
	if err != nil {
		t.Fatal(err)
	}
	var changed []string
	for _, f := range list {
		changed = append(changed, f.Path+" "+f.Status)
	}
	if (len(list) > 0) != (before.Digest() != after.Digest()) {
		t.Errorf("the digest says otherwise than the list of %d changes", len(list))
	}
	standing, err := tree.Standing(t.Context(), before, after, scratch, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(standing.Emptied) > 0 {
		t.Errorf("emptied: %q", standing.Emptied)
	}
	return strings.Join(changed, ", "), strings.Join(standing.Hidden, ", ")
}
