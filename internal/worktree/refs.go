package worktree

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing"

	"ralph"
	"ralph/internal/text"
)

// ask answers with go-git, or with native git if go-git cannot: of a clone, which is not trusted, with
// SHA-256 and reftables, and of what is far away in a large history.
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

// nativeRefs reads the refs with a prefix with native git.
func (t *Tree) nativeRefs(ctx context.Context, prefix string) (map[string]string, error) {
	out, err := t.run(ctx, nil, "for-each-ref", "--format=%(objectname) %(refname)", prefix)
	refs := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if id, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			refs[name] = id
		}
	}
	return refs, err
}

// Bounds for reading the refs of a clone.
const (
	maxRefFiles = 2000 // and folders
	maxPacked   = 16 << 20
)

// refs returns what all refs point to.
func (o *objects) refs() (map[string]string, error) {
	refs := map[string]string{}
	list, err := o.IterReferences()
	if err != nil {
		return refs, err
	}
	defer list.Close()
	return refs, list.ForEach(func(r *plumbing.Reference) error {
		name := string(r.Name())
		for hops := 0; r.Type() == plumbing.SymbolicReference && hops < 5; hops++ {
			if r, err = o.Reference(r.Target()); err != nil {
				return nil //nolint:nilerr // a dangling ref, such as HEAD before the first commit
			}
		}
		if strings.HasPrefix(name, "refs/") && !r.Hash().IsZero() {
			refs[name] = r.Hash().String()
		}
		return nil
	})
}

// refsOfTheirs reads the refs in the .git of a clone. As that is not trusted, go-git does not see it: it would
// follow links and wait for pipes. What is not as git usually writes it is left to native git.
func (t *Tree) refsOfTheirs() (refs map[string]string, err error) {
	for _, dir := range []string{t.theirs, filepath.Join(t.theirs, "refs")} {
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			return nil, cmp.Or(err, errNative)
		}
	}
	root, err := os.OpenRoot(t.theirs)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	read := func(name string, most int64) ([]byte, error) {
		f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return nil, err
		}
		return readOpen(f, most)
	}
	refs = map[string]string{}
	add := func(name, id string) error {
		if !isID(id) || strings.Trim(id, "0") == "" || plumbing.ReferenceName(name).Validate() != nil {
			return errNative
		}
		if refs[name] == "" { // one that is also packed was packed earlier
			refs[name] = id
		}
		return nil
	}
	// Git may pack them meanwhile: the files are read first.
	seen := 0
	if err := fs.WalkDir(root.FS(), "refs", func(name string, entry fs.DirEntry, err error) error {
		if seen++; seen > maxRefFiles {
			return errNative
		}
		if errors.Is(err, fs.ErrNotExist) || err == nil && entry.IsDir() || strings.HasSuffix(name, ".lock") {
			return nil
		}
		if err != nil {
			return err
		}
		text, err := read(name, maxHead)
		if err != nil {
			return err
		}
		return add(name, strings.TrimSpace(string(text)))
	}); err != nil {
		return nil, err
	}
	packed, err := read("packed-refs", maxPacked)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(packed)) {
		if line[0] == '#' || line[0] == '^' { // a comment, or what a tag points to
			continue
		}
		id, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if err := add(name, id); err != nil {
			return nil, err
		}
	}
	return refs, nil
}

// head returns HEAD's commit and branch; "" where there is none.
func (t *Tree) head(ctx context.Context) (commit, branch string) {
	type head struct{ commit, branch string }
	if at, err := t.copyHead(); err != nil || isID(at) {
		return at, ""
	}
	h, err := ask(t, func(o *objects) (h head, err error) {
		r, err := o.Reference(plumbing.HEAD)
		if err == nil && r.Type() == plumbing.SymbolicReference {
			h.branch = string(r.Target())
			r, err = o.Reference(r.Target())
			if errors.Is(err, plumbing.ErrReferenceNotFound) {
				return h, nil
			}
		}
		if err != nil || r.Type() == plumbing.SymbolicReference {
			return h, cmp.Or(err, errNative)
		}
		h.commit = r.Hash().String()
		return h, o.HasEncodedObject(r.Hash())
	}, func() (h head, _ error) {
		if out, err := t.run(ctx, nil, "rev-parse", "--verify", "--quiet", "HEAD"); err == nil {
			h.commit = strings.TrimSpace(string(out))
		}
		if out, err := t.run(ctx, nil, "symbolic-ref", "--quiet", "HEAD"); err == nil {
			h.branch = strings.TrimSpace(string(out))
		}
		return h, nil
	})
	if err != nil {
		return "", ""
	}
	return h.commit, h.branch
}

