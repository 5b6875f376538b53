package order

import (
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Meet reports whether a file may match both lists of globs.
func Meet(a, b []string) bool {
	return slices.ContainsFunc(a, func(p string) bool {
		return slices.ContainsFunc(b, func(q string) bool {
			if doublestar.MatchUnvalidated(p, q) || doublestar.MatchUnvalidated(q, p) {
				return true
			}
			x, _ := doublestar.SplitPattern(p)
			y, _ := doublestar.SplitPattern(q)
			return isPattern(p) && isPattern(q) && (within(x, y) || within(y, x))
		})
	})
}

func isPattern(p string) bool { return strings.ContainsAny(p, "*?[{") }

func within(dir, of string) bool {
	return of == "." || dir == of || strings.HasPrefix(dir, path.Clean(of)+"/")
}

// matches reports whether a file is among globs.
func matches(globs []string, file string) bool {
	return slices.ContainsFunc(globs, func(g string) bool { return doublestar.MatchUnvalidated(g, file) })
}
