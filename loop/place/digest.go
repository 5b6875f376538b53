package place

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"

	"ralph/internal/worktree"
)

// Digests takes a digest of every file below dir that one of the patterns
// matches, whether git knows it or not. Patterns are globs of doublestar, relative
// to dir; folders of git are left out. What cannot be read is unseen, with the
// reason: a file, or a folder in which there may be some.
func Digests(dir string, patterns []string) (digests, unseen map[string]string) {
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

// Digest is a digest of a file, "" if it is not there. Of a link both where it leads and
// what is there count; of git's own files what it is steered by ([worktree.Settings]).
func Digest(path string) (string, error) {
	if worktree.IsSettings(path) {
		return worktree.SettingsDigest(path)
	}
	info, err := os.Lstat(path)
	if errors.Is(err, syscall.ENOTDIR) {
		return "", nil // a part of the path is a file, so that nothing is below it
	}
	if err != nil {
		return gone(err)
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

// LinkTarget is where a link leads of which this is the digest; ok is false for the
// digest of anything else.
func LinkTarget(digest string) (target string, ok bool) {
	target, ok = strings.CutPrefix(digest, "link ")
	target, _, _ = strings.Cut(target, "\x00")
	return target, ok
}

// Files is one digest of the contents of the watched files; one that is not there counts
// as such, and one that cannot be read counts with the reason.
func (p *Place) Files() string {
	sum := sha256.New()
	for _, name := range p.Watched {
		err := addFile(sum, filepath.Join(p.Dir, name), name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(sum, "%q cannot be read: %s\n", name, reason(err))
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// addFile adds a file's name and content. It does not wait for the other end of a
// pipe that stands in the file's place.
func addFile(sum io.Writer, path, name string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is no file")
	}
	fmt.Fprintf(sum, "%q\n", name)
	_, err = io.Copy(sum, f)
	return err
}

// reason is what an error says without the path, which the caller names.
func reason(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err.Error()
	}
	return err.Error()
}
