package worktree

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// go-git reads the objects of a repository in this process: differences and contents of files. Native git does the
// rest, and whatever go-git cannot do (errNative).

// errNative means that go-git cannot answer.
var errNative = errors.New("go-git cannot read it")

// objects gives access to the objects of the repository.
type objects struct{ *filesystem.Storage }

// cacheSize bounds the cache of objects, in bytes.
const cacheSize = 8 << 20

// objects opens the repository.
func (t *Tree) objects() (*objects, error) {
	if t.longIDs || t.foreign || exists(filepath.Join(t.common, "reftable")) {
		return nil, errNative
	}
	// go-git reads the list of packs only once.
	packs, err := os.ReadDir(filepath.Join(t.common, "objects", "pack"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	names := ""
	for _, p := range packs {
		names += p.Name() + "\n"
	}
	t.known.mu.Lock()
	defer t.known.mu.Unlock()
	if t.known.storage == nil || names != t.known.packs {
		fs := dotgit.NewRepositoryFilesystem(osfs.New(t.git), osfs.New(t.common))
		options := filesystem.Options{AlternatesFS: osfs.New("/")}
		t.known.storage = filesystem.NewStorageWithOptions(fs, cache.NewObjectLRU(cacheSize), options)
		t.known.packs = names
	}
	return &objects{t.known.storage}, nil
}

// A delta is a file that differs between two trees; one of the entries may be empty.
type delta struct {
	path    string
	was, is object.TreeEntry
}

// deltas returns the files that differ between two trees. It skips folders that are equal in both.
func (o *objects) deltas(ctx context.Context, from, to plumbing.Hash, below string) (list []delta, err error) {
	if from == to || ctx.Err() != nil {
		return nil, ctx.Err()
	}
	was, err := o.entries(from)
	if err != nil {
		return nil, err
	}
	is, err := o.entries(to)
	if err != nil {
		return nil, err
	}
	names := maps.Clone(was)
	maps.Copy(names, is)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		a, b := was[name], is[name]
		if a.Hash == b.Hash && a.Mode == b.Mode {
			continue
		}
		var inner [2]plumbing.Hash
		for i, e := range []*object.TreeEntry{&a, &b} {
			if e.Mode == filemode.Dir {
				inner[i], *e = e.Hash, object.TreeEntry{}
			}
		}
		if a != b {
			list = append(list, delta{below + name, a, b})
		}
		more, err := o.deltas(ctx, inner[0], inner[1], below+name+"/")
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	return list, nil
}

// entries returns the entries of a tree by name.
func (o *objects) entries(id plumbing.Hash) (map[string]object.TreeEntry, error) {
	list := map[string]object.TreeEntry{}
	if id.IsZero() || id.String() == emptyTree {
		return list, nil
	}
	tree, err := object.GetTree(o, id)
	if err != nil {
		return nil, err
	}
	for _, e := range tree.Entries {
		list[e.Name] = e
	}
	return list, nil
}

// maxLines is the size of the largest file that is read as text, in bytes.
const maxLines = 1 << 20

// isLarge reports whether a file is too large to count its lines.
func (o *objects) isLarge(e object.TreeEntry) bool {
	n, err := o.EncodedObjectSize(e.Hash)
	return err == nil && n > maxLines
}

// text returns a file's content; ok is false for large and binary files. A nested repository has a
// line with its commit.
func (o *objects) text(e object.TreeEntry) (text string, ok bool, err error) {
	switch {
	case e.Hash.IsZero():
		return "", true, nil
	case e.Mode == filemode.Submodule:
		return "Subproject commit " + e.Hash.String() + "\n", true, nil
	case o.isLarge(e):
		return "", false, nil
	}
	blob, err := object.GetBlob(o, e.Hash)
	if err != nil {
		return "", false, err
	}
	r, err := blob.Reader()
	if err != nil {
		return "", false, err
	}
	b, err := io.ReadAll(r)
	return string(b), !isBinary(b), errors.Join(err, r.Close())
}

// isBinary reports whether a file is not text, as git decides.
func isBinary(content []byte) bool {
	return bytes.Contains(content[:min(len(content), 8000)], []byte{0})
}
