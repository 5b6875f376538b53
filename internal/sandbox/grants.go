package sandbox

import (
	"path/filepath"
	"slices"
)

// A grant is the access that Landlock allows to a path and everything below it. Landlock cannot
// revoke part of it.
type grant struct {
	path   string
	access Access
}

// grants converts a policy. A readable folder that contains something hidden is granted entry by
// entry: entries created in it later cannot be read. list returns a folder's entries.
func grants(p Policy, list func(dir string) []string) (result []grant) {
	var visit func(path string, a Access)
	visit = func(path string, a Access) {
		if own, ok := p.Paths[path]; ok {
			a = own
		}
		below := p.below(path)
		hides := slices.ContainsFunc(below, func(b string) bool { return p.Paths[b] == Hidden })
		if a == Writable || a != Hidden && !hides {
			result = append(result, grant{path, a})
			for _, b := range below {
				if a != Writable && p.Paths[b] == Writable {
					result = append(result, grant{b, Writable})
				}
			}
			return
		}
		if a == Hidden {
			// Only paths of the policy can be reached in it.
			for _, b := range below {
				if _, by := p.of(filepath.Dir(b)); by == path {
					visit(b, Hidden)
				}
			}
			return
		}
		for _, entry := range list(path) {
			visit(entry, a)
		}
	}
	visit("/", Hidden)
	return result
}
