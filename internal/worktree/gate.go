package worktree

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"ralph"
)

// A Pair is a file that differs between two trees, relative to the top, and its contents: nil if it does not exist.
// The content of a binary file, or of one larger than 1 MiB, is its id.
type Pair struct {
	ralph.Blob
	Was, Is []byte
}

// Pairs returns the files that differ between two commits or trees.
func (t *Tree) Pairs(ctx context.Context, from, to string) ([]Pair, error) {
	was, err := t.Whole(ctx, from)
	if err != nil {
		return nil, err
	}
	is, err := t.Whole(ctx, to)
	if err != nil {
		return nil, err
	}
	return ask(t, func(o *objects) (list []Pair, err error) {
		deltas, err := o.deltas(ctx, plumbing.NewHash(was), plumbing.NewHash(is), "")
		for _, d := range deltas {
			p := Pair{Blob: ralph.Blob{Path: d.path}}
			for _, side := range []struct {
				entry   object.TreeEntry
				id      *string
				content *[]byte
			}{{d.was, &p.From, &p.Was}, {d.is, &p.To, &p.Is}} {
				if side.entry.Hash.IsZero() {
					continue
				}
				*side.id = side.entry.Hash.String()
				text, ok, err := o.text(side.entry)
				if err != nil {
					return nil, err
				}
				if !ok {
					text = *side.id
				}
				*side.content = []byte(text)
			}
			list = append(list, p)
		}
		return list, err
	}, func() (list []Pair, err error) {
		changes, err := t.raw(ctx, was, is)
		for _, c := range changes {
			p := Pair{Blob: ralph.Blob{Path: c.path, From: c.was, To: c.is}}
			p.Was, p.Is = t.content(ctx, c.modes[0], c.was), t.content(ctx, c.modes[1], c.is)
			list = append(list, p)
		}
		return list, err
	})
}

// content returns the text of a file, as git reads it: see [Pair].
func (t *Tree) content(ctx context.Context, mode, id string) []byte {
	switch {
	case id == "":
		return nil
	case mode == moduleMode:
		return []byte("Subproject commit " + id + "\n")
	}
	b, err := t.run(ctx, nil, "cat-file", "blob", id)
	if err != nil || len(b) > maxLines || isBinary(b) {
		return []byte(id)
	}
	return b
}

// Content returns the first MiB of a file in a commit, by its path relative to the top; nil if it is missing.
func (t *Tree) Content(ctx context.Context, commit, name string) []byte {
	content, err := ask(t, func(o *objects) ([]byte, error) {
		c, err := object.GetCommit(o, plumbing.NewHash(commit))
		if err != nil {
			return nil, err
		}
		f, err := c.File(filepath.ToSlash(filepath.Clean(name)))
		if err != nil {
			return nil, nil //nolint:nilerr // the file does not exist
		}
		r, err := f.Reader()
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return io.ReadAll(io.LimitReader(r, maxLines))
	}, func() ([]byte, error) { return t.run(ctx, nil, "cat-file", "blob", commit+":"+name) })
	if err != nil {
		return nil
	}
	return content[:min(len(content), maxLines)]
}

// An Exchange gives a file of a tree the content from another commit, or the given content if the commit has the file.
// Its path is relative to the top.
type Exchange struct {
	Path    string
	Content []byte
}

// Exchanged returns a tree of the whole repository with files exchanged. State is a folder for the temporary index.
func (t *Tree) Exchanged(ctx context.Context, tree, from string, files []Exchange, state string) (_ string, err error) {
	scratch, err := os.MkdirTemp(state, "index-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(scratch, "index"), "GIT_LITERAL_PATHSPECS=1"}
	if _, err := t.run(ctx, env, "read-tree", tree); err != nil {
		return "", err
	}
	args := []string{"ls-tree", "--full-tree", "-r", "-z", from, "--"}
	own := map[string]string{}
	var gone, there, paths strings.Builder
	var changed []string
	for i, f := range files {
		fmt.Fprintf(&gone, "0 %s\t%s\x00", strings.Repeat("0", len(tree)), f.Path)
		args = append(args, f.Path)
		if f.Content != nil {
			at := filepath.Join(scratch, strconv.Itoa(i))
			if err := os.WriteFile(at, f.Content, 0o600); err != nil {
				return "", err
			}
			changed = append(changed, f.Path)
			fmt.Fprintln(&paths, at)
		}
	}
	if len(changed) > 0 {
		ids, err := t.runInput(ctx, nil, paths.String(), "hash-object", "-w", "--no-filters", "--stdin-paths")
		if err != nil {
			return "", err
		}
		for i, id := range strings.Fields(string(ids)) {
			own[changed[i]] = id
		}
	}
	listed, err := t.run(ctx, env, args...)
	if err != nil {
		return "", err
	}
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(listed), "\x00"), "\x00") {
		meta, name, ok := strings.Cut(entry, "\t")
		if !ok {
			continue
		}
		fields := strings.Fields(meta)
		if id, ok := own[name]; ok {
			fields[2] = id
		}
		fmt.Fprintf(&there, "%s %s\t%s\x00", fields[0], fields[2], name)
	}
	index := gone.String() + there.String()
	if _, err := t.runInput(ctx, env, index, "update-index", "-z", "--replace", "--index-info"); err != nil {
		return "", err
	}
	out, err := t.run(ctx, env, "write-tree")
	return strings.TrimSpace(string(out)), err
}

// Variant makes a copy of a commit with another tree, so that commands in it see the same history.
func (t *Tree) Variant(ctx context.Context, commit, tree string) (string, error) {
	parents, message, err := t.describes(ctx, commit)
	if err != nil {
		return "", err
	}
	return t.CommitTree(ctx, tree, parents, message, t.User(ctx))
}

// describes returns the parents and the message of a commit.
func (t *Tree) describes(ctx context.Context, commit string) (parents []string, message string, err error) {
	out, err := t.run(ctx, nil, "show", "--no-patch", "--format=%P%x00%B", commit)
	if err != nil {
		return nil, "", err
	}
	list, message, _ := strings.Cut(string(out), "\x00")
	return strings.Fields(list), strings.TrimSpace(message) + "\n", nil
}

// signLimit is the time limit of a signature: a program that asks invisibly for a passphrase never ends.
const signLimit = 30 * time.Second

// Signed makes a copy of a commit with the person's signature and onto as its first parent. The person's git signs
// it as configured, in the environment env.
func (t *Tree) Signed(ctx context.Context, commit, onto string, env []string) (string, error) {
	parents, message, err := t.describes(ctx, commit)
	if err != nil {
		return "", err
	}
	tree, err := t.Whole(ctx, commit)
	if err != nil {
		return "", err
	}
	args := []string{"commit-tree", "-S", "-F", "-"}
	for i, parent := range parents {
		if i == 0 {
			parent = onto
		}
		args = append(args, "-p", parent)
	}
	user := t.User(ctx)
	if user[0] == "" {
		user = asRalph
	}
	env = slices.Concat(passedOn(env), t.here(), signed(user))
	out, err := runExactly(ctx, signLimit, t.root, env, message, append(args, tree))
	return strings.TrimSpace(string(out)), err
}
