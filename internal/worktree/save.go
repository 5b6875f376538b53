package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"ralph"
)

// savedRefs holds saved states, out of reach of branches, stashes and `git gc`. They are only
// pushed by a push of all refs (`--mirror`).
const savedRefs = ownRefs + "snapshots/"

// ownRefs are ralph's own refs; their commits are not a session's work.
const ownRefs = "refs/ralph/"

// Bounds for saving ignored files: a person's .env, not a build.
const (
	maxIgnoredFile  = 1 << 20 // bytes
	maxIgnoredFiles = 1000
	savedKept       = 100     // states; the oldest are deleted
	maxPlain        = 1 << 20 // bytes; larger uncommitted files share maxLarge
)

// maxLarge bounds the total size of large files in all saved states, in bytes.
var maxLarge int64 = 512 << 20

// A Saved is a saved state of the uncommitted files.
type Saved struct {
	ID      int64      `json:"id"`
	Commit  string     `json:"commit"`
	Created ralph.Time `json:"created"`
	Message string     `json:"message"`           // why it was saved
	Files   int        `json:"files"`             // number of uncommitted files
	Omitted []string   `json:"omitted,omitempty"` // relative to the root; too large in addition to the states kept
	body    string     // rest of the commit's message
}

// Save stores the uncommitted files, untracked and small ignored ones included, as a commit under a
// ref of ralph's own. s and ignored must be fresh. It touches neither the index, the work tree nor
// a branch. ok is false if there is nothing to save, or nothing has changed since the last save.
func (t *Tree) Save(
	ctx context.Context, s Snapshot, ignored Ignored, scratch, message string,
) (saved Saved, ok bool, err error) {
	if t.git == "" || !t.native && t.prefix != "" {
		return Saved{}, false, nil
	}
	parent := s.Head
	tree, err := t.treeOf(ctx, parent, "")
	if err != nil {
		return Saved{}, false, err
	}
	// If the project is the whole work tree, the snapshot tells whether there is anything to save;
	// otherwise the rest has to be read as well.
	top := s.Content
	list, err := t.SavedStates(ctx)
	if err != nil {
		return Saved{}, false, err
	}
	omit, large, err := t.large(ctx, s, scratch, list)
	if err != nil {
		return Saved{}, false, fmt.Errorf("save uncommitted files: %w", err)
	}
	if t.prefix != "" {
		if top, err = t.makeTree(ctx, scratch, ignored.files, omit); err != nil {
			return Saved{}, false, fmt.Errorf("save uncommitted files: %w", err)
		}
	}
	if top == tree && len(ignored.files) == 0 {
		return Saved{}, false, nil
	}
	key := "Ralph-Content: " + top + "." + ignored.mark
	next := int64(1)
	if len(list) > 0 {
		next = list[0].ID + 1
		if strings.Contains(list[0].body, key) {
			return Saved{}, false, nil
		}
	}
	message += fmt.Sprintf("\n\n%s\n%s%d\n", key, largeKey, large)
	commit, err := ask(t, scratch, func(o *objects) (string, error) {
		if t.prefix != "" || len(ignored.files) > 0 || len(omit) > 0 {
			return "", errNative // the snapshot is not complete
		}
		return o.makeCommit(top, parent, message)
	}, func() (string, error) { return t.makeCommit(ctx, scratch, parent, message, ignored.files, omit) })
	if err == nil {
		next, err = ask(t, "", func(o *objects) (int64, error) { return o.name(t.common, next, commit) },
			func() (int64, error) { return t.name(ctx, next, commit) })
	}
	if err != nil {
		return Saved{}, false, fmt.Errorf("save uncommitted files: %w", err)
	}
	if !t.native {
		list = nil // old states are deleted when git is available
	}
	for _, old := range list[min(len(list), savedKept-1):] {
		// Another process may be deleting it right now. What stays is deleted the next time; the
		// new state is saved anyway.
		ref := savedRefs + strconv.FormatInt(old.ID, 10)
		if _, err := t.run(ctx, nil, "update-ref", "-d", ref); err != nil && ctx.Err() != nil {
			return Saved{}, false, err
		}
	}
	return Saved{ID: next, Commit: commit, Created: ralph.At(time.Now()), Message: message, Omitted: omit}, true, nil
}

// largeKey precedes the size of added large files in a saved state's message.
const largeKey = "Ralph-Large: "

// large returns the total size of the large files that a new state would add, and the files to omit
// because they would exceed maxLarge together with the states in the list.
func (t *Tree) large(
	ctx context.Context, s Snapshot, scratch string, list []Saved,
) (omit []string, added int64, err error) {
	if !t.native {
		return nil, 0, nil
	}
	kept := int64(0)
	for _, old := range list {
		var n int64
		if _, after, ok := strings.Cut(old.body, largeKey); ok {
			if _, err := fmt.Sscan(after, &n); err == nil {
				kept += n
			}
		}
	}
	base, err := t.Committed(ctx, s.Head)
	if err != nil {
		return nil, 0, err
	}
	files, err := t.differing(ctx, scratch, s.Content, base)
	for _, f := range files {
		info, lerr := os.Lstat(filepath.Join(t.root, filepath.FromSlash(f.path)))
		if lerr != nil || !info.Mode().IsRegular() || info.Size() <= maxPlain {
			continue // vanished, or small
		}
		if _, known := t.id(ctx, f.id+"^{blob}"); known == nil {
			continue // its content is stored already
		}
		if kept+added+info.Size() > maxLarge {
			omit = append(omit, f.path)
			continue
		}
		added += info.Size()
	}
	return omit, added, err
}