// Committed returns the tree of the project in a commit, the empty tree if commit is "".
func (t *Tree) Committed(ctx context.Context, commit string) (string, error) {
	return t.treeOf(ctx, commit, t.prefix)
}

// treeOf returns the tree of a commit, or of a folder in it; the empty tree if commit is "".
func (t *Tree) treeOf(ctx context.Context, commit, folder string) (string, error) {
	if commit == "" {
		return emptyTree, nil
	}
	ours := func(o *objects) (string, error) { return o.treeID(commit, folder) }
	if t.lender != nil { // a clone is mostly asked about a commit of the repository
		if id, err := ask(t.lender, ours, func() (string, error) { return "", errNative }); err == nil {
			return id, nil
		}
	}
	return ask(t, ours, func() (string, error) {
		if folder == "" {
			return t.id(ctx, commit+"^{tree}")
		}
		id, err := t.id(ctx, commit+":"+folder)
		if complains(err) && ctx.Err() == nil {
			return emptyTree, nil // the folder is in no commit yet
		}
		return id, err
	})
}

// differ returns the names of the files that differ between two trees.
func (t *Tree) differ(ctx context.Context, from, to string) ([]string, error) {
	if from == to {
		return nil, nil
	}
	return ask(t, func(o *objects) (names []string, err error) {
		list, err := o.deltas(ctx, plumbing.NewHash(from), plumbing.NewHash(to), "")
		for _, d := range list {
			names = append(names, d.path)
		}
		return names, err
	}, func() ([]string, error) { return t.namesOfDiff(ctx, nil, from, to) })
}

// Moved returns the files that differ between two trees that [Tree.Snapshot] wrote into a scratch folder.
func (t *Tree) Moved(ctx context.Context, scratch, from, to string) ([]string, error) {
	return t.namesOfDiff(ctx, t.environment(scratch), from, to)
}

func (t *Tree) namesOfDiff(ctx context.Context, env []string, from, to string) ([]string, error) {
	out, err := t.run(ctx, env, "diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", from, to)
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), err
}

// maxCommits bounds how many commits of a session are listed.
const maxCommits = 1000

// Commits returns the commits that a commit has and another one lacks, newest first.
func (t *Tree) Commits(ctx context.Context, of, lacks string) ([]ralph.Commit, error) {
	if of == lacks {
		return nil, nil
	}
	return ask(t, func(o *objects) (list []ralph.Commit, err error) {
		commits, err := o.walk(ctx, []string{of}, []string{lacks})
		for _, c := range commits[:min(len(commits), maxCommits)] {
			if c.Encoding != "" && c.Encoding != "UTF-8" {
				return nil, errNative
			}
			subject, _, _ := strings.Cut(strings.TrimLeft(c.Message, "\n"), "\n\n")
			subject = strings.ReplaceAll(strings.TrimSpace(subject), "\n", " ")
			list = append(list, ralph.Commit{
				ID: c.Hash.String(), Author: text.Clip(c.Author.Name, 60), Subject: text.Clip(subject, 60),
			})
		}
		return list, err
	}, func() (list []ralph.Commit, err error) {
		// %x1f cannot occur in a name or a subject, since git removes control characters.
		out, err := t.run(ctx, nil, "log", "--no-show-signature", "--no-decorate", "--no-patch",
			"--max-count="+strconv.Itoa(maxCommits), "--format=%H%x1f%an%x1f%s", lacks+".."+of)
		for line := range strings.Lines(string(out)) {
			if f := strings.SplitN(strings.TrimSuffix(line, "\n"), "\x1f", 3); len(f) == 3 {
				list = append(list, ralph.Commit{ID: f[0], Author: text.Clip(f[1], 60), Subject: text.Clip(f[2], 60)})
			}
		}
		return list, err
	})
}
