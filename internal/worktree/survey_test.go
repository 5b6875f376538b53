package worktree

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ralph"
)

// TestOverweightClones: the fewest names are left out, and the rest is taken.
func TestOverweightClones(t *testing.T) {
	many := func(dir string, n int) (files []weight) {
		for i := range n {
			files = append(files, weight{fmt.Sprintf("%sf%d", dir, i), 1})
		}
		return files
	}
	for name, tt := range map[string]struct {
		files [][]weight
		want  []string
	}{
		"nothing":                {nil, nil},
		"as much as may be":      {[][]weight{many("", maxFiles-1), {{"a", maxBytes - maxFiles}}}, nil},
		"one large file":         {[][]weight{{{"a", 1}, {"b/c", maxBytes + 1}}}, []string{"b/c"}},
		"the largest of some":    {[][]weight{{{"a", maxBytes / 2}, {"b", maxBytes/2 + 1}, {"c", maxBytes / 2}}}, []string{"b"}},
		"many in a folder":       {[][]weight{many("a/b/c/", maxFiles), many("a/", 9)}, []string{"a/b/c"}},
		"many in two":            {[][]weight{many("a/b/", maxFiles), many("a/c/", maxFiles), many("d/", 9)}, []string{"a"}},
		"many at the top":        {[][]weight{many("", maxFiles+1)}, []string{"."}},
		"many, and one is large": {[][]weight{many("a/", maxFiles), {{"b", maxBytes + 1}}}, []string{"a", "b"}},
	} {
		var files []weight
		for _, some := range tt.files {
			files = append(files, some...)
		}
		var got []string
		for _, u := range overweight(files) {
			got = append(got, u.Path)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// TestRefusedPaths: paths that git ignores do not count.
func TestRefusedPaths(t *testing.T) {
	s := survey{
		odd: []ralph.Untaken{{Path: "pipe"}, {Path: "x/pipe"}}, deep: []string{"d", "x/d"}, ended: ralph.Untaken{Path: "."},
	}
	for _, tt := range []struct {
		ignored map[string]bool
		want    string
	}{
		{nil, "pipe x/pipe d x/d . "},
		{map[string]bool{"x/pipe": true, "x/d": true}, "pipe d . "},
	} {
		got := ""
		for _, u := range s.refused(tt.ignored) {
			got += u.Path + " "
		}
		if got != tt.want {
			t.Errorf("with %v ignored got %q, want %q", tt.ignored, got, tt.want)
		}
	}
}
