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

// A gitlink is an entry of an index that names a commit of a repository within.
type gitlink struct {
	name string // from the top of the work tree
	id   string
}

// Digest is a digest of all that is in the work tree, with what is in the repositories
// within: submodules, and others that stand there.
func (s Snapshot) Digest() string {
	if len(s.Modules) == 0 {
		return s.Content
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q\n", s.Content)
	for _, name := range slices.Sorted(maps.Keys(s.Modules)) {
		m := s.Modules[name]
		fmt.Fprintf(sum, "%q %q %q %t\n", name, m.Head, m.Digest(), m.Unreadable != "")
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// populated tells whether a repository stands where a gitlink is.
func (t *Tree) populated(name string) bool {
	dir := filepath.Join(t.top(), filepath.FromSlash(name))
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir() && exists(filepath.Join(dir, ".git"))
}

// module is the tree of a repository within.
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

// moduleScratch is where objects of a repository within are kept, in those of its own.
func moduleScratch(scratch, name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(scratch, "modules", hex.EncodeToString(sum[:8]))
}

// lookInto looks at the repositories within, with Snapshot or Look. What cannot be
// looked at is noted, with the reason.
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

// emptied are the repositories within that were there before and of which only the
// folder is left, as after `git submodule deinit`.
func (t *Tree) emptied(before, after Snapshot) (names []string) {
	for name := range before.Modules {
		info, err := os.Lstat(filepath.Join(t.root, filepath.FromSlash(name)))
		if _, still := after.Modules[name]; !still && err == nil && info.IsDir() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// changesWithin are the files and commits of the repositories within that differ
// between two snapshots. Of one that is new, its uncommitted files count.
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

// addAll has git take what is in the work tree into an index. It is kept out of the
// repositories within, in which it would obey their configuration; what they stand at
// is noted here.
func (t *Tree) addAll(ctx context.Context, env []string, what string, links []gitlink) error {
	add := []string{"add", "-A", "--ignore-errors", "--", what}
	for _, e := range t.exclude {
		add = append(add, ":(exclude,literal)"+e)
	}
	var moved strings.Builder
	for _, link := range links {
		if !t.populated(link.name) {
			continue // git itself sees that it is gone, or another thing
		}
		add = append(add, ":(exclude,top,literal)"+link.name)
		m, err := t.module(ctx, link.name)
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			continue // which [Tree.lookInto] notes
		}
		if head, _ := m.head(ctx); head != "" && head != link.id {
			fmt.Fprintf(&moved, "160000 %s\t%s\x00", head, link.name)
		}
	}
	// An untracked repository without a commit, or an unreadable file, makes add
	// complain about that file and go on with the others.
	if _, err := t.run(ctx, env, add...); err != nil {
		if !complains(err) || ctx.Err() != nil {
			return err
		}
	}
	if moved.Len() == 0 {
		return nil
	}
	_, err := t.runInput(ctx, env, moved.String(), "update-index", "-z", "--index-info")
	return err
}

// complains tells that git has ended by itself with an error, and was not killed.
func complains(err error) bool {
	var exit *exitError
	return errors.As(err, &exit) && exit.Exited()
}
