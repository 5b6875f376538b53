package gate

import (
	"slices"

	"ralph"
)

// Unseen reports whether merged changes of sessions wrote all of the files that a change alters, and no person has
// seen their present state. Each element of merged has the gate files of one such change; approved is the list that
// people were shown.
//
// A change that also alters gate files of others does not count: it may have moved their tests.
func Unseen(files []ralph.Blob, merged [][]ralph.Blob, approved []ralph.Approval) bool {
	type content struct{ path, id string }
	own := map[content]bool{}
	others := func(b ralph.Blob) bool { return b.From != "" && !own[content{b.Path, b.From}] }
	for known := -1; known != len(own); { // in any order of merging
		known = len(own)
		for _, c := range merged {
			if !slices.ContainsFunc(c, others) {
				for _, b := range c {
					own[content{b.Path, b.To}] = true
				}
			}
		}
	}
	for _, r := range approved {
		for _, b := range r.Files {
			delete(own, content{b.Path, b.To})
		}
	}
	return !slices.ContainsFunc(files, others)
}
