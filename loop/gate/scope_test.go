package gate_test

import (
	"testing"

	"ralph/loop/gate"
)

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		globs []string
		file  string
		want  bool
	}{
		{[]string{"src/**"}, "src/a/b.go", true},
		{[]string{"src/**"}, "other/a.go", false},
		{[]string{"src/**"}, "src2/a.go", false},
		{[]string{"src"}, "src/a.go", true},
		{[]string{"./src/"}, "src/a.go", true},
		{[]string{"."}, "a.go", true},
		{[]string{"a.go", "b/*.go"}, "b/c.go", true},
		{[]string{"a.go", "b/*.go"}, "b/c/d.go", false},
		{[]string{"**/*.md"}, "docs/a.md", true},
		{[]string{"src/**", "!src/gen/**"}, "src/gen/a.go", false},
	} {
		if got := gate.Within(c.globs, c.file); got != c.want {
			t.Errorf("%q in %q: %t", c.file, c.globs, got)
		}
	}
}
