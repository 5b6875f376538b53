package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"ralph"
)

// maxIndex exceeds the size of the index of a million files, in bytes.
const maxIndex = 256 << 20

// addStaged adds to ralph's own index the files that a session has staged although git ignores them, except for untaken
// ones: the session wants to commit them. It reads only names from the session's index, and the contents from the work
// tree.
func (t *Tree) addStaged(ctx context.Context, env []string, index string, untaken []ralph.Untaken) error {
	names, links, err := t.staged(index)
	if err != nil {
		return fmt.Errorf("cannot read the staged changes in %s: %w", t.Top(), err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return among(name, untaken) })
	if len(names) > 0 {
		_, err = t.runInput(ctx, env, strings.Join(names, "\x00"),
			"-C", t.Top(), "update-index", "--add", "--remove", "-z", "--stdin")
	}
	if err == nil && links != "" {
		_, err = t.runInput(ctx, env, links, "update-index", "-z", "--index-info")
	}
	return err
}

// staged returns the files that a session has staged and ralph's own index lacks, and the nested
// repositories, in the format of git's update-index.
func (t *Tree) staged(index string) (names []string, links string, err error) {
	own, err := os.ReadFile(index)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, "", err
	}
	their, err := t.theirIndex()
	if err != nil || len(their) == 1 && bytes.Equal(own, their[0]) {
		return nil, "", err
	}
	has := map[string]bool{}
	for e := range t.entries(own) {
		has[string(e.name)] = true
	}
	absent := t.absent(own)
	gone, err := t.removed(absent, their)
	if err != nil {
		return nil, "", err
	}
	for _, name := range gone {
		if strings.HasPrefix(name, t.rootPrefix()) {
			names = append(names, name)
		}
	}
	for _, part := range their {
		for e := range t.entries(part) {
			name := string(e.name)
			rel, within := strings.CutPrefix(name, t.rootPrefix())
			if absent[name] && !e.skipped() && within && !exists(filepath.Join(t.Top(), filepath.FromSlash(name))) {
				names = append(names, name) // the session had the file in its work tree, and has removed it
			}
			if has[name] || !within || t.excludes(rel) {
				continue
			}
			has[name] = true
			info, err := t.lstat(name)
			if err != nil {
				return nil, "", err
			}
			switch link := e.link(); {
			case info == nil:
			case link != "" && info.IsDir():
				links += fmt.Sprintf("160000 %s\t%s\x00", link, name)
			case info.Mode().IsRegular(), info.Mode().Type() == fs.ModeSymlink:
				names = append(names, name)
			}
		}
	}
	return names, links, nil
}

// theirIndex returns the session's index, in parts if it is split; none if there is no index.
func (t *Tree) theirIndex() (parts [][]byte, err error) {
	names, err := sharedIndexes(t.theirs)
	left := int64(maxIndex)
	for _, name := range append(names, "index") {
		part, rerr := readSmall(filepath.Join(t.theirs, name), left)
		if errors.Is(rerr, fs.ErrNotExist) {
			continue
		}
		err, left = errors.Join(err, rerr), left-int64(len(part))
		parts = append(parts, part)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // the session removed its .git
	}
	return parts, err
}

// lstat returns the information on a file by its path from the top; nil if it does not exist or its path contains a
// link.
func (t *Tree) lstat(name string) (info fs.FileInfo, err error) {
	if !fs.ValidPath(name) || name == "." {
		return nil, nil
	}
	for _, part := range append(parents(name), name) {
		info, err = os.Lstat(filepath.Join(t.Top(), filepath.FromSlash(part)))
		if errors.Is(err, fs.ErrNotExist) || err == nil && part != name && !info.IsDir() {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return info, nil
}

// parents lists the folders above a file, highest first, without the top.
func parents(name string) (list []string) {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		list = append([]string{dir}, list...)
	}
	return list
}
