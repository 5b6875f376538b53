package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Ignored are the small files that git ignores, without those in ignored folders.
type Ignored struct {
	files []string // relative to the root
	mark  string   // digest of their state
}

// Ignored lists the small files that git ignores, for [Tree.Save].
func (t *Tree) Ignored(ctx context.Context) (i Ignored, err error) {
	if !t.native || t.git == "" {
		return i, nil
	}
	names, err := t.ignoredNames(ctx)
	return t.small(names), err
}

// IgnoredBy is [Tree.Ignored] at the time when a snapshot was taken in the scratch folder.
func (t *Tree) IgnoredBy(scratch string) (i Ignored, err error) {
	if !t.native || t.git == "" {
		return i, nil
	}
	names, err := wasIgnored(scratch)
	return t.small(names), err
}

// small keeps the small files of what git ignores.
func (t *Tree) small(names []string) (i Ignored) {
	sum := sha256.New()
	for _, name := range names {
		if strings.HasSuffix(name, "/") || len(i.files) == maxIgnoredFiles {
			continue
		}
		info, err := os.Lstat(filepath.Join(t.root, name))
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxIgnoredFile {
			continue // vanished, or not to be saved
		}
		i.files = append(i.files, name)
		fmt.Fprintf(sum, "%q %d %d\n", name, info.Size(), info.ModTime().UnixNano())
	}
	i.mark = hex.EncodeToString(sum.Sum(nil))[:16]
	return i
}

// IgnoredSince lists the ignored files and folders that were created or changed since a moment,
// relative to the root; at most that many.
func (t *Tree) IgnoredSince(ctx context.Context, since time.Time, most int) (names []string, err error) {
	out, err := t.run(ctx, nil, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
	for name := range strings.SplitSeq(string(out), "\x00") {
		info, err := os.Lstat(filepath.Join(t.root, name))
		if name != "" && len(names) < most && err == nil && info.ModTime().After(since) {
			names = append(names, name)
		}
	}
	return names, err
}

func (t *Tree) excludes(name string) bool {
	return slices.ContainsFunc(t.exclude, func(e string) bool { return name == e || strings.HasPrefix(name, e+"/") })
}

// Matching lists the untracked files that match the patterns in a file of the root, in the format
// of .gitignore; none if there is no such file.
func (t *Tree) Matching(ctx context.Context, file string) ([]string, error) {
	path := filepath.Join(t.root, file)
	if t.git == "" || !exists(path) {
		return nil, nil
	}
	out, err := t.run(ctx, nil, "ls-files", "-z", "--others", "--ignored", "--exclude-from="+path)
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), err
}

// IgnoredOf returns those of the given files of the root that git ignores.
func (t *Tree) IgnoredOf(ctx context.Context, names []string) ([]string, error) {
	if t.git == "" || len(names) == 0 {
		return nil, nil
	}
	out, err := t.runInput(ctx, nil, strings.Join(names, "\x00"), "check-ignore", "-z", "--stdin")
	var none *exitError // exit status 1: none of them
	if errors.As(err, &none) && none.ExitCode() == 1 {
		err = nil
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), err
}
