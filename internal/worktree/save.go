package worktree

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	"github.com/go-git/go-git/v5/plumbing/object"

	"ralph"
)

// savedRefs is where saved states are, out of reach of branches, stashes and
// `git gc`. Nothing pushes them but a push of all refs (`--mirror`).
const savedRefs = "refs/ralph/snapshots/"

// Bounds of what is saved of files that git ignores: a person's .env, not a build.
const (
	maxIgnoredFile  = 1 << 20 // bytes
	maxIgnoredFiles = 1000
	savedKept       = 100 // states; the oldest are dropped
)

// A Saved is a state of the uncommitted files that was kept.
type Saved struct {
	ID      int64      `json:"id"`
	Commit  string     `json:"commit"`
	Created ralph.Time `json:"created"`
	Message string     `json:"message"` // why it was saved
	Files   int        `json:"files"`   // that were not committed
	body    string     // of the commit's message
}

// Save keeps what is not committed, untracked files and small ignored ones
// included, as a commit that a ref of ralph's own holds. s and ignored were just
// taken. It touches neither the index, the work tree nor a branch. ok is false
// if there is nothing to keep, or nothing that has changed since the last time.
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
	// Of a project that is the whole work tree the snapshot tells whether there is
	// anything to keep; of one below the top the rest has to be looked at.
	top := s.Content
	if t.prefix != "" {
		if top, err = t.keepTree(ctx, scratch, ignored.files); err != nil {
			return Saved{}, false, fmt.Errorf("save uncommitted files: %w", err)
		}
	}
	if top == tree && len(ignored.files) == 0 {
		return Saved{}, false, nil
	}
	key := "Ralph-Content: " + top + "." + ignored.mark
	list, err := t.SavedStates(ctx)
	if err != nil {
		return Saved{}, false, err
	}
	next := int64(1)
	if len(list) > 0 {
		next = list[0].ID + 1
		if strings.Contains(list[0].body, key) {
			return Saved{}, false, nil
		}
	}
	message += "\n\n" + key + "\n"
	commit, err := ask(t, scratch, func(o *objects) (string, error) {
		if t.prefix != "" || len(ignored.files) > 0 {
			return "", errNative // the snapshot has not got all of it
		}
		return o.keep(top, parent, message)
	}, func() (string, error) { return t.keep(ctx, scratch, parent, message, ignored.files) })
	if err == nil {
		next, err = ask(t, "", func(o *objects) (int64, error) { return o.name(t.common, next, commit) },
			func() (int64, error) { return t.name(ctx, next, commit) })
	}
	if err != nil {
		return Saved{}, false, fmt.Errorf("save uncommitted files: %w", err)
	}
	if !t.native {
		list = nil // they are dropped when there is a git
	}
	for _, old := range list[min(len(list), savedKept-1):] {
		// Another process that saves may be dropping it at this moment, and what stays is
		// dropped the next time: this one is kept all the same.
		ref := savedRefs + strconv.FormatInt(old.ID, 10)
		if _, err := t.run(ctx, nil, "update-ref", "-d", ref); err != nil && ctx.Err() != nil {
			return Saved{}, false, err
		}
	}
	return Saved{ID: next, Commit: commit, Created: ralph.At(time.Now()), Message: message}, true, nil
}

// emptyTree is git's id of a tree without files.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// name gives a saved state the first number that is free. Another process may take one
// at the same moment, and a power cut may have left a lock at one: then it is the next.
func (t *Tree) name(ctx context.Context, first int64, commit string) (id int64, err error) {
	for id = first; id < first+maxTaken; id++ {
		_, err = t.run(ctx, nil, "update-ref", savedRefs+strconv.FormatInt(id, 10), commit, strings.Repeat("0", len(commit)))
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "exists") {
			break
		}
	}
	return id, err
}

// maxTaken bounds how many numbers are tried: as many as may be taken meanwhile.
const maxTaken = 1000

// keep makes a commit of a tree of the scratch folder, in the repository's own objects.
func (o *objects) keep(tree, parent, message string) (string, error) {
	if err := o.own(plumbing.NewHash(tree)); err != nil {
		return "", err
	}
	by := object.Signature{Name: "ralph", Email: "ralph@localhost", When: time.Now()}
	c := object.Commit{Author: by, Committer: by, Message: message, TreeHash: plumbing.NewHash(tree)}
	if parent != "" {
		c.ParentHashes = []plumbing.Hash{plumbing.NewHash(parent)}
	}
	e := o.NewEncodedObject()
	if err := c.Encode(e); err != nil {
		return "", err
	}
	id, err := o.Storage.SetEncodedObject(e)
	return id.String(), err
}

// own copies what the scratch folder has of a tree into the repository. Large files
// native git copies in less memory.
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

