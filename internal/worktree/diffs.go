package worktree

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/rogpeppe/go-internal/diff"

	"ralph"
	"ralph/internal/patch"
)

// Bounds of a session's stored differences, in bytes.
const (
	maxFileDiff = 256 << 10
	maxDiffs    = 2 << 20
)

// Diffs returns the difference of files between two commits, line by line, and the commits between them. If the lines
// of a file are left out, it gives the reason. Texts are masked as a whole, since a secret may have several lines. Git
// compares large and binary files. If go-git cannot read the repository, the lines are left out.
func (t *Tree) Diffs(
	ctx context.Context, from, to string, files []ralph.FileChange, commits []ralph.Commit,
	mask func(string) (string, error),
) (d ralph.Differences, err error) {
	d.Commits = slices.Clone(commits)
	for i := range d.Commits {
		if d.Commits[i].Subject, err = mask(d.Commits[i].Subject); err != nil {
			return d, err
		}
	}
	was, err := t.Whole(ctx, from)
	if err != nil {
		return d, err
	}
	is, err := t.Whole(ctx, to)
	if err != nil {
		return d, err
	}
	d.Files, err = ask(t, func(o *objects) ([]ralph.FileDiff, error) {
		list, err := o.deltas(ctx, plumbing.NewHash(was), plumbing.NewHash(is), "")
		if err != nil {
			return nil, err
		}
		at, secret := map[string]delta{}, map[plumbing.Hash]bool{}
		for _, d := range list {
			at[t.relative(d.path)] = d
			if t.SecretFile(d.path) {
				secret[d.was.Hash], secret[d.is.Hash] = true, true
			}
		}
		for _, none := range []plumbing.Hash{plumbing.ZeroHash, plumbing.ComputeHash(plumbing.BlobObject, nil)} {
			delete(secret, none) // no file, or an empty one
		}
		all, room := []ralph.FileDiff{}, maxDiffs
		for _, f := range files {
			d, ok := at[f.Path]
			one := ralph.FileDiff{Path: f.Path}
			switch {
			case !ok:
				one.Left = "it is in a repository of its own"
			case t.SecretFile(f.Path), secret[d.was.Hash], secret[d.is.Hash]: // including a copy with another name
				one.Left = "it looks like a file with secrets"
			default:
				if one.Diff, one.Left, err = o.diff(d, mask); err != nil {
					return nil, err
				}
			}
			if one.Left == noText {
				if one.Diff, one.Left, err = t.opaque(ctx, was, is, d.path, mask); err != nil {
					return nil, err
				}
			}
			if len(one.Diff) > min(room, maxFileDiff) {
				one.Left, one.Diff = fmt.Sprintf("they are too many: %d bytes", len(one.Diff)), ""
			}
			room -= len(one.Diff)
			all = append(all, one)
		}
		return all, ctx.Err()
	}, func() ([]ralph.FileDiff, error) {
		all := []ralph.FileDiff{}
		for _, f := range files {
			all = append(all, ralph.FileDiff{Path: f.Path, Left: "the repository is read by git alone"})
		}
		return all, nil
	})
	return d, err
}

// noText means that go-git does not compare a file.
const noText = "it is not text, or larger than 1 MiB"

// opaque returns git's comparison of a binary or large file: its lines without headers.
func (t *Tree) opaque(
	ctx context.Context, was, is, path string, mask func(string) (string, error),
) (lines, left string, err error) {
	said, err := t.Patch(ctx, was, is, []string{path})
	if err != nil {
		return "", "", err
	}
	for _, f := range patch.Split(patch.Prepare(said, func(string) bool { return false })) {
		lines += f.Notes + f.Body
	}
	if lines, err = mask(lines); lines == "" {
		left = "its text is the same; its mode or its name is another"
	}
	return lines, left, err
}

// diff compares the two sides of a file; left explains why no difference is shown.
func (o *objects) diff(d delta, mask func(string) (string, error)) (lines, left string, err error) {
	var texts, sides [2]string
	for i, e := range []object.TreeEntry{d.was, d.is} {
		text, ok, err := o.text(e)
		if err != nil {
			return "", "", err
		}
		if !ok {
			return "", noText, nil
		}
		texts[i] = text
		if sides[i], err = mask(text); err != nil {
			return "", "", err
		}
	}
	switch {
	case texts[0] == texts[1]:
		return "", "its text is the same; its mode or its name is another", nil
	case sides[0] == sides[1]:
		return "", "only a secret differs", nil
	}
	unified := string(diff.Diff("", []byte(sides[0]), "", []byte(sides[1])))
	// The library's output begins with three lines that name the files again.
	if _, hunks, ok := strings.Cut(unified, "\n@@"); ok {
		return "@@" + hunks, "", nil
	}
	return unified, "", nil
}
