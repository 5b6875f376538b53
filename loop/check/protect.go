package check

import (
	"maps"
	"slices"
	"strings"

	"ralph/loop/place"
	"ralph/store"
)

// protected returns the records of the files that are protected now; the configuration
// may have protected others before. Elsewhere has the records of other places.
func (v *Verifier) protected(
	tx *store.Tx,
) (known map[string]store.ProtectedFile, elsewhere []store.ProtectedFile, err error) {
	known, elsewhere, err = tx.ProtectedFiles(v.Place.Dir)
	maps.DeleteFunc(known, func(path string, _ store.ProtectedFile) bool {
		return !place.Matches(v.Protect, path)
	})
	return known, elsewhere, err
}

// putProtected stores records of files in this place.
func (v *Verifier) putProtected(tx *store.Tx, files []store.ProtectedFile) error {
	for i := range files {
		files[i].Place = v.Place.Dir
	}
	return tx.PutProtectedFiles(files)
}

// isHidden reports whether a file, or a folder above it, could not be read.
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

// assumed returns the digests, with the last known digest of each known
// file that could not be read: an unreadable file is not a missing one.
func assumed(known map[string]store.ProtectedFile, digests, unseen map[string]string) map[string]string {
	all := maps.Clone(digests)
	for path, p := range known {
		if p.Seen != "" && isHidden(path, unseen) {
			all[path] = p.Seen
		}
	}
	return all
}

// hiding lists the unreadable places that make it unknown whether protected files were
// changed: those that hide a known file, and those that could be read when the session began.
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

// welcome returns the new records of protected files when a session begins. A file
// that differs from what the last session left was changed by people, and so is
// approved. So is a new file, unless a session left the same content in another place.
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

// farewell returns the new records when a session has ended.
func farewell(known map[string]store.ProtectedFile, now map[string]string) []store.ProtectedFile {
	var list []store.ProtectedFile
	for _, path := range paths(known, now) {
		if p := known[path]; p.Seen != now[path] {
			list = append(list, store.ProtectedFile{Path: path, Approved: p.Approved, Seen: now[path]})
		}
	}
	return list
}

// tampered lists the files that differ both from what people approved and from
// what the session found: it is not blamed for an earlier session's changes.
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
