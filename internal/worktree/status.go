package worktree

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// A Loose file has uncommitted changes.
type Loose struct {
	Path      string // relative to the root
	Untracked bool
}

// Loose lists the uncommitted files of the project by path, without ignored ones, and returns the
// branch, or a text that says that HEAD is detached. Without git both are empty.
func (t *Tree) Loose(ctx context.Context) (files []Loose, branch string, err error) {
	if t.git == "" {
		return nil, "", nil
	}
	commit, ref := t.head(ctx)
	branch = strings.TrimPrefix(ref, "refs/heads/")
	if branch == "" && commit != "" {
		branch = fmt.Sprintf("no branch (HEAD is detached at %.12s)", commit)
	}
	if !t.native {
		files, err = t.looseWithout(ctx, commit)
		return files, branch, err
	}
	overrides, err := t.overrides(ctx)
	if err != nil {
		return nil, branch, err
	}
	args := []string{"status", "--porcelain", "-z", "--untracked-files=all", "--no-renames", "--", "."}
	for _, e := range t.exclude {
		args = append(args, ":(exclude,literal)"+e)
	}
	out, err := t.run(ctx, overrides, args...)
	if err != nil {
		return nil, branch, fmt.Errorf("uncommitted files: %w", err)
	}
	for line := range strings.SplitSeq(string(out), "\x00") {
		if len(line) < 4 {
			continue
		}
		files = append(files, Loose{Path: strings.TrimPrefix(line[3:], t.below()), Untracked: line[:2] == "??"})
	}
	slices.SortFunc(files, func(a, b Loose) int { return strings.Compare(a.Path, b.Path) })
	return files, branch, nil
}