// name is [Tree.name] by a file that is there as a whole or not at all.
func (o *objects) name(common string, first int64, commit string) (id int64, err error) {
	f, err := os.CreateTemp(common, "ralph-ref-*") // beside the refs it would be one
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(commit + "\n")
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	folder := filepath.Join(common, filepath.FromSlash(savedRefs))
	if err = errors.Join(err, os.MkdirAll(folder, 0o755)); err != nil {
		return 0, err
	}
	for id = first; id < first+maxTaken; id++ {
		name := strconv.FormatInt(id, 10)
		if _, packed := o.Reference(plumbing.ReferenceName(savedRefs + name)); packed == nil {
			continue
		}
		if err = os.Link(f.Name(), filepath.Join(folder, name)); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return id, err
}

// author are the names under which saved states are committed, and other commits
// where git knows of none.
var author = []string{
	"GIT_AUTHOR_NAME=ralph", "GIT_AUTHOR_EMAIL=ralph@localhost",
	"GIT_COMMITTER_NAME=ralph", "GIT_COMMITTER_EMAIL=ralph@localhost",
}

// keep makes a commit of the work tree, in the repository's own objects.
func (t *Tree) keep(ctx context.Context, scratch, parent, message string, ignored []string) (string, error) {
	tree, err := t.keepTree(ctx, scratch, ignored)
	if err != nil {
		return "", err
	}
	args := []string{"commit-tree", "-F", "-"}
	if parent != "" {
		args = append(args, "-p", parent)
	}
	out, err := t.runInput(ctx, author, message, append(args, tree)...)
	return strings.TrimSpace(string(out)), err
}

// keepTree makes a tree of the whole work tree, also of what is beside the project.
func (t *Tree) keepTree(ctx context.Context, scratch string, ignored []string) (string, error) {
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
	if err := t.addAll(ctx, env, ":/", links); err != nil {
		return "", err
	}
	if len(ignored) > 0 {
		literal := append(env, "GIT_LITERAL_PATHSPECS=1")
		force := []string{"add", "-f", "--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul"}
		if _, err := t.runInput(ctx, literal, strings.Join(ignored, "\x00"), force...); err != nil {
			if !complains(err) || ctx.Err() != nil {
				return "", err
			}
		}
	}
	tree, err := t.run(ctx, env, "write-tree")
	return strings.TrimSpace(string(tree)), err
}

// top is the top of the work tree, to which the paths of saved files are relative.
func (t *Tree) top() string { return strings.TrimSuffix(strings.TrimSuffix(t.root, t.prefix), "/") }

// Ignored are the small files that git ignores. Folders that are ignored as a whole
// are left out.
type Ignored struct {
	files []string // relative to the root
	mark  string   // of their state
}

// Ignored lists the small files that git ignores, for [Tree.Save].
func (t *Tree) Ignored(ctx context.Context) (i Ignored, err error) {
	if !t.native || t.git == "" {
		return i, nil
	}
	out, err := t.run(ctx, nil, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
	if err != nil {
		return i, err
	}
	sum := sha256.New()
	for _, name := range strings.Split(string(out), "\x00") {
		if name == "" || strings.HasSuffix(name, "/") || len(i.files) == maxIgnoredFiles || t.excludes(name) {
			continue
		}
		info, err := os.Lstat(filepath.Join(t.root, name))
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxIgnoredFile {
			continue // gone meanwhile, or nothing to keep
		}
		i.files = append(i.files, name)
		fmt.Fprintf(sum, "%q %d %d\n", name, info.Size(), info.ModTime().UnixNano())
	}
	i.mark = hex.EncodeToString(sum.Sum(nil))[:16]
	return i, nil
}

func (t *Tree) excludes(name string) bool {
	return slices.ContainsFunc(t.exclude, func(e string) bool { return name == e || strings.HasPrefix(name, e+"/") })
}

// id is the object that a name stands for.
func (t *Tree) id(ctx context.Context, name string) (string, error) {
	out, err := t.run(ctx, nil, "rev-parse", "--verify", "--quiet", name)
	return strings.TrimSpace(string(out)), err
}

// SavedStates lists what [Tree.Save] kept, newest first.
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

// addSaved adds a saved state, unless the ref is none of ralph's.
func addSaved(list []Saved, ref, commit string, at time.Time, message string) []Saved {
	id, err := strconv.ParseInt(strings.TrimPrefix(ref, savedRefs), 10, 64)
	if err != nil {
		return list
	}
	subject, body, _ := strings.Cut(message, "\n")
	return append(list, Saved{ID: id, Commit: commit, Created: ralph.At(at), Message: subject, body: body})
}

// saved are the saved states by go-git.
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

// SavedFiles are the files of a saved state that were not committed then: added or
// modified, relative to the top of the work tree.
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

// ErrNoSaved says that there is no saved state of that number.
var ErrNoSaved = errors.New("no such snapshot")

// Saved is one saved state. The error wraps [ErrNoSaved] if there is none.
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

// Restore writes files of a saved state back into the work tree; the index and the
// branch stay as they are. What stands in their place is overwritten: save first.
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
	// A folder that became a file, or the reverse, would be in the way.
	for _, f := range files {
		if err := t.clear(f); err != nil {
			return err
		}
	}
	_, err = t.runInput(ctx, append(slices.Clip(overrides), "GIT_LITERAL_PATHSPECS=1"), strings.Join(files, "\x00"),
		"-C", t.top(), "restore", "--source="+s.Commit, "--worktree", "--pathspec-from-file=-", "--pathspec-file-nul")
	return err
}

// clear removes a file that stands where a folder of path has to be.
func (t *Tree) clear(path string) error {
	for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
		full := filepath.Join(t.top(), dir)
		if info, err := os.Lstat(full); err == nil && !info.IsDir() {
			return os.Remove(full)
		}
	}
	return nil
}

