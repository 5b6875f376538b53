package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ralph"
)

// A gitlink is an index entry for a nested repository, with its commit.
type gitlink struct {
	name string // from the top of the work tree
	id   string
}

// Digest returns a digest of the whole content of the work tree, nested repositories included,
// whether submodules or not.
func (s Snapshot) Digest() string {
	if len(s.Modules) == 0 && len(s.Whole) == 0 {
		return s.Content
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q\n", s.Content)
	if len(s.Whole) > 0 {
		fmt.Fprintf(sum, "hidden %q\n", s.Whole)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Modules)) {
		m := s.Modules[name]
		fmt.Fprintf(sum, "%q %q %q %t\n", name, m.Head, m.Digest(), m.Unreadable != "")
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// populated reports whether a gitlink's folder contains a repository.
func (t *Tree) populated(name string) bool {
	dir := filepath.Join(t.top(), filepath.FromSlash(name))
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir() && exists(filepath.Join(dir, ".git"))
}

// module returns the tree of a nested repository.
func (t *Tree) module(ctx context.Context, name string) (*Tree, error) {
	t.known.mu.Lock()
	defer t.known.mu.Unlock()
	if m := t.known.modules[name]; m != nil && m.Intact() == nil {
		return m, nil
	}
	m, err := Open(ctx, filepath.Join(t.top(), filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	if m.prefix != "" || m.git == "" {
		return nil, fmt.Errorf("%s: %w of its own", name, ErrNoRepo)
	}
	m.Marker = t.Marker
	if t.known.modules == nil {
		t.known.modules = map[string]*Tree{}
	}
	t.known.modules[name] = m
	return m, nil
}

// moduleScratch is the folder in scratch for the objects of a nested repository.
func moduleScratch(scratch, name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(scratch, "modules", hex.EncodeToString(sum[:8]))
}

// lookInto takes snapshots of the nested repositories, with Snapshot or Look. If one cannot be
// read, its snapshot holds the reason.
func (t *Tree) lookInto(
	ctx context.Context, scratch string, links []gitlink, look looker,
) (map[string]Snapshot, error) {
	var modules map[string]Snapshot
	for _, link := range links {
		name, below := strings.CutPrefix(link.name, t.below())
		if !below || t.excludes(name) || !t.populated(link.name) {
			continue
		}
		m, err := t.module(ctx, link.name)
		var s Snapshot
		if err == nil {
			s, err = look(m, ctx, moduleScratch(scratch, link.name))
		}
		if err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			s = Snapshot{Unreadable: err.Error()}
		}
		if modules == nil {
			modules = map[string]Snapshot{}
		}
		modules[name] = s
	}
	return modules, nil
}

// emptied lists the nested repositories that existed before and of which only the folder is left,
// as after `git submodule deinit`.
func (t *Tree) emptied(before, after Snapshot) (names []string) {
	for name := range before.Modules {
		info, err := os.Lstat(filepath.Join(t.root, filepath.FromSlash(name)))
		if _, still := after.Modules[name]; !still && err == nil && info.IsDir() && !t.populated(t.Below(name)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// changesWithin returns the files and commits that differ in nested repositories between two
// snapshots. For a new one, its uncommitted files count.
func (t *Tree) changesWithin(
	ctx context.Context, before, after Snapshot, scratch string,
) (files []ralph.FileChange, commits []string, err error) {
	for _, name := range t.emptied(before, after) {
		files = append(files, ralph.FileChange{Path: name, Status: "deleted"})
	}
	for name, now := range after.Modules {
		was, known := before.Modules[name]
		switch {
		case now.Unreadable != "" && was.Unreadable != "":
			continue
		case now.Unreadable != "" || was.Unreadable != "":
			files = append(files, ralph.FileChange{Path: name, Status: "modified"})
			continue
		}
		m, err := t.module(ctx, t.Below(name))
		if err != nil {
			return nil, nil, err
		}
		if !known {
			if was.Content, err = m.Committed(ctx, now.Head); err != nil {
				return nil, nil, err
			}
		}
		list, ids, err := m.Changes(ctx, was, now, moduleScratch(scratch, t.Below(name)))
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, f := range list {
			f.Path = name + "/" + f.Path
			files = append(files, f)
		}
		if known {
			commits = append(commits, ids...)
		}
	}
	return files, commits, nil
}

// addAll adds the content of the work tree to an index. Nested repositories are excluded, since git
// would obey their configuration; their commits are recorded separately. Files in omit, relative to
// the root, stay as the index has them. The complaint is git's about files that it did not add.
func (t *Tree) addAll(
	ctx context.Context, env []string, what string, links []gitlink, omit ...string,
) (complaint, err error) {
	add := []string{"add", "-A", "--ignore-errors", "--", what}
	for _, e := range slices.Concat(t.exclude, omit) {
		add = append(add, ":(exclude,literal)"+e)
	}
	var moved strings.Builder
	for _, link := range links {
		if !t.populated(link.name) {
			continue // git itself sees that it is gone or replaced
		}
		add = append(add, ":(exclude,top,literal)"+link.name)
		m, err := t.module(ctx, link.name)
		if err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			continue // [Tree.lookInto] reports it
		}
		if head, _ := m.head(ctx); head != "" && head != link.id {
			fmt.Fprintf(&moved, "160000 %s\t%s\x00", head, link.name)
		}
	}
	// For an untracked repository without a commit, or an unreadable file, add reports an error and
	// continues with the others.
	if _, complaint = t.run(ctx, env, add...); complaint != nil && (!complains(complaint) || ctx.Err() != nil) {
		return nil, complaint
	}
	if moved.Len() > 0 {
		_, err = t.runInput(ctx, env, moved.String(), "update-index", "-z", "--index-info")
	}
	return complaint, err
}

// complains reports whether git exited by itself with an error, and was not killed.
func complains(err error) bool {
	var exit *exitError
	return errors.As(err, &exit) && exit.Exited()
}
