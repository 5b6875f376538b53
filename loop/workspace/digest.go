package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"

	"ralph/internal/files"
	"ralph/internal/lazy"
)

// Digests returns a digest of every file below dir that matches one of the patterns, whether git
// tracks it or not. Patterns are doublestar globs relative to dir. Folders named .git, and matches
// of but, are left out. Files and folders that cannot be read are in unseen, with the reason.
func Digests(dir string, patterns []string, but ...string) (digests, unseen map[string]string) {
	digests, unseen = map[string]string{}, map[string]string{}
	from := map[string][]string{} // walk each folder once
	for _, pattern := range patterns {
		base, _ := doublestar.SplitPattern(pattern)
		from[base] = append(from[base], pattern)
	}
	for base, patterns := range from {
		digestMatches(dir, base, patterns, but, digests, unseen)
	}
	return digests, unseen
}

// Limits for following imports in texts.
const (
	maxImports = 5 // length of a chain
	maxText    = 1 << 20
)

// imported matches a reference to another file in a text that steers agents.
var imported = lazy.Regexp("(?:^|[\\s(`*])@([^\\s)`*]+)")

// Imports returns the names of the files that texts import, such as "@docs/rules.md", directly or indirectly. It
// includes files that do not exist. read returns a file's content.
func Imports(texts []string, read func(name string) ([]byte, error)) (names []string) {
	known := map[string]bool{}
	for range maxImports {
		var next []string
		for _, text := range texts {
			if !strings.EqualFold(filepath.Ext(text), ".md") {
				continue
			}
			content, err := read(text)
			if err != nil {
				continue // no agent can read it either
			}
			content = content[:min(len(content), maxText)]
			for _, match := range imported().FindAllSubmatch(content, -1) {
				name := strings.TrimRight(string(match[1]), ".,;:")
				name = path.Join(path.Dir(text), name)
				if filepath.IsLocal(name) && name != "." && !known[name] {
					known[name] = true
					next = append(next, name)
				}
			}
		}
		texts, names = next, append(names, next...)
	}
	return names
}

// Matches reports whether one of the patterns matches a path.
func Matches(patterns []string, name string) bool {
	return matcher(patterns)(name)
}

// MatchesFolded is [Matches] without regard to case: many file systems take ".Claude" for ".claude".
func MatchesFolded(patterns []string, name string) bool {
	lower := make([]string, len(patterns))
	for i, p := range patterns {
		lower[i] = strings.ToLower(p)
	}
	return Matches(lower, strings.ToLower(name))
}

// matcher is like [Matches], for many paths. It first searches each path
// for a literal part of the pattern, which is much faster.
func matcher(patterns []string) func(name string) bool {
	literals := make([]string, len(patterns))
	for i, p := range patterns {
		literals[i] = literal(p)
	}
	return func(name string) bool {
		for i, p := range patterns {
			if strings.Contains(name, literals[i]) && doublestar.MatchUnvalidated(p, name) {
				return true
			}
		}
		return false
	}
}

// literal returns the longest literal part of a pattern; "" if that is hard to find.
func literal(pattern string) (longest string) {
	if strings.ContainsAny(pattern, `{[\`) {
		return ""
	}
	for part := range strings.FieldsFuncSeq(pattern, func(r rune) bool { return r == '*' || r == '?' }) {
		if part = strings.Trim(part, "/"); len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}

func digestMatches(dir, base string, patterns, but []string, digests, unseen map[string]string) {
	wanted, unwanted := matcher(patterns), matcher(but)
	walk := func(path string, entry fs.DirEntry, err error) error {
		name := below(dir, path)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
			return nil // no file has such a path
		case err != nil:
			unseen[name] = reason(err)
			return nil
		case entry.IsDir() && (entry.Name() == ".git" || unwanted(name)):
			return fs.SkipDir
		case unwanted(name):
			return nil
		case entry.IsDir() || digests[name] != "" || !wanted(name):
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
			root += "/." // take the files of the folder that the link leads to
		}
	}
	// walk receives every error and returns none.
	_ = filepath.WalkDir(root, walk)
}

// below returns a slash-separated path relative to dir.
func below(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil {
		path = rel
	}
	return filepath.ToSlash(path)
}

// Digest returns a digest of a file, "" if it does not exist. The digest
// of a link covers its target and the content there.
func Digest(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return gone(err)
	}
	return digestFile(path, fs.FileInfoToDirEntry(info))
}

// digestFile returns a digest of a file's content and its executable bit.
func digestFile(path string, entry fs.DirEntry) (string, error) {
	sum := sha256.New()
	info, err := entry.Info()
	if err != nil {
		return gone(err)
	}
	link := ""
	if !entry.Type().IsRegular() {
		target, _ := os.Readlink(path) // "" if it is not a link
		link = entry.Type().String() + " " + target
		// The content that a link leads to counts too, wherever it is.
		if info, err = os.Stat(path); err != nil || !info.Mode().IsRegular() {
			return link, nil
		}
		link += "\x00" // no path contains this
	}
	f, err := files.Open(path)
	if err != nil {
		return gone(err)
	}
	_, err = io.Copy(sum, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s%t %s", link, info.Mode()&0o111 != 0, hex.EncodeToString(sum.Sum(nil))), nil
}

// gone treats a file that has just vanished, or whose folder is a file, like one that does not exist.
func gone(err error) (string, error) {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return "", nil
	}
	return "", err
}

// Files returns one digest for the contents of all watched files. A
// missing file counts as missing, an unreadable one with the reason.
func (w *Workspace) Files() string {
	sum := sha256.New()
	for _, name := range w.Watched {
		err := addFile(sum, filepath.Join(w.Dir, name), name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(sum, "%q cannot be read: %s\n", name, reason(err))
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// addFile adds a file's name and content to sum.
func addFile(sum io.Writer, path, name string) error {
	f, err := files.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	fmt.Fprintf(sum, "%q\n", name)
	_, err = io.Copy(sum, f)
	return err
}

// reason returns an error's text without the path, which the caller names.
func reason(err error) string {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err.Error()
	}
	return err.Error()
}