// emptyTree is the id of git's empty tree.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// name gives a saved state the first free number. Another process may take it at the same moment,
// or a power cut may have left a lock: then it tries the next.
func (t *Tree) name(ctx context.Context, first int64, commit string) (id int64, err error) {
	for id = first; id < first+maxTaken; id++ {
		_, err = t.run(ctx, nil, "update-ref", savedRefs+strconv.FormatInt(id, 10), commit, strings.Repeat("0", len(commit)))
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "exists") {
			break
		}
	}
	return id, err
}

// maxTaken bounds how many numbers are tried.
const maxTaken = 1000

// makeCommit makes a commit of a tree in the scratch folder, in the repository's own objects.
func (o *objects) makeCommit(tree, parent, message string) (string, error) {
	if err := o.own(plumbing.NewHash(tree)); err != nil {
		return "", err
	}
	var parents []string
	if parent != "" {
		parents = []string{parent}
	}
	return o.commitTree(tree, parents, message, asRalph)
}

// own copies a tree from the scratch folder into the repository. Native git copies large files in
// less memory.
func (o *objects) own(id plumbing.Hash) error {
	if o.Storage.HasEncodedObject(id) == nil {
		return nil
	}
	if n, err := o.EncodedObjectSize(id); err != nil || n > maxLines {
		return cmp.Or(err, errNative)
	}
	e, err := o.EncodedObject(plumbing.AnyObject, id)
	if err != nil {
		return err
	}
	if e.Type() == plumbing.TreeObject {
		inner, err := o.entries(id)
		if err != nil {
			return err
		}
		for _, entry := range inner {
			if entry.Mode == filemode.Submodule {
				continue
			}
			if err := o.own(entry.Hash); err != nil {
				return err
			}
		}
	}
	_, err = o.Storage.SetEncodedObject(e)
	return err
}

// name is [Tree.name] with go-git; the ref file appears atomically.
func (o *objects) name(common string, first int64, commit string) (id int64, err error) {
	file, err := refFile(common, commit)
	if err != nil {
		return 0, err
	}
	defer os.Remove(file)
	folder := filepath.Join(common, filepath.FromSlash(savedRefs))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return 0, err
	}
	for id = first; id < first+maxTaken; id++ {
		name := strconv.FormatInt(id, 10)
		if _, packed := o.Reference(plumbing.ReferenceName(savedRefs + name)); packed == nil {
			continue
		}
		if err = os.Link(file, filepath.Join(folder, name)); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return id, err
}

// makeCommit makes a commit of the work tree, in the repository's own objects.
func (t *Tree) makeCommit(
	ctx context.Context, scratch, parent, message string, ignored, omit []string,
) (string, error) {
	tree, err := t.makeTree(ctx, scratch, ignored, omit)
	if err != nil {
		return "", err
	}
	var parents []string
	if parent != "" {
		parents = append(parents, parent)
	}
	return t.CommitTree(ctx, tree, parents, message, [2]string{})
}

// makeTree makes a tree of the whole work tree, not only the project; files to omit stay as the
// index has them.
func (t *Tree) makeTree(ctx context.Context, scratch string, ignored, omit []string) (string, error) {
	index := filepath.Join(scratch, "save-index")
	links, err := t.copyIndex(filepath.Join(t.git, "index"), index)
	if err != nil {
		return "", err
	}
	defer os.Remove(index)
	overrides, err := t.overrides(ctx)
	if err != nil {
		return "", err
	}
	env := append(slices.Clip(overrides), "GIT_INDEX_FILE="+index)
	if _, err := t.addAll(ctx, env, ":/", links, omit...); err != nil {
		return "", err
	}
	if len(ignored) > 0 {
		if err := t.addIgnored(ctx, env, ignored); err != nil {
			return "", err
		}
	}
	tree, err := t.run(ctx, env, "write-tree")
	return strings.TrimSpace(string(tree)), err
}

// top returns the top of the work tree; paths of saved files are relative to it.
func (t *Tree) top() string { return strings.TrimSuffix(strings.TrimSuffix(t.root, t.prefix), "/") }

// id returns the object id that a revision resolves to.
func (t *Tree) id(ctx context.Context, name string) (string, error) {
	out, err := t.run(ctx, nil, "rev-parse", "--verify", "--quiet", name)
	return strings.TrimSpace(string(out)), err
}

