package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A gitlink is an index entry for a nested repository, with its commit.
type gitlink struct {
	name string // from the top of the work tree
	id   string
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

// addAll adds the content of the work tree to an index. Nested repositories are excluded, since git
// would obey their configuration; their commits are recorded separately. The complaint is git's about files that
// it did not add.
func (t *Tree) addAll(ctx context.Context, env []string, links []gitlink, omit ...string) (complaint, err error) {
	add := []string{"add", "-A", "--ignore-errors", "--", "."}
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
			continue // it stays as it is in the index
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
