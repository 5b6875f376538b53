package worktree

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"ralph"
	"ralph/internal/text"
)

// ask answers with go-git, or with native git if go-git cannot: in a clone, which is not trusted, with SHA-256 or
// reftables, and deep in a large history.
func ask[T any](t *Tree, ours func(*objects) (T, error), native func() (T, error)) (v T, err error) {
	o, err := t.objects()
	if err == nil {
		t.known.reading.Lock()
		v, err = ours(o)
		t.known.reading.Unlock()
	}
	if err == nil {
		return v, nil
	}
	return native()
}

// Refs returns the refs with a prefix and their commits.
func (t *Tree) Refs(ctx context.Context, prefix string) (map[string]string, error) {
	return t.refs(ctx, prefix)
}

// Unmerged returns the refs with prefixes whose commits are not part of head, and their commits: the newest, up to a
// maximum number.
func (t *Tree) Unmerged(ctx context.Context, head string, most int, prefixes ...string) (map[string]string, error) {
	options := []string{"--no-merged=" + head, "--sort=-committerdate", "--count=" + strconv.Itoa(most)}
	return t.refs(ctx, slices.Concat(options, prefixes)...)
}

func (t *Tree) refs(ctx context.Context, args ...string) (map[string]string, error) {
	args = slices.Concat([]string{"for-each-ref", "--format=%(objectname) %(refname)"}, args)
	out, err := t.run(ctx, nil, args...)
	refs := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if id, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			refs[name] = id
		}
	}
	return refs, err
}

// At returns HEAD's commit; "" before the first one, or if HEAD cannot be read.
func (t *Tree) At(ctx context.Context) (commit string) {
	if at, err := t.copyHead(); err != nil || isID(at) {
		return at
	}
	if commit, _ = t.resolve(ctx, "HEAD^{commit}"); commit == "" {
		commit, _ = t.resolveAlone(ctx, "HEAD") // the commit may be missing
	}
	return commit
}

// checkedOut returns the ref of the branch that is checked out; "" if there is none. It is for work trees that are
// trusted.
func (t *Tree) checkedOut(ctx context.Context) string {
	out, err := t.run(ctx, nil, "symbolic-ref", "--quiet", "HEAD")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// Committed returns the tree of the project in a commit; the empty tree if commit is "".
func (t *Tree) Committed(ctx context.Context, commit string) (string, error) {
	return t.treeOf(ctx, commit, t.prefix)
}

// treeOf returns the tree of a commit, or of a folder in it; the empty tree if commit is "".
func (t *Tree) treeOf(ctx context.Context, commit, folder string) (string, error) {
	if commit == "" {
		return emptyTree, nil
	}
	if folder == "" {
		return t.id(ctx, commit+"^{tree}")
	}
	id, err := t.resolve(ctx, commit+":"+folder)
	return cmp.Or(id, emptyTree), err // no commit may have the folder yet
}

// differ returns the names of the files that differ between two trees.
func (t *Tree) differ(ctx context.Context, from, to string) ([]string, error) {
	if from == to {
		return nil, nil
	}
	return t.namesOfDiff(ctx, nil, from, to)
}

// Moved returns the files that differ between two trees that [Tree.Snapshot] wrote into a scratch folder.
func (t *Tree) Moved(ctx context.Context, scratch, from, to string) ([]string, error) {
	return t.namesOfDiff(ctx, t.environment(scratch), from, to)
}

func (t *Tree) namesOfDiff(ctx context.Context, env []string, from, to string) ([]string, error) {
	out, err := t.run(ctx, env, "diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", from, to)
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), err
}

// maxCommits is the maximum number of listed commits of a session.
const maxCommits = 1000

// Commits returns the commits that one commit has and another lacks, newest first.
func (t *Tree) Commits(ctx context.Context, of, lacks string) (list []ralph.Commit, err error) {
	if of == lacks {
		return nil, nil
	}
	// %x1f cannot occur in a name or a subject, since git removes control characters.
	out, err := t.run(ctx, nil, "log", "--no-show-signature", "--no-decorate", "--no-patch",
		"--max-count="+strconv.Itoa(maxCommits), "--format=%H%x1f%an%x1f%s", lacks+".."+of)
	for line := range strings.Lines(string(out)) {
		if f := strings.SplitN(strings.TrimSuffix(line, "\n"), "\x1f", 3); len(f) == 3 {
			list = append(list, ralph.Commit{ID: f[0], Author: text.Clip(f[1], 60), Subject: text.Clip(f[2], 60)})
		}
	}
	return list, err
}
