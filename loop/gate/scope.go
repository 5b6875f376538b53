package gate

import "strings"

// Within reports whether a file is one of a task's: a glob matches it, or names a folder that it is in.
func Within(globs []string, file string) bool {
	var all []string
	for _, g := range globs {
		g = strings.TrimPrefix(strings.TrimSuffix(g, "/"), "./")
		if g == "." {
			return true
		}
		all = append(all, g, g+"/**")
	}
	return Matches(all, file)
}
