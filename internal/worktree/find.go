package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNoRepo means that a directory is not in a git work tree: git reports it, and there is no
// .git in it or above it.
var ErrNoRepo = errors.New("not in a git repository")

// ErrNoWorkTree means that a directory is in a git repository without a work tree, or in a
// git directory.
var ErrNoWorkTree = errors.New("git has no work tree here")

// Find returns the top of the work tree around dir and the git directory that all its work trees
// share. The error wraps [ErrNoRepo] only if there is no repository, not if git fails for another
// reason.
func Find(ctx context.Context, dir string) (top, common string, err error) {
	lines, err := places(ctx, dir)
	if err != nil {
		return "", "", err
	}
	return lines[0], lines[1], nil
}

// gitDirOf returns the git directory that a .git is or points to.
func gitDirOf(at string) (string, error) {
	info, err := os.Stat(at)
	if err != nil || info.IsDir() {
		return at, err
	}
	text, err := os.ReadFile(at)
	if err != nil {
		return "", err
	}
	name, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), "gitdir: ")
	if !ok {
		return "", fmt.Errorf("%s is neither a git directory nor a file that names one", at)
	}
	return inside(filepath.Dir(at), name), nil
}

// inside resolves a path that may be relative to dir.
func inside(dir, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}

// gitAbove returns the nearest .git in dir or above it, on the same file system, like git; "" if
// there is none.
func gitAbove(dir string) (string, error) {
	begin, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	for d := dir; ; d = filepath.Dir(d) {
		at := filepath.Join(d, ".git")
		if _, err := os.Lstat(at); err == nil {
			return at, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("cannot tell whether %s is in a git repository: %w", dir, err)
		}
		above, err := os.Stat(filepath.Dir(d))
		if err != nil {
			return "", fmt.Errorf("cannot tell whether %s is in a git repository: %w", dir, err)
		}
		if d == filepath.Dir(d) || !sameDevice(begin, above) {
			return "", nil
		}
	}
}

// places asks git for the top of the work tree around dir, the git directory shared by all work trees, this work
// tree's own one, and more. The work tree is the folder of the nearest .git, even if core.worktree names another.
// The error wraps [ErrNoRepo] if there is none.
func places(ctx context.Context, dir string, more ...string) ([]string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, unreadable(dir, err)
	}
	at, err := gitAbove(real)
	if err != nil {
		return nil, err
	}
	var env []string
	if at != "" {
		if within(real, at) {
			return nil, noWorkTree(dir)
		}
		env = []string{"GIT_WORK_TREE=" + filepath.Dir(at)}
	}
	names := append([]string{"--show-toplevel", "--git-common-dir", "--absolute-git-dir"}, more...)
	ask := func(names ...string) (string, error) {
		args := append([]string{"rev-parse", "--path-format=absolute"}, names...)
		out, err := runWithin(ctx, gitLimit, dir, env, "", args...)
		return strings.TrimSuffix(string(out), "\n"), err
	}
	text, err := ask(names...)
	if err != nil {
		return nil, whyNot(ctx, dir, at, err)
	}
	lines := strings.Split(text, "\n")
	if len(lines) != len(names) { // a path contains newlines
		lines = nil
		for _, name := range names {
			line, err := ask(name)
			if err != nil {
				return nil, whyNot(ctx, dir, at, err)
			}
			lines = append(lines, line)
		}
	}
	if at == "" {
		return nil, noWorkTree(dir)
	}
	if nearest, err := gitDirOf(at); err != nil || !sameFile(nearest, lines[2]) {
		// Git skips a .git that it does not understand and uses a repository further up, which is
		// another project's.
		return nil, unreadable(dir, fmt.Errorf("%s exists (move it away if it is not a repository),  "+
			"but git skips it and uses the repository of %s", at, lines[2]))
	}
	if lines[1] == lines[2] && isBare(lines[1]) {
		return nil, bare(dir, at, lines[1])
	}
	return lines, nil
}

// within reports whether a path is dir or below it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// sameFile reports whether two paths lead to the same file.
func sameFile(a, b string) bool {
	x, xerr := os.Stat(a)
	y, yerr := os.Stat(b)
	return xerr == nil && yerr == nil && os.SameFile(x, y)
}

// whyNot explains why git found no repository; at is the nearest .git.
func whyNot(ctx context.Context, dir, at string, err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return ErrNoGit
	}
	if ctx.Err() != nil {
		return err
	}
	var exit *exitError
	if said := err.Error(); errors.As(err, &exit) && strings.Contains(said, "not a git repository") {
		if at == "" {
			return fmt.Errorf("%s: %w", dir, ErrNoRepo)
		}
		return unreadable(dir, fmt.Errorf("%s exists (move it away if it is not a repository), but %w", at, err))
	} else if strings.Contains(said, "must be run in a work tree") {
		return noWorkTree(dir)
	}
	return unreadable(dir, err)
}

// unreadable is the error for a repository that cannot be read.
func unreadable(dir string, err error) error {
	return fmt.Errorf("cannot tell which git repository %s is in, where the queue is kept: %w; "+
		"fix that and try again", dir, err)
}

// bare is the error for a repository with core.bare set.
func bare(dir, at, common string) error {
	return fmt.Errorf("%s: %w: core.bare is set in %s; `git config core.bare false` in %s takes that back",
		dir, ErrNoWorkTree, filepath.Join(common, "config"), filepath.Dir(at))
}

func noWorkTree(dir string) error {
	return fmt.Errorf("%s is a bare repository, or inside of a git folder: %w; "+
		"go to a work tree, such as a clone of it", dir, ErrNoWorkTree)
}
