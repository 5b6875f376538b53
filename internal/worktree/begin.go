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

// Lacks names what a folder lacks for working in clones: "a git repository", "a first commit", or "" for nothing.
func Lacks(ctx context.Context, dir string) (string, error) {
	_, _, err := Find(ctx, dir)
	if errors.Is(err, ErrNoRepo) {
		return "a git repository", nil
	}
	if err != nil {
		return "", err
	}
	_, err = runWithin(ctx, gitLimit, dir, nil, "", "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	var none *exitError
	if errors.As(err, &none) && none.ExitCode() == 1 {
		return "a first commit", nil
	}
	return "", err
}

// Begin makes a git repository of a folder that is in none, and commits its files in the person's name. The lines of
// ignore exclude files; a folder without a .gitignore gets one with them. It returns the commit. Hooks do not run.
func Begin(ctx context.Context, dir string, ignore []string) (commit string, err error) {
	who := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return !strings.HasPrefix(v, "GIT_AUTHOR_") && !strings.HasPrefix(v, "GIT_COMMITTER_")
	})
	git := func(args ...string) (string, error) {
		out, err := runWithin(ctx, gitLimit, dir, who, "", args...)
		return strings.TrimSpace(string(out)), err
	}
	if _, err := git("var", "GIT_AUTHOR_IDENT"); err != nil {
		return "", fmt.Errorf("a commit needs your name: git config --global user.name NAME, "+
			"and git config --global user.email ADDRESS (%w)", err)
	}
	top, _, err := Find(ctx, dir)
	if errors.Is(err, ErrNoRepo) {
		if _, err = git("init", "--quiet"); err == nil {
			top, _, err = Find(ctx, dir)
		}
	}
	if err != nil {
		return "", err
	}
	dir = top // files above a package are committed too
	path := filepath.Join(top, ".gitignore")
	if f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644); err == nil {
		_, err = f.WriteString(strings.Join(ignore, "\n") + "\n")
		if err := errors.Join(err, f.Close()); err != nil {
			return "", fmt.Errorf("write %s: %w", path, err)
		}
	} else if !errors.Is(err, os.ErrExist) {
		return "", err
	}
	for _, args := range [][]string{
		{"add", "--all"},
		{"commit", "--quiet", "--allow-empty", "--no-verify", "--message", "Begin"},
	} {
		if _, err := git(args...); err != nil {
			return "", err
		}
	}
	return git("rev-parse", "HEAD")
}

// Commit commits one file of a folder in the person's name. Other staged files stay staged. It returns the commit.
// Hooks do not run.
func Commit(ctx context.Context, dir, file, message string) (commit string, err error) {
	for _, args := range [][]string{
		{"add", "--", file},
		{"commit", "--quiet", "--no-verify", "--message", message, "--only", "--", file},
		{"rev-parse", "HEAD"},
	} {
		out, err := runWithin(ctx, gitLimit, dir, nil, "", args...)
		if err != nil {
			return "", err
		}
		commit = strings.TrimSpace(string(out))
	}
	return commit, nil
}

// Signs reports whether git signs the commits that a person makes in a folder. It is false if git cannot tell.
func Signs(ctx context.Context, dir string) bool {
	out, err := runExactly(ctx, gitLimit, dir, inherited.of(os.Environ()), "",
		[]string{"config", "--type=bool", "--get", "commit.gpgsign"})
	return err == nil && strings.TrimSpace(string(out)) == "true"
}

// HooksPath returns the folder in core.hooksPath as an absolute path; "" if the key is not set.
func HooksPath(ctx context.Context, dir string) string {
	out, err := runExactly(ctx, gitLimit, dir, inherited.of(os.Environ()), "",
		[]string{"config", "--type=path", "--get", "core.hooksPath"})
	path := strings.TrimSpace(string(out))
	if err != nil || path == "" {
		return ""
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return path
}
