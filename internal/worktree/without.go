package worktree

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Without a git program, go-git reads the work tree. The result is nearly git's: filters and line
// endings are not applied to changed files.

// WithoutGit says what a missing git program means for people.
const WithoutGit = "without it the files of a session are known approximately, nothing is committed for tasks, " +
	"and nothing that was saved is put back"

// Approximate reports whether the files of a git work tree are read without git.
func (t *Tree) Approximate() bool { return t.git != "" && !t.native }

// A walker makes trees of the folders of a work tree.
type walker struct {
	*Tree
	objects *objects
	tracked map[string]*index.Entry // tracked files; their folders map to nil
	links   []gitlink
	written int64 // modification time of the index file
}

// writeWithout is [Tree.writeTree] with go-git.
func (t *Tree) writeWithout(ctx context.Context, scratch string) (string, []gitlink, error) {
	o, err := t.objects(scratch)
	if err != nil {
		return "", nil, err
	}
	w := &walker{Tree: t, objects: o, tracked: map[string]*index.Entry{}}
	if info, err := os.Stat(filepath.Join(t.git, "index")); err == nil {
		w.written = info.ModTime().UnixNano()
	}
	// An index that go-git cannot read is no loss: it only saves reading files and tells which
	// ignored ones are tracked.
	if known, err := o.Index(); err == nil {
		for _, e := range known.Entries {
			w.tracked[e.Name] = e
			for dir := path.Dir(e.Name); dir != "."; dir = path.Dir(dir) {
				w.tracked[dir] = nil
			}
		}
	}
	patterns, err := t.excludePatterns()
	if err != nil {
		return "", nil, err
	}
	above := "."
	if t.prefix != "" { // ignore files above apply as well
		for _, name := range strings.Split(t.prefix, "/") {
			if patterns, err = t.ignoreFile(patterns, above); err != nil {
				return "", nil, err
			}
			above = path.Join(above, name)
		}
	}
	id, err := w.folder(ctx, above, patterns)
	if id.IsZero() && err == nil {
		id, err = o.put(plumbing.TreeObject, nil)
	}
	return id.String(), w.links, err
}

// excludePatterns returns the ignore patterns from outside the work tree.
func (t *Tree) excludePatterns() ([]gitignore.Pattern, error) {
	root := osfs.New("/")
	patterns, err := gitignore.LoadSystemPatterns(root)
	if err != nil {
		return nil, err
	}
	own, err := gitignore.LoadGlobalPatterns(root)
	if err != nil {
		return nil, err
	}
	patterns = append(patterns, own...)
	if dir, err := os.UserConfigDir(); err == nil && len(own) == 0 {
		if patterns, err = readPatterns(patterns, filepath.Join(dir, "git", "ignore"), nil); err != nil {
			return nil, err
		}
	}
	return readPatterns(patterns, filepath.Join(t.common, "info", "exclude"), nil)
}

// ignoreFile adds the patterns of a folder's .gitignore.
func (t *Tree) ignoreFile(patterns []gitignore.Pattern, dir string) ([]gitignore.Pattern, error) {
	var domain []string
	if dir != "." {
		domain = strings.Split(dir, "/")
	}
	return readPatterns(patterns, filepath.Join(t.top(), filepath.FromSlash(dir), ".gitignore"), domain)
}

func readPatterns(patterns []gitignore.Pattern, name string, domain []string) ([]gitignore.Pattern, error) {
	patterns = slices.Clip(patterns)
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) || isNotDir(err) {
		return patterns, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if line := lines.Text(); !strings.HasPrefix(line, "#") && strings.TrimSpace(line) != "" {
			patterns = append(patterns, gitignore.ParsePattern(line, domain))
		}
	}
	return patterns, lines.Err()
}

