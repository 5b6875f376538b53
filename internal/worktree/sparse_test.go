package worktree

import "testing"

// TestCone: the patterns equal those of `git sparse-checkout set`.
func TestCone(t *testing.T) {
	for _, c := range []struct {
		folders []string
		want    string
	}{
		{nil, ""},
		{[]string{"a"}, "/*\n!/*/\n/a/\n"},
		{[]string{"a/b", "c/"}, "/*\n!/*/\n/a/\n!/a/*/\n/a/b/\n/c/\n"},
		{[]string{"a/b", "a"}, "/*\n!/*/\n/a/\n"},
		{[]string{"a/b/c", "a/b"}, "/*\n!/*/\n/a/\n!/a/*/\n/a/b/\n"},
		{[]string{"a*[b]"}, "/*\n!/*/\n/a\\*\\[b]/\n"},
	} {
		if got := cone(c.folders); got != c.want {
			t.Errorf("%q: %q, want %q", c.folders, got, c.want)
		}
	}
}