// Missing are those of some files that are not in the work tree any more.
func (t *Tree) Missing(files []string) ([]string, error) {
	var missing []string
	for _, f := range files {
		_, err := os.Lstat(filepath.Join(t.top(), f))
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR): // a file stands where its folder was
			missing = append(missing, f)
		case err != nil:
			return nil, err
		}
	}
	return missing, nil
}

// Uncommitted are the files of a snapshot that differ from its commit, relative to
// the root.
func (t *Tree) Uncommitted(ctx context.Context, s Snapshot, scratch string) ([]string, error) {
	if t.git == "" {
		return nil, nil
	}
	base, err := t.Committed(ctx, s.Head)
	if err != nil {
		return nil, err
	}
	var files []string
	for name, within := range s.Modules {
		if within.Unreadable != "" {
			continue
		}
		m, err := t.module(ctx, t.Below(name))
		if err != nil {
			return nil, err
		}
		list, err := m.Uncommitted(ctx, within, moduleScratch(scratch, t.Below(name)))
		if err != nil {
			return nil, err
		}
		for _, f := range list {
			files = append(files, name+"/"+f)
		}
	}
	own, err := t.differ(ctx, scratch, base, s.Content)
	return append(files, own...), err
}

// below is what paths from the top begin with in the root; "" where that is the top.
func (t *Tree) below() string {
	if t.prefix == "" {
		return ""
	}
	return t.prefix + "/"
}

// Below is a path within the root as [Tree.SavedFiles] has it.
func (t *Tree) Below(path string) string { return t.below() + path }

// Commit commits what the work tree has of some files, and nothing else: other
// uncommitted and staged work stays as it is. Hooks and filters are not run and nothing
// is signed: files that belong to a filter are left as they are, since what it makes of
// them is not known. It returns the new commit, "" if there was nothing to commit, and
// the files that were left for a filter.
func (t *Tree) Commit(ctx context.Context, files []string, message string) (id string, filtered []string, err error) {
	if t.git == "" || len(files) == 0 {
		return "", nil, nil
	}
	if !t.native {
		return "", nil, errNoGit
	}
	overrides, err := t.overrides(ctx)
	if err != nil {
		return "", nil, err
	}
	literal := append(slices.Clip(overrides), "GIT_LITERAL_PATHSPECS=1")
	status, err := t.run(ctx, overrides, "status", "--porcelain=v1", "-z", "--no-renames",
		"--untracked-files=all", "--ignore-submodules=dirty")
	if err != nil {
		return "", nil, err
	}
	var changed []string
	for _, entry := range bytes.Split(status, []byte{0}) {
		if len(entry) < 4 {
			continue
		}
		name, below := strings.CutPrefix(string(entry[3:]), t.below())
		if below && slices.Contains(files, name) {
			changed = append(changed, name)
		}
	}
	if filtered, err = t.filtered(ctx, changed); err != nil {
		return "", nil, err
	}
	changed = slices.DeleteFunc(changed, func(name string) bool { return slices.Contains(filtered, name) })
	if len(changed) == 0 {
		return "", filtered, nil
	}
	paths := strings.Join(changed, "\x00")
	from := []string{"--pathspec-from-file=-", "--pathspec-file-nul"}
	// `git add` would look into submodules, with the filters of their configuration.
	staging := []string{"update-index", "--add", "--remove", "--replace", "-z", "--stdin"}
	if _, err := t.runInput(ctx, literal, paths, staging...); err != nil {
		return "", filtered, err
	}
	env := literal
	if _, err := t.run(ctx, nil, "var", "GIT_COMMITTER_IDENT"); err != nil {
		env = append(env, author...)
	}
	file, err := os.CreateTemp("", "ralph-message-*")
	if err != nil {
		return "", filtered, err
	}
	defer os.Remove(file.Name())
	_, err = file.WriteString(message)
	if err = errors.Join(err, file.Close()); err != nil {
		return "", filtered, err
	}
	commit := []string{"commit", "--quiet", "--no-verify", "--only", "--cleanup=verbatim", "-F", file.Name()}
	if _, err := t.runInput(ctx, env, paths, append(commit, from...)...); err != nil {
		return "", filtered, err
	}
	id, _ = t.head(ctx)
	return id, filtered, err
}

// filtered are those of some files whose attributes name a filter.
func (t *Tree) filtered(ctx context.Context, files []string) (list []string, err error) {
	if len(files) == 0 {
		return nil, nil
	}
	out, err := t.runInput(ctx, nil, strings.Join(files, "\x00"), "check-attr", "-z", "--stdin", "filter")
	fields := strings.Split(string(out), "\x00")
	for i := 0; i+2 < len(fields); i += 3 {
		if value := fields[i+2]; value != "unspecified" && value != "unset" {
			list = append(list, fields[i])
		}
	}
	return list, err
}
