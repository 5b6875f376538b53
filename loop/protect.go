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
// to dir; folders of git are left out.
func digestProtected(dir string, patterns []string) (map[string]string, error) {
	digests := map[string]string{}
	for _, pattern := range patterns {
		if err := digestMatches(dir, pattern, digests); err != nil {
			return nil, fmt.Errorf("protected files %q: %w", pattern, err)
		}
	}
	return digests, nil
}

func digestMatches(dir, pattern string, digests map[string]string) error {
	base, _ := doublestar.SplitPattern(pattern)
	return filepath.WalkDir(filepath.Join(dir, base), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == ".git":
			return fs.SkipDir
		case entry.IsDir():
			return nil
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		if match, err := doublestar.Match(pattern, name); err != nil || !match || digests[name] != "" {
			return err
		}
		digests[name], err = digestFile(path, entry)
		return err
	})
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
	if !entry.Type().IsRegular() {
		target, err := os.Readlink(path)
		if err != nil {
			target = entry.Type().String()
		}
		return "link " + target, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return gone(err)
	}
	_, err = io.Copy(sum, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	return fmt.Sprintf("%t %s", info.Mode()&0o111 != 0, hex.EncodeToString(sum.Sum(nil))), nil
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
