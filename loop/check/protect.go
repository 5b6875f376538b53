package check

import (
	"maps"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"ralph/store"
)

// protected are what is known of the files that are protected now; the
// configuration may have protected others once. What sessions left in other places is
// elsewhere.
func (v *Verifier) protected(
	tx *store.Tx,
) (known map[string]store.ProtectedFile, elsewhere []store.ProtectedFile, err error) {
	known, elsewhere, err = tx.ProtectedFiles(v.Place.Dir)
	maps.DeleteFunc(known, func(path string, _ store.ProtectedFile) bool {
		matches := func(pattern string) bool { return doublestar.MatchUnvalidated(pattern, path) }
		return !slices.ContainsFunc(v.Protect, matches)
	})
	return known, elsewhere, err
}

// keepProtected writes what is known of files of the place.
func (v *Verifier) keepProtected(tx *store.Tx, files []store.ProtectedFile) error {
	for i := range files {
		files[i].Place = v.Place.Dir
	}
	return tx.KeepProtectedFiles(files)
}

// isHidden reports whether a file is one that could not be seen, or in a folder that
// could not.
func isHidden(path string, unseen map[string]string) bool {
	for {
		if _, ok := unseen[path]; ok {
			return true
		}
		i := strings.LastIndexByte(path, '/')
		if i < 0 {
			_, all := unseen["."]
			return all
		}
		path = path[:i]
	}
}

// assumed are the digests, and for the known files that could not be seen what was
// seen of them last: that they cannot be read does not mean that they are gone.
func assumed(known map[string]store.ProtectedFile, digests, unseen map[string]string) map[string]string {
	all := maps.Clone(digests)
	for path, p := range known {
		if p.Seen != "" && isHidden(path, unseen) {
			all[path] = p.Seen
		}
	}
	return all
}

// hiding says which of the places that could not be seen keep it from being told
// whether protected files were changed: those that hide a known one, and those that
// could be read when the session began.
func hiding(known map[string]store.ProtectedFile, unseen map[string]string, before []string) []string {
	var list []string
	for _, place := range slices.Sorted(maps.Keys(unseen)) {
		hides := !slices.Contains(before, place)
		for path, p := range known {
			hides = hides || p.Approved != "" && isHidden(path, map[string]string{place: ""})
		}
		if hides {
			list = append(list, place+" ("+unseen[place]+")")
		}
	}
	return list
}

// welcome is what is known of protected files when a session begins: what is not
// as the last session left it was changed by people, and so approved. What is seen for the
// first time is people's, unless a session has left just that in another place.
func welcome(
	known map[string]store.ProtectedFile, elsewhere []store.ProtectedFile, now map[string]string,
) (list []store.ProtectedFile) {
	for _, path := range paths(known, now) {
		p, ok := known[path]
		if ok && p.Seen == now[path] {
			continue
		}
		p = store.ProtectedFile{Path: path, Approved: now[path], Seen: now[path]}
		for _, e := range elsewhere {
			if !ok && e.Path == path && e.Seen == p.Seen {
				p.Approved = e.Approved
			}
		}
		list = append(list, p)
	}
	return list
}

// farewell is what is known of them when a session has ended.
func farewell(known map[string]store.ProtectedFile, now map[string]string) []store.ProtectedFile {
	var list []store.ProtectedFile
	for _, path := range paths(known, now) {
		if p := known[path]; p.Seen != now[path] {
			list = append(list, store.ProtectedFile{Path: path, Approved: p.Approved, Seen: now[path]})
		}
	}
	return list
}

// tampered lists the files that are neither as people left them nor as the session
// found them: what an earlier one left is not this one's doing.
func tampered(known map[string]store.ProtectedFile, now map[string]string) []string {
	var list []string
	for _, path := range paths(known, now) {
		if p := known[path]; p.Approved != now[path] && p.Seen != now[path] {
			list = append(list, path)
		}
	}
	return list
}

func paths(known map[string]store.ProtectedFile, now map[string]string) []string {
	all := maps.Clone(now)
	for path := range known {
		all[path] = ""
	}
	return slices.Sorted(maps.Keys(all))
}
