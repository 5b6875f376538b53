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

// gitlinks returns the nested repositories in the output of `git ls-files --stage -z`.
func gitlinks(staged string) (list []gitlink) {
	for entry := range strings.SplitSeq(staged, "\x00") {
		if rest, is := strings.CutPrefix(entry, moduleMode+" "); is {
			said, name, _ := strings.Cut(rest, "\t")
			id, _, _ := strings.Cut(said, " ")
			list = append(list, gitlink{name, id})
		}
	}
	return list
}

// moduleOf returns the git directory of the user's own copy of a submodule at a commit of the repository; "" if
// there is none.
func (t *Tree) moduleOf(ctx context.Context, commit, path string) (string, error) {
	section, _, err := t.moduleSaid(ctx, commit, path)
	if err != nil {
		return "", err
	}
	places := []string{filepath.Join(t.Top(), path, ".git")}
	if name := strings.TrimPrefix(section, "submodule."); section != "" && filepath.IsLocal(name) {
		places = append(places, filepath.Join(t.git, "modules", name), filepath.Join(t.common, "modules", name))
	}
	for _, dir := range places {
		if exists(filepath.Join(dir, "objects")) {
			return dir, nil
		}
	}
	return "", nil
}

// lendModule makes a repository of a submodule in an empty folder and checks out its commit there, with its own
// submodules. It reads objects and the address of origin from the user's copy, writes nothing to it, and uses no
// network. The folder stays empty if there is no copy, or if the copy lacks the commit.
func (t *Tree) lendModule(ctx context.Context, commit string, link gitlink, dir string, env []string) error {
	from, err := t.moduleOf(ctx, commit, link.name)
	if err != nil || from == "" {
		return err
	}
	git := func(args ...string) (string, error) {
		out, err := runWithin(ctx, gitLimit, dir, slices.Concat(env, []string{"GIT_LFS_SKIP_SMUDGE=1"}), "", args...)
		return strings.TrimSpace(string(out)), err
	}
	lacks := func(err error) error {
		if complains(err) && ctx.Err() == nil {
			return nil
		}
		return err
	}
	// A copy may name a removed work tree.
	if _, err := git("--git-dir="+from, "--work-tree="+dir, "cat-file", "-e", link.id+"^{commit}"); err != nil {
		return lacks(err)
	}
	origin, err := git("--git-dir="+from, "--work-tree="+dir, "config", "--get", "remote.origin.url")
	if lacks(err) != nil {
		return err
	}
	form := "sha1"
	if t.longIDs {
		form = "sha256"
	}
	if _, err := git("init", "-q", "--object-format="+form); err != nil {
		return err
	}
	objects := []byte(quoted(filepath.Join(from, "objects")) + "\n")
	if err := os.WriteFile(filepath.Join(dir, ".git", "objects", "info", "alternates"), objects, 0o600); err != nil {
		return err
	}
	if origin != "" {
		if _, err := git("remote", "add", "origin", withoutUser(origin)); err != nil {
			return err
		}
	}
	if _, err := git("checkout", "-q", "--detach", link.id); err != nil {
		return fmt.Errorf("submodule %s: %w", link.name, err)
	}
	within, err := git("ls-files", "--stage", "-z")
	if err != nil || len(gitlinks(within)) == 0 {
		return err
	}
	copied := &Tree{root: dir, git: from, common: from, longIDs: t.longIDs}
	for _, inner := range gitlinks(within) {
		if err := copied.lendModule(ctx, link.id, inner, filepath.Join(dir, inner.name), env); err != nil {
			return err
		}
	}
	return nil
}

// populated reports whether a gitlink's folder contains a repository.
func (t *Tree) populated(name string) bool {
	dir := filepath.Join(t.Top(), filepath.FromSlash(name))
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
	m, err := Open(ctx, filepath.Join(t.Top(), filepath.FromSlash(name)))
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

// addAll adds the content of the work tree to an index. It leaves out nested repositories, since git would obey their
// configuration; their commits are recorded separately. complaint is git's message about files that it did not add.
func (t *Tree) addAll(ctx context.Context, env []string, links []gitlink, omit ...string) (complaint, err error) {
	add := []string{"add", "-A", "--sparse", "--ignore-errors", "--", "."}
	for _, e := range slices.Concat(t.exclude, omit) {
		add = append(add, ":(exclude,literal)"+e)
	}
	var moved strings.Builder
	for _, link := range links {
		if !t.populated(link.name) {
			continue // git itself notices a missing or replaced one
		}
		add = append(add, ":(exclude,top,literal)"+link.name)
		m, err := t.module(ctx, link.name)
		if err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			continue // it stays unchanged in the index
		}
		if head := m.At(ctx); head != "" && head != link.id {
			fmt.Fprintf(&moved, "160000 %s\t%s\x00", head, link.name)
		}
	}
	// For an untracked repository without a commit, or an unreadable file, git reports an error and continues with the
	// others.
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