// SavedStates lists the states that [Tree.Save] stored, newest first.
func (t *Tree) SavedStates(ctx context.Context) ([]Saved, error) {
	if t.git == "" {
		return []Saved{}, nil
	}
	list, err := ask(t, "", (*objects).saved, func() (list []Saved, err error) {
		out, err := t.run(ctx, nil, "for-each-ref",
			"--format=%(refname)%00%(objectname)%00%(committerdate:unix)%00%(contents)%00", savedRefs)
		for fields := range slices.Chunk(strings.Split(string(out), "\x00"), 4) {
			if len(fields) < 4 {
				break
			}
			seconds, err := strconv.ParseInt(fields[2], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("git for-each-ref: %w", err)
			}
			list = addSaved(list, strings.TrimSpace(fields[0]), fields[1], time.Unix(seconds, 0), fields[3])
		}
		return list, err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b Saved) int { return int(b.ID - a.ID) })
	return append([]Saved{}, list...), nil
}

// addSaved adds a saved state, unless the ref is not ralph's.
func addSaved(list []Saved, ref, commit string, at time.Time, message string) []Saved {
	id, err := strconv.ParseInt(strings.TrimPrefix(ref, savedRefs), 10, 64)
	if err != nil {
		return list
	}
	subject, body, _ := strings.Cut(message, "\n")
	return append(list, Saved{ID: id, Commit: commit, Created: ralph.At(at), Message: subject, body: body})
}

// saved lists the saved states with go-git.
func (o *objects) saved() (list []Saved, err error) {
	refs, err := o.IterReferences()
	if err != nil {
		return nil, err
	}
	defer refs.Close()
	return list, refs.ForEach(func(r *plumbing.Reference) error {
		if !strings.HasPrefix(string(r.Name()), savedRefs) {
			return nil
		}
		c, err := o.commit(r.Hash())
		if err != nil || c == nil {
			return cmp.Or(err, errNative)
		}
		list = addSaved(list, string(r.Name()), c.Hash.String(), c.Committer.When, c.Message)
		return nil
	})
}

// SavedFiles lists the files of a saved state that were added or modified since its commit,
// relative to the top of the work tree.
func (t *Tree) SavedFiles(ctx context.Context, s Saved) ([]string, error) {
	return ask(t, "", func(o *objects) (names []string, err error) {
		c, err := o.commit(plumbing.NewHash(s.Commit))
		if err != nil || c == nil {
			return nil, cmp.Or(err, errNative)
		}
		base := plumbing.ZeroHash
		if len(c.ParentHashes) > 0 {
			id, err := o.treeID(c.ParentHashes[0].String(), "")
			if err != nil {
				return nil, err
			}
			base = plumbing.NewHash(id)
		}
		list, err := o.deltas(ctx, base, c.TreeHash, "")
		for _, d := range list {
			if !d.is.Hash.IsZero() {
				names = append(names, d.path)
			}
		}
		return names, err
	}, func() ([]string, error) {
		base := emptyTree
		if parent, err := t.id(ctx, s.Commit+"^"); err == nil {
			base = parent
		}
		out, err := t.run(ctx, nil, "diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=d",
			"--no-commit-id", base, s.Commit)
		return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), err
	})
}

// ErrNoSaved says that there is no saved state with a number.
var ErrNoSaved = errors.New("no such snapshot")

// Saved returns one saved state. The error wraps [ErrNoSaved] if there is none.
func (t *Tree) Saved(ctx context.Context, id int64) (Saved, error) {
	list, err := t.SavedStates(ctx)
	if err != nil {
		return Saved{}, err
	}
	for _, s := range list {
		if s.ID == id {
			return s, nil
		}
	}
	return Saved{}, fmt.Errorf("snapshot %d: %w; see `ralph snapshot list`", id, ErrNoSaved)
}

// Restore writes files of a saved state into the work tree and overwrites what is there: save
// first. The index and the branch stay as they are.
func (t *Tree) Restore(ctx context.Context, s Saved, files []string) error {
	if len(files) == 0 {
		return nil
	}
	if !t.native {
		return errNoGit
	}
	overrides, err := t.overrides(ctx)
	if err != nil {
		return err
	}
	// A file in place of a folder would be in the way.
	for _, f := range files {
		if err := t.clear(f); err != nil {
			return err
		}
	}
	_, err = t.runInput(ctx, append(slices.Clip(overrides), "GIT_LITERAL_PATHSPECS=1"), strings.Join(files, "\x00"),
		"-C", t.top(), "restore", "--source="+s.Commit, "--worktree", "--pathspec-from-file=-", "--pathspec-file-nul")
	return err
}

// clear removes a file that is in the place of one of path's folders.
func (t *Tree) clear(path string) error {
	for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
		full := filepath.Join(t.top(), dir)
		if info, err := os.Lstat(full); err == nil && !info.IsDir() {
			return os.Remove(full)
		}
	}
	return nil
}

// Missing returns those of the given files that no longer exist in the work tree.
func (t *Tree) Missing(files []string) ([]string, error) {
	var missing []string
	for _, f := range files {
		_, err := os.Lstat(filepath.Join(t.top(), f))
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR): // a file replaced its folder
			missing = append(missing, f)
		case err != nil:
			return nil, err
		}
	}
	return missing, nil
}
