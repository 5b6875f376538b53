package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// IgnoredSince lists at most most ignored files and folders that were created or changed since a time, relative to the
// root.
func (t *Tree) IgnoredSince(ctx context.Context, since time.Time, most int) (names []string, err error) {
	all, err := t.ignored(ctx, t.root)
	for _, name := range all {
		info, err := os.Lstat(filepath.Join(t.root, name))
		if len(names) < most && err == nil && info.ModTime().After(since) {
			names = append(names, name)
		}
	}
	return names, err
}

// Ignored lists the paths of the whole work tree that git ignores. An ignored folder stands for its
// content.
func (t *Tree) Ignored(ctx context.Context) ([]string, error) {
	names, err := t.ignored(ctx, t.Top())
	for i, name := range names {
		names[i] = filepath.Join(t.Top(), name)
	}
	return names, err
}

// ignored lists the paths that git ignores in a folder, relative to it.
func (t *Tree) ignored(ctx context.Context, in string) ([]string, error) {
	out, err := t.run(ctx, nil, "-C", in, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), err
}

func (t *Tree) excludes(name string) bool {
	return slices.ContainsFunc(t.exclude, func(e string) bool { return name == e || strings.HasPrefix(name, e+"/") })
}

// Matching lists the untracked files that match the patterns in a file of the root, in the format
// of .gitignore; none if there is no such file.
func (t *Tree) Matching(ctx context.Context, file string) ([]string, error) {
	path := filepath.Join(t.root, file)
	if !exists(path) {
		return nil, nil
	}
	out, err := t.run(ctx, nil, "ls-files", "-z", "--others", "--ignored", "--exclude-from="+path)
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), err
}

// IgnoredOf returns the given files of the root that git ignores.
func (t *Tree) IgnoredOf(ctx context.Context, names []string) ([]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	out, err := t.runInput(ctx, nil, strings.Join(names, "\x00"), "check-ignore", "-z", "--stdin")
	var none *exitError // exit status 1: git ignores none of them
	if errors.As(err, &none) && none.ExitCode() == 1 {
		err = nil
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), err
}
