package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Move moves a ref from one commit to another one; from "" creates the ref. If the ref is not at
// from any more, moved is false and nothing has changed.
func (t *Tree) Move(ctx context.Context, ref, from, to, why string) (moved bool, err error) {
	was := from
	if was == "" {
		was = strings.Repeat("0", len(to))
	}
	if _, err = t.run(ctx, author, "update-ref", "--create-reflog", "-m", "ralph: "+why, ref, to, was); err == nil {
		return true, nil
	}
	if !complains(err) || ctx.Err() != nil {
		return false, err
	}
	now, looked := t.Ref(ctx, ref)
	if looked != nil || now == from {
		return false, errors.Join(err, looked) // the update failed for another reason
	}
	return now == to, nil
}

// A Checkout is a work tree of a repository.
type Checkout struct {
	Dir    string
	Branch string // full name of the branch that is checked out or being rebased; "" if detached
	Busy   string // operation in progress on that branch; "" for none
}

// Checkouts lists the repository's work trees that exist.
func (t *Tree) Checkouts(ctx context.Context) (list []Checkout, err error) {
	out, err := t.run(ctx, nil, "worktree", "list", "--porcelain", "-z")
	if err != nil {
		return nil, err
	}
	for entry := range strings.SplitSeq(string(out), "\x00\x00") {
		var c Checkout
		skip := false
		for line := range strings.SplitSeq(entry, "\x00") {
			key, value, _ := strings.Cut(line, " ")
			switch key {
			case "worktree":
				c.Dir = value
			case "branch":
				c.Branch = value
			case "bare", "prunable":
				skip = true
			}
		}
		if c.Dir == "" || skip {
			continue
		}
		if c.Dir == filepath.Dir(t.common) || c.Dir == t.common {
			c.Dir = t.mainDir()
		}
		git, err := gitDirOf(filepath.Join(c.Dir, ".git"))
		if err != nil {
			return nil, fmt.Errorf("work tree %s: %w", c.Dir, err)
		}
		if branch, err := rebased(git); err != nil {
			return nil, err
		} else if branch != "" {
			c.Branch, c.Busy = branch, "a rebase is under way"
		}
		list = append(list, c)
	}
	return list, nil
}

// mainDir returns the repository's main work tree.
func (t *Tree) mainDir() string {
	if t.git == t.common {
		return t.top()
	}
	return filepath.Dir(t.common)
}

