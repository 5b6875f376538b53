package loop

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"

	"ralph/store"
)

// protectedFiles are what is known of the files that are protected now; the
// configuration may have protected others once.
func (l *Loop) protectedFiles(tx *store.Tx) (map[string]store.ProtectedFile, error) {
	known, err := tx.ProtectedFiles()
	maps.DeleteFunc(known, func(path string, _ store.ProtectedFile) bool {
		return !slices.ContainsFunc(l.Verification.Protect, func(pattern string) bool { return doublestar.MatchUnvalidated(pattern, path) })
	})
	return known, err
}

// digestProtected takes a digest of every file below dir that one of the patterns
// matches, whether git knows it or not. Patterns are globs of doublestar, relative
// to dir; folders of git are left out. What cannot be read is unseen, with the
// reason: a file, or a folder in which there may be some.
func digestProtected(dir string, patterns []string) (digests, unseen map[string]string) {
	digests, unseen = map[string]string{}, map[string]string{}
	for _, pattern := range patterns {
		digestMatches(dir, pattern, digests, unseen)
	}
	return digests, unseen
}

func digestMatches(dir, pattern string, digests, unseen map[string]string) {
	base, _ := doublestar.SplitPattern(pattern)
	walk := func(path string, entry fs.DirEntry, err error) error {
		name := below(dir, path)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			return nil
		case err != nil:
			unseen[name] = reason(err)
			return nil
		case entry.IsDir() && entry.Name() == ".git":
			return fs.SkipDir
		case entry.IsDir() || !doublestar.MatchUnvalidated(pattern, name) || digests[name] != "":
			return nil
		}
		if digests[name], err = digestFile(path, entry); err != nil {
			delete(digests, name)
			unseen[name] = reason(err)
		}
		return nil
	}
	root := filepath.Join(dir, base)
	if info, err := os.Lstat(root); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if target, err := os.Stat(root); err == nil && target.IsDir() {
			root += "/." // the files are those of the folder that it leads to
		}
	}
	// Every error is given to walk, which returns none.
	_ = filepath.WalkDir(root, walk)
}

// below is a path as people write it, relative to the project.
func below(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil {
		path = rel
	}
	return filepath.ToSlash(path)
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

// digestOne is the digest of a file, "" if it is not there.
func digestOne(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		if isNotDir(err) {
			return "", nil
		}
		return gone(err)
	}
	if info.IsDir() {
		return "", nil // a file that is there no more
	}
	return digestFile(path, fs.FileInfoToDirEntry(info))
}

// digestFile is a digest of a file's content and of whether it may be executed.
func digestFile(path string, entry fs.DirEntry) (string, error) {
	sum := sha256.New()
	info, err := entry.Info()
	if err != nil {
		return gone(err)
	}
	link := ""
	if !entry.Type().IsRegular() {
		target, err := os.Readlink(path)
		if err != nil {
			return "link " + entry.Type().String(), nil
		}
		link = "link " + target
		// What is read through it counts too, whatever folder it is in.
		if info, err = os.Stat(path); err != nil || !info.Mode().IsRegular() {
			return link, nil
		}
		link += "\x00" // which no path has
	}
	f, err := os.Open(path)
	if err != nil {
		return gone(err)
	}
	_, err = io.Copy(sum, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s%t %s", link, info.Mode()&0o111 != 0, hex.EncodeToString(sum.Sum(nil))), nil
}

// gone takes a file that vanished while it was looked at for one that is not there.
func gone(err error) (string, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return "", err
}

// welcome is what is known of protected files when a session begins: what is not
// as the last session left it was changed by people, and so approved.
func welcome(known map[string]store.ProtectedFile, now map[string]string) []store.ProtectedFile {
	var list []store.ProtectedFile
	for _, path := range paths(known, now) {
		p, ok := known[path]
		if !ok || p.Seen != now[path] {
			list = append(list, store.ProtectedFile{Path: path, Approved: now[path], Seen: now[path]})
		}
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
