package worktree

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"ralph/internal/patch"
)

// shows are the options that make git show every difference, overriding the project's settings for
// a file.
var shows = []string{
	"-c", "core.attributesFile=/dev/null", "-c", "diff.suppressBlankEmpty=false", "-c", "diff.orderFile=/dev/null",
	"diff-tree", "-r", "--text", "--no-ext-diff", "--no-textconv", "--no-color", "--no-relative",
	"--submodule=short", "--src-prefix=a/", "--dst-prefix=b/",
}

// Patch returns the difference between two commits as git prints it, for the files with the given paths, relative to
// the top; none means all. No file counts as binary, and the project's attributes have no effect: without a work tree
// and an index git finds none. Options are those of git diff-tree; without options it prints lines, and finds renames.
func (t *Tree) Patch(ctx context.Context, from, to string, paths []string, options ...string) (string, error) {
	if len(options) == 0 {
		options = []string{"--unified=3", "--find-renames"}
	}
	args := append(append([]string{}, shows...), options...)
	args = append(append(args, from, to, "--"), paths...)
	out, err := t.run(ctx, append(t.unattributed(), "GIT_LITERAL_PATHSPECS=1"), args...)
	return string(out), err
}

// unattributed returns an environment in which git finds no attributes of the project.
func (t *Tree) unattributed() []string {
	objects := filepath.Join(t.common, "objects")
	return []string{"GIT_ATTR_NOSYSTEM=1", "GIT_WORK_TREE=" + objects, "GIT_INDEX_FILE=" + filepath.Join(objects, "none")}
}

// Shown returns the difference of two commits for a person's decision. The files with the paths of whole come first,
// with all of their lines, even if they were renamed; binary files are shown in part. only are the paths of all
// files that are shown; none means all.
func (t *Tree) Shown(ctx context.Context, from, to string, only, whole []string) (first, rest string, err error) {
	is := map[string]bool{}
	for _, path := range whole {
		is[path] = true
	}
	if len(whole) > 0 {
		if first, err = t.Patch(ctx, from, to, whole, "--unified=3", "--no-renames"); err != nil {
			return "", "", err
		}
	}
	var options []string
	if len(whole) > 0 { // a file that was renamed to one of them appears as removed, instead of being hidden
		options = []string{"--unified=3", "--no-renames"}
	}
	all, err := t.Patch(ctx, from, to, only, options...)
	if err != nil {
		return "", "", err
	}
	var b strings.Builder
	for _, f := range patch.Split(all) {
		if !is[f.Path] {
			b.WriteString(f.String())
		}
	}
	first = patch.Prepare(first, func(string) bool { return true })
	return first, patch.Prepare(b.String(), func(string) bool { return false }), nil
}

// Begin returns the commit to compare work that ends at head with: base, or the newest commit of the targets that the
// work has merged since. If a target contains the work, it is base.
func (t *Tree) Begin(ctx context.Context, base, head string, targets ...string) (string, error) {
	args := []string{"merge-base", head, base}
	for _, target := range targets {
		commit, err := t.Ref(ctx, target)
		if err != nil {
			return "", err
		}
		if commit == "" {
			continue
		}
		within, err := t.Ancestor(ctx, head, commit)
		if err != nil || within {
			return base, err
		}
		args = append(args, commit)
	}
	out, err := t.run(ctx, nil, args...)
	var exit *exitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 { // the histories have no common commit
		return base, nil
	}
	return strings.TrimSpace(string(out)), err
}

// Symlinks returns the symbolic links of the whole repository in a commit, with their targets.
func (t *Tree) Symlinks(ctx context.Context, commit string) (links map[string]string, err error) {
	out, err := t.run(ctx, nil, "ls-tree", "--full-tree", "-r", "-z", commit)
	links = map[string]string{}
	for entry := range strings.SplitSeq(string(out), "\x00") {
		meta, name, _ := strings.Cut(entry, "\t")
		fields := strings.Fields(meta)
		if len(fields) != 3 || fields[0] != "120000" || err != nil {
			continue
		}
		var target []byte
		target, err = t.run(ctx, nil, "cat-file", "blob", fields[2])
		links[name] = string(target)
	}
	return links, err
}
