package worktree_test

import (
	"testing"

	"ralph/internal/worktree"
)

func TestLinksThatLeadOutOfTheRepository(t *testing.T) {
	for _, c := range []struct {
		name, target string
		want         bool // it leads out
	}{
		{"a", "b", false},
		{"a/b", "../c", false},
		{"a/b/c", "../../d/./e", false},
		{"a", ".", false},
		{"a/b", "..", false},
		{"a", "..b/c", false},
		{"a", ".gitignore", false},
		{"a", "/etc/passwd", true},
		{"a", "//etc", true},
		{"a", "..", true},
		{"a/b", "../../c", true},
		{"a/b", ".././../c", true},
		{"a", "./../c", true},
		{"a", "d/../../c", true},
		{"x", "deep/d/../y", true}, // deep/d may be a link to the top
		{"a", ".git/config", true},
		{"a/b", "../.GIT/config", true},
	} {
		if got := worktree.Leaves(c.name, c.target); got != "" != c.want {
			t.Errorf("%s -> %s: %q", c.name, c.target, got)
		}
	}
}

func TestOnlyNewLinksAreLookedAt(t *testing.T) {
	dir := t.TempDir()
	sh(t, dir, `git init -q -b main && ln -s /etc/old old && ln -s /etc/other changed && touch f && git add -A && git commit -qm 1
		ln -s f good && ln -sfn /etc/passwd changed && mkdir d && ln -s ../../out d/up && ln -s "/a
b" odd && git add -A && git commit -qm 2`)
	tree, err := worktree.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	list, err := tree.Leading(t.Context(), "HEAD^", "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	var got string
	for _, u := range list {
		got += u.Path + " "
	}
	if got != "changed d/up odd " {
		t.Errorf("got %q: %+v", got, list)
	}
}