// folder makes a tree of a folder, by its path from the top; zero if it is empty.
func (w *walker) folder(ctx context.Context, dir string, patterns []gitignore.Pattern) (id plumbing.Hash, err error) {
	if ctx.Err() != nil {
		return id, ctx.Err()
	}
	if patterns, err = w.ignoreFile(patterns, dir); err != nil {
		return id, err
	}
	files, err := os.ReadDir(filepath.Join(w.top(), filepath.FromSlash(dir)))
	if err != nil {
		return id, err
	}
	ignored := gitignore.NewMatcher(patterns)
	var tree object.Tree
	for _, f := range files {
		name := path.Join(dir, f.Name())
		known, tracked := w.tracked[name]
		within := strings.TrimPrefix(name, w.below())
		if f.Name() == ".git" || w.excludes(within) || !tracked && ignored.Match(strings.Split(name, "/"), f.IsDir()) {
			continue
		}
		e := object.TreeEntry{Name: f.Name()}
		switch {
		case f.IsDir() && w.populated(name):
			m, err := w.module(ctx, name)
			if err != nil {
				continue // an empty or unreadable repository
			}
			head, _ := m.head(ctx)
			e.Mode, e.Hash = filemode.Submodule, plumbing.NewHash(head)
			w.links = append(w.links, gitlink{name, head})
		case f.IsDir() && known != nil && known.Mode == filemode.Submodule:
			e.Mode, e.Hash = filemode.Submodule, known.Hash
		case f.IsDir():
			e.Mode = filemode.Dir
			if e.Hash, err = w.folder(ctx, name, patterns); err != nil {
				return id, err
			}
		default:
			if e.Mode, e.Hash, err = w.file(name, known); err != nil {
				continue // vanished or unreadable: skipped, as by `git add --ignore-errors`
			}
		}
		if !e.Hash.IsZero() {
			tree.Entries = append(tree.Entries, e)
		}
	}
	if len(tree.Entries) == 0 {
		return id, nil
	}
	slices.SortFunc(tree.Entries, func(a, b object.TreeEntry) int { return strings.Compare(sortName(a), sortName(b)) })
	var encoded plumbing.MemoryObject
	if err := tree.Encode(&encoded); err != nil {
		return id, err
	}
	r, err := encoded.Reader()
	if err != nil {
		return id, err
	}
	content, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return id, err
	}
	return w.objects.put(plumbing.TreeObject, content)
}

// sortName is the key by which git sorts the entries of a tree.
func sortName(e object.TreeEntry) string {
	if e.Mode == filemode.Dir {
		return e.Name + "/"
	}
	return e.Name
}

// file stores a file's content as an object. A file that matches the index is not read, unless it
// was changed too soon after the index for its time to tell.
func (w *walker) file(name string, known *index.Entry) (mode filemode.FileMode, id plumbing.Hash, err error) {
	full := filepath.Join(w.top(), filepath.FromSlash(name))
	info, err := os.Lstat(full)
	if err != nil {
		return mode, id, err
	}
	if mode, err = filemode.NewFromOSFileMode(info.Mode()); err != nil {
		return mode, id, err
	}
	if at := info.ModTime(); known != nil && known.Mode == mode && int64(known.Size) == info.Size() &&
		known.ModifiedAt.Equal(at) && at.UnixNano() < w.written {
		return mode, known.Hash, nil
	}
	var content []byte
	switch {
	case mode == filemode.Symlink:
		target, err := os.Readlink(full)
		if err != nil {
			return mode, id, err
		}
		content = []byte(target)
	case info.Mode().IsRegular():
		if content, err = os.ReadFile(full); err != nil {
			return mode, id, err
		}
	default:
		return mode, id, nil // not a regular file
	}
	id, err = w.objects.put(plumbing.BlobObject, content)
	return mode, id, err
}

// looseWithout is [Tree.Loose] with go-git.
func (t *Tree) looseWithout(ctx context.Context, commit string) (files []Loose, err error) {
	scratch, err := os.MkdirTemp("", "ralph-look-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	base, err := t.Committed(ctx, commit)
	if err != nil {
		return nil, err
	}
	content, _, err := t.writeWithout(ctx, scratch)
	if err != nil {
		return nil, err
	}
	o, err := t.objects(scratch)
	if err != nil {
		return nil, err
	}
	list, err := o.deltas(ctx, plumbing.NewHash(base), plumbing.NewHash(content), "")
	for _, d := range list {
		files = append(files, Loose{Path: d.path, Untracked: d.was.Hash.IsZero()})
	}
	return files, err
}