// rebased returns the branch that a rebase in progress in a git directory will move; "" if there is
// none.
func rebased(git string) (string, error) {
	for _, folder := range []string{"rebase-merge", "rebase-apply"} {
		name, err := os.ReadFile(filepath.Join(git, folder, "head-name"))
		if err == nil {
			return strings.TrimSpace(string(name)), nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !isNotDir(err) {
			return "", err
		}
	}
	return "", nil
}

// FastForward moves the branch that is checked out in a folder, with its files, to a descendant
// commit. It refuses, and changes nothing, if a file to be updated was edited or exists as an
// untracked or ignored file, or if a merge is in progress. Hooks and filters do not run: a file
// with a filter is a reason to refuse.
func FastForward(ctx context.Context, dir, commit string) (refused string, err error) {
	t, err := Open(ctx, dir)
	if err != nil {
		return "", err
	}
	head, _ := t.head(ctx)
	files, err := t.Files(ctx, head, commit)
	if err != nil {
		return "", err
	}
	filtered, err := t.smudged(ctx, commit, files)
	if err != nil || len(filtered) > 0 {
		return "a filter has to write " + strings.Join(filtered, ", "), err
	}
	overrides, err := t.overrides(ctx)
	if err != nil {
		return "", err
	}
	_, err = t.run(ctx, slices.Concat(overrides, author), "merge", "--quiet",
		"--ff-only", "--no-overwrite-ignore", "--no-autostash", "--no-verify-signatures", "--no-stat", commit)
	if !complains(err) || ctx.Err() != nil {
		return "", err
	}
	if now, _ := t.head(ctx); now == commit {
		return "", nil
	}
	return refusal(err), nil
}

// smudged returns the files that a filter would write when a commit is checked out.
func (t *Tree) smudged(ctx context.Context, commit string, files []string) (list []string, err error) {
	if list, err = t.filtered(ctx, files); err != nil {
		return nil, err
	}
	for _, file := range files { // attributes that come with the commit
		if filepath.Base(file) != ".gitattributes" {
			continue
		}
		text, err := t.run(ctx, nil, "cat-file", "blob", commit+":"+file)
		if err == nil && bytes.Contains(text, []byte("filter=")) {
			list = append(list, file)
		} else if err != nil && !complains(err) {
			return nil, err
		}
	}
	return list, nil
}

// refusals are git's reasons for not moving a checkout, and their wording for people. The file
// names stand between begins and ends.
var refusals = []struct{ begins, ends, why string }{
	{"changes to the following files would be overwritten by merge:", "Please", "your edits in "},
	{"untracked working tree files would be overwritten by merge:", "Please", "untracked files in the way: "},
	{"untracked working tree files would be removed by merge:", "Please", "untracked files in the way: "},
}

// refusal says in one line why git did not move a checkout.
func refusal(err error) string {
	said := err.Error()
	for _, r := range refusals {
		_, rest, found := strings.Cut(said, r.begins)
		if files, _, ends := strings.Cut(rest, r.ends); found && ends {
			return r.why + strings.Join(strings.Fields(files), ", ")
		}
	}
	_, said, _ = strings.Cut(said, ": ")
	return said
}

// Has reports whether the repository has a commit.
func (t *Tree) Has(ctx context.Context, commit string) bool {
	_, err := t.run(ctx, nil, "cat-file", "-e", commit+"^{commit}")
	return err == nil
}

// Touched returns the files of the project that each commit changed against its first parent.
// Commits that no longer exist are left out.
func (t *Tree) Touched(ctx context.Context, commits []string) (map[string][]string, error) {
	if len(commits) == 0 {
		return nil, nil
	}
	return ask(t, "", func(o *objects) (map[string][]string, error) {
		touched := map[string][]string{}
		for _, id := range commits {
			c, err := object.GetCommit(o, plumbing.NewHash(id))
			if err != nil {
				return nil, err // native git knows which are gone
			}
			if touched[id], err = o.touched(ctx, c, t.prefix); err != nil {
				return nil, err
			}
		}
		return touched, nil
	}, func() (map[string][]string, error) {
		out, err := t.run(ctx, nil, slices.Concat(
			[]string{"log", "--no-walk=unsorted", "--ignore-missing", "--first-parent", "-m", "--no-renames", "--name-only"},
			[]string{"--no-ext-diff", "--format=%n%H"}, commits, []string{"--"})...)
		touched, commit := map[string][]string{}, ""
		for line := range strings.Lines(string(out)) {
			line = strings.TrimSuffix(line, "\n")
			if objectID.MatchString(line) {
				commit = line
				continue
			}
			if plain, err := strconv.Unquote(line); err == nil {
				line = plain
			}
			if name, ok := strings.CutPrefix(line, t.below()); ok && name != "" {
				touched[commit] = append(touched[commit], name)
			}
		}
		return touched, err
	})
}

// A Version is a file in a commit.
type Version struct {
	Mode    string // git's mode; "" if the commit has no such file
	Content []byte // for a link, its target
}

// Version returns a file of the project in a commit.
func (t *Tree) Version(ctx context.Context, commit, name string) (v Version, err error) {
	literal := []string{"GIT_LITERAL_PATHSPECS=1"}
	out, err := t.run(ctx, literal, "ls-tree", "--full-tree", "-z", commit, "--", t.Below(name))
	mode, rest, _ := strings.Cut(string(out), " ")
	kind, rest, _ := strings.Cut(rest, " ")
	id, _, _ := strings.Cut(rest, "\t")
	if err != nil || kind != "blob" {
		return v, err
	}
	v.Mode = mode
	v.Content, err = t.run(ctx, nil, "cat-file", "blob", id)
	return v, err
}

// With returns a tree of the whole repository in which the named files of the project are replaced
// by those of a commit. scratch is a folder for the temporary index.
func (t *Tree) With(ctx context.Context, tree, commit string, names []string, scratch string) (string, error) {
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(scratch, "with"), "GIT_LITERAL_PATHSPECS=1"}
	if _, err := t.run(ctx, env, "read-tree", tree); err != nil {
		return "", err
	}
	args := []string{"ls-tree", "--full-tree", "-r", "-z", commit, "--"}
	var index strings.Builder
	for _, name := range names {
		fmt.Fprintf(&index, "0 %s\t%s\x00", strings.Repeat("0", len(tree)), t.Below(name))
		args = append(args, t.Below(name))
	}
	there, err := t.run(ctx, env, args...)
	if err != nil {
		return "", err
	}
	if _, err := t.runInput(ctx, env, index.String()+string(there), "update-index", "-z", "--index-info"); err != nil {
		return "", err
	}
	out, err := t.run(ctx, env, "write-tree")
	return strings.TrimSpace(string(out)), err
}

// Files returns the files that differ between two commits, relative to the top.
func (t *Tree) Files(ctx context.Context, from, to string) ([]string, error) {
	was, err := t.treeOf(ctx, from, "")
	if err != nil {
		return nil, err
	}
	is, err := t.treeOf(ctx, to, "")
	if err != nil {
		return nil, err
	}
	return t.differ(ctx, "", was, is)
}
