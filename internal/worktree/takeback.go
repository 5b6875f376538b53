package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// TakenBack is the result of reverting a session's changes; paths are relative to the root.
type TakenBack struct {
	Files  []string // restored
	Left   []string // changed since the session, and left as they are
	Within []string // nested repositories, which are not restored
}

// A treeEntry is an entry of a tree.
type treeEntry struct{ mode, id, path string }

// TakeBack restores the files that differ between two snapshots, unless they have changed since the
// second one. Commits stay; a file that was committed is restored to its committed content. Files
// for which spare is true are left alone, and so are those for which others is true, because
// somebody else may have changed them. Restored files that were uncommitted before are removed from
// the index.
func (t *Tree) TakeBack(
	ctx context.Context, before, left Snapshot, scratch string, spare, others func(path string) bool,
) (r TakenBack, err error) {
	if t.git == "" || before.Content == "" {
		return r, errors.New("the earlier state is not known without git")
	}
	if !t.native {
		return r, errNoGit
	}
	now, err := t.Look(ctx, scratch)
	if err != nil {
		return r, err
	}
	var was, is string // what is committed
	if was, err = t.Committed(ctx, before.Head); err == nil {
		is, err = t.Committed(ctx, now.Head)
	}
	if err != nil {
		return r, err
	}
	var lists [5][]treeEntry // each holds the first tree's entries that differ in the second
	for i, pair := range [][2]string{
		{before.Content, left.Content}, {left.Content, now.Content}, {was, is}, {is, left.Content}, {was, before.Content},
	} {
		if lists[i], err = t.differing(ctx, scratch, pair[0], pair[1]); err != nil {
			return r, err
		}
	}
	changes, since, commits, uncommitted, theirs := lists[0], lists[1], lists[2], lists[3], lists[4]
	var back []treeEntry
	for _, e := range changes {
		if at(commits, e.path) >= 0 {
			i := at(uncommitted, e.path)
			if i < 0 {
				continue // equal to its committed content
			}
			e = uncommitted[i]
		}
		switch {
		case e.mode == "160000" || left.Modules[e.path].Head != "":
		case spare(e.path):
		case now.Head != left.Head || at(since, e.path) >= 0 || others(e.path):
			r.Left = append(r.Left, e.path)
		default:
			back = append(back, e)
		}
	}
	for name, within := range left.Modules {
		if b := before.Modules[name]; b.Content != within.Content || b.Head != within.Head {
			r.Within = append(r.Within, name)
		}
	}
	slices.Sort(r.Within)
	stuck, err := t.write(ctx, scratch, back)
	for _, e := range back {
		if slices.Contains(stuck, e.path) {
			r.Left = append(r.Left, e.path)
		} else {
			r.Files = append(r.Files, e.path)
		}
	}
	if err != nil {
		return r, err
	}
	return r, t.unstage(ctx, now.Head, func(path string) bool {
		_, back := slices.BinarySearch(r.Files, path)
		return back && at(theirs, path) < 0
	})
}

// at returns the index of a path's entry, -1 if there is none.
func at(list []treeEntry, path string) int {
	byPath := func(e treeEntry, path string) int { return strings.Compare(e.path, path) }
	i, ok := slices.BinarySearchFunc(list, path, byPath)
	if !ok {
		return -1
	}
	return i
}

// differing returns the entries of a tree of the project that differ in another one.
func (t *Tree) differing(ctx context.Context, scratch, tree, other string) ([]treeEntry, error) {
	if tree == other {
		return nil, nil
	}
	return ask(t, scratch, func(o *objects) (list []treeEntry, err error) {
		deltas, err := o.deltas(ctx, plumbing.NewHash(tree), plumbing.NewHash(other), "")
		for _, d := range deltas {
			list = append(list, treeEntry{fmt.Sprintf("%06o", uint32(d.was.Mode)), d.was.Hash.String(), d.path})
		}
		slices.SortFunc(list, func(a, b treeEntry) int { return strings.Compare(a.path, b.path) })
		return list, err
	}, func() ([]treeEntry, error) {
		out, err := t.run(ctx, t.environment(scratch),
			"diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff", tree, other)
		return entries(out), err
	})
}

