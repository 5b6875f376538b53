package worktree

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// unpackBelow is the maximum number of objects that are stored one by one; more stay in a pack. It
// is git's own limit.
const unpackBelow = 100

// Fetch copies a commit of a clone into the repository, with all needed objects that base lacks, and points ref at
// it. Git verifies them, because a session may have written them. base is a commit of the repository; "" for none.
//
// Unlike "git fetch" it does no negotiation, which two folders on one machine do not need, and leaves no pack for each
// session.
func (t *Tree) Fetch(ctx context.Context, from *Clone, base, commit, ref string) (err error) {
	pack, err := os.Create(filepath.Join(from.git, "pack"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pack.Close(), os.Remove(pack.Name())) }()
	wanted := commit + "\n"
	if base != "" {
		wanted += "^" + base + "\n"
	}
	if err := from.stream(ctx, strings.NewReader(wanted), pack,
		"pack-objects", "--quiet", "--revs", "--stdout", "--thin", "--delta-base-offset"); err != nil {
		return err
	}
	var head struct{ Signature, Version, Objects uint32 }
	if _, err := pack.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := binary.Read(pack, binary.BigEndian, &head); err != nil {
		return fmt.Errorf("git pack-objects: no pack: %w", err)
	}
	if _, err := pack.Seek(0, io.SeekStart); err != nil {
		return err
	}
	args := []string{"-c", "core.fsync=committed", "unpack-objects", "-q", "--strict"}
	if head.Objects >= unpackBelow {
		args = []string{"index-pack", "--stdin", "--fix-thin", "--strict"}
	}
	if err := t.stream(ctx, pack, io.Discard, args...); err != nil {
		return errors.Join(err, from.blame(ctx, commit, err.Error()))
	}
	return t.SetRef(ctx, ref, commit)
}

// FirstCommits returns the first commits of HEAD's history. There are none before the first commit, and none can be
// told in a shallow clone.
func (t *Tree) FirstCommits(ctx context.Context) ([]string, error) {
	head, err := t.Ref(ctx, "HEAD")
	if err != nil || head == "" {
		return nil, err
	}
	shallow, err := t.run(ctx, nil, "rev-parse", "--is-shallow-repository")
	if err != nil || strings.TrimSpace(string(shallow)) != "false" {
		return nil, err
	}
	out, err := t.run(ctx, nil, "rev-list", "--max-parents=0", head)
	return strings.Fields(string(out)), err
}

// Ref returns the commit of a ref, or the first parent of a commit written as ID^1; "" if there is none.
func (t *Tree) Ref(ctx context.Context, name string) (string, error) {
	return t.resolve(ctx, name+"^{commit}")
}

// SetRef points a ref at a commit; "" deletes the ref.
func (t *Tree) SetRef(ctx context.Context, name, commit string) error {
	if commit == "" {
		return t.updateRef(ctx, nil, name, "-d", name)
	}
	return t.updateRef(ctx, nil, name, name, commit)
}

// Ancestor reports whether a commit is an ancestor of another, or the same.
func (t *Tree) Ancestor(ctx context.Context, commit, of string) (bool, error) {
	if commit == of {
		return true, nil
	}
	_, err := t.run(ctx, nil, "merge-base", "--is-ancestor", commit, of)
	var exit *exitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return false, nil
	}
	return err == nil, err
}

// Fork returns the newest common ancestor of two commits.
func (t *Tree) Fork(ctx context.Context, one, other string) (string, error) {
	out, err := t.run(ctx, nil, "merge-base", one, other)
	return strings.TrimSpace(string(out)), err
}

// Replayed returns the commit below a rebase: below the commits of merged that have the authors, times and subjects of
// the commits of head. It is "" if merged is not the last of several such commits.
func (t *Tree) Replayed(ctx context.Context, head, merged string) (string, error) {
	fork, err := t.Fork(ctx, head, merged)
	if err != nil {
		return "", err
	}
	log := func(of string, args ...string) ([]string, error) {
		out, err := t.run(ctx, nil, append([]string{
			"log", "--no-show-signature", "--no-decorate", "--no-patch",
			"--max-count=" + strconv.Itoa(maxCommits), "--format=%an%x1f%ae%x1f%at%x1f%s", fork + ".." + of,
		}, args...)...)
		return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' }), err
	}
	work, err := log(head, "--no-merges")
	if err != nil {
		return "", err
	}
	landed, err := log(merged, "--first-parent")
	n := 0
	for n < len(landed) && slices.Contains(work, landed[n]) {
		n++
	}
	if err != nil || n < 2 {
		return "", err
	}
	return t.Ref(ctx, fmt.Sprintf("%s~%d", merged, n))
}

// History returns commits and all their ancestors, without those of commits after a "^".
func (t *Tree) History(ctx context.Context, tips []string) (map[string]bool, error) {
	all := map[string]bool{}
	if len(tips) == 0 {
		return all, nil
	}
	out, err := t.run(ctx, nil, append([]string{"rev-list"}, tips...)...)
	for id := range strings.FieldsSeq(string(out)) {
		all[id] = true
	}
	return all, err
}

// Count returns the number of commits on the first-parent line of of that lacks does not have.
func (t *Tree) Count(ctx context.Context, lacks, of string) (int, error) {
	out, err := t.run(ctx, nil, "rev-list", "--count", "--first-parent", lacks+".."+of)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(out)))
}

// A Merge is the result of merging two commits.
type Merge struct {
	Tree      string   // with conflict markers in the files that conflict
	Conflicts []string // files, relative to the top
}

// MergeTree merges two commits without a work tree. It is deterministic: the verified tree is the merged tree.
func (t *Tree) MergeTree(ctx context.Context, ours, theirs string) (m Merge, err error) {
	two := [2]string{ours, theirs}
	if m, ok := t.knownMerge(two); ok {
		return m, nil
	}
	overrides, err := t.overrides(ctx)
	if err != nil {
		return m, err
	}
	out, err := t.run(ctx, overrides, "merge-tree", "--write-tree", "--name-only", "-z", "--no-messages", ours, theirs)
	var exit *exitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		return m, err
	}
	parts := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	if !isID(parts[0]) { // status 1 means a conflict, or that one of the commits is missing
		return m, errors.Join(fmt.Errorf("git merge-tree of %.12s and %.12s named no tree", ours, theirs), err)
	}
	m.Tree, m.Conflicts = parts[0], parts[1:]
	t.known.mu.Lock()
	defer t.known.mu.Unlock()
	if t.known.merges == nil || len(t.known.merges) >= maxMerges {
		t.known.merges = map[[2]string]Merge{}
	}
	t.known.merges[two] = m
	return m, nil
}

// maxMerges bounds the cache of merges.
const maxMerges = 64

// knownMerge returns the cached result of a merge of two commits, if its tree still exists.
func (t *Tree) knownMerge(two [2]string) (m Merge, ok bool) {
	t.known.mu.Lock()
	defer t.known.mu.Unlock()
	m, ok = t.known.merges[two]
	return m, ok && isID(two[0]) && isID(two[1]) && exists(filepath.Join(t.common, "objects", m.Tree[:2], m.Tree[2:]))
}

// Branch returns the branch that is checked out; "" if there is none.
func (t *Tree) Branch(ctx context.Context) string {
	return strings.TrimPrefix(t.checkedOut(ctx), "refs/heads/")
}