// entries parses the old side of `diff -z --raw`, sorted by path.
func entries(raw []byte) (list []treeEntry) {
	fields := strings.Split(string(raw), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		if f := strings.Fields(strings.TrimPrefix(fields[i], ":")); len(f) == 5 {
			list = append(list, treeEntry{f[0], f[2], fields[i+1]})
		}
	}
	slices.SortFunc(list, func(a, b treeEntry) int { return strings.Compare(a.path, b.path) })
	return list
}

// gone reports whether there was nothing at the path.
func (e treeEntry) gone() bool { return strings.Trim(e.mode, "0") == "" }

// write writes entries into the work tree. It returns the paths that are blocked by something that
// was not there at the snapshot.
func (t *Tree) write(ctx context.Context, scratch string, list []treeEntry) (stuck []string, err error) {
	root, err := os.OpenRoot(t.root)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, e := range slices.Backward(list) { // files before their folder
		if e.gone() && !e.inTheWay(root) {
			if err := root.Remove(filepath.FromSlash(e.path)); err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, err
			}
			for dir := path.Dir(e.path); dir != "." && root.Remove(filepath.FromSlash(dir)) == nil; dir = path.Dir(dir) {
				continue // the folder was empty
			}
		}
	}
	var index, files bytes.Buffer
	for _, e := range list {
		switch {
		case e.inTheWay(root):
			stuck = append(stuck, e.path)
		case !e.gone():
			fmt.Fprintf(&index, "%s %s\t%s\x00", e.mode, e.id, t.Below(e.path))
			fmt.Fprintf(&files, "%s\x00", e.path)
		}
	}
	if index.Len() == 0 {
		return stuck, nil
	}
	overrides, err := t.overrides(ctx)
	if err != nil {
		return nil, err
	}
	temp := filepath.Join(scratch, "back-index")
	defer os.Remove(temp)
	env := slices.Concat(t.environment(scratch), overrides, []string{"GIT_INDEX_FILE=" + temp})
	if _, err := t.runInput(ctx, env, index.String(), "update-index", "-z", "--index-info"); err != nil {
		return nil, err
	}
	_, err = t.runInput(ctx, env, files.String(), "checkout-index", "--force", "-z", "--stdin")
	return stuck, err
}

// inTheWay reports whether there is a folder in place of the entry's file, or a file in place of
// one of its folders.
func (e treeEntry) inTheWay(root *os.Root) bool {
	if info, err := root.Lstat(filepath.FromSlash(e.path)); err == nil && info.IsDir() {
		return true
	}
	for dir := path.Dir(e.path); dir != "."; dir = path.Dir(dir) {
		if info, err := root.Lstat(filepath.FromSlash(dir)); err == nil && !info.IsDir() {
			return true
		}
	}
	return false
}

// unstage resets some files in the index to a commit.
func (t *Tree) unstage(ctx context.Context, head string, which func(path string) bool) error {
	tree, err := t.treeOf(ctx, head, "")
	if err != nil {
		return err
	}
	out, err := t.run(ctx, nil, "diff-index", "--cached", "--raw", "-z", "--no-abbrev", "--no-renames",
		"--no-ext-diff", tree)
	if err != nil {
		return err
	}
	var index bytes.Buffer
	for _, e := range entries(out) {
		if name, below := strings.CutPrefix(e.path, t.below()); below && which(name) {
			fmt.Fprintf(&index, "%s %s\t%s\x00", e.mode, e.id, e.path)
		}
	}
	if index.Len() == 0 {
		return nil
	}
	overrides, err := t.overrides(ctx)
	if err != nil {
		return err
	}
	_, err = t.runInput(ctx, overrides, index.String(), "update-index", "-z", "--index-info")
	return err
}
