// Package worktree reads and moves a project's repository: the contents of its work tree, the differences of commits,
// its refs, and the clones in which sessions work. It also finds a project's git directories.
//
// Looking at a work tree never touches its index, refs or configuration. An agent can write the configuration, so its
// programs (hooks, monitors, filters, external diffs) are never run.
package worktree

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"ralph"
	"ralph/internal/lazy"
)

// A Tree is a project's work tree.
type Tree struct {
	// Marker is an environment entry for git processes that identifies those of a killed ralph; ""
	// for none.
	Marker string

	// Sparse has the folders, relative to the root, that clones of the repository contain; none means all.
	Sparse []string

	root    string
	git     string // git directory of this work tree; "" without git
	common  string // git directory shared by all work trees
	prefix  string // path of the root below the top of the work tree; "" if it is the top
	exclude []string
	longIDs bool   // the repository uses SHA-256
	foreign bool   // do not use go-git
	records bool   // keep the work tree's objects in the repository
	theirs  string // .git of a [Clone], whose git directory and index are ralph's own; "" for none
	lender  *Tree  // the repository whose objects a [Clone] borrows; nil for none
	at      string // commit that the own index was read from; "" if unknown
	known   memory
	asked   *answers
	faults  *faults // what git has refused in a [Clone]
	names   names
	pinned  []pinned // identities of the git directories
}

// A Snapshot is the state of a work tree at one moment.
type Snapshot struct {
	Head    string `json:"head"`    // commit; "" before the first one
	Content string `json:"content"` // tree of the files, including untracked and without ignored ones

	Untaken []ralph.Untaken `json:"untaken,omitempty"` // paths missing in Content although git does not ignore them
	// debris that a candidate leaves out: files, and folders with a slash at the end
	Debris []string `json:"debris,omitempty"`
}

// ownRefs are the refs of ralph itself.
const ownRefs = "refs/ralph/"

// emptyTree is the id of git's empty tree.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// Open opens the work tree of a project. It ignores paths in exclude, relative to the root, where ralph keeps its own
// files. The error wraps [ErrNoRepo] outside of a repository, and [ErrNoGit] without a git program.
func Open(ctx context.Context, root string, exclude ...string) (*Tree, error) {
	t := &Tree{root: root, exclude: exclude, asked: &answers{said: map[string][]byte{}}}
	// The prefix comes last: only it may be empty.
	lines, err := places(ctx, root, "--show-object-format", "--show-prefix")
	if err != nil {
		return nil, err
	}
	t.common, t.git, t.longIDs, t.prefix = lines[1], lines[2], lines[3] == "sha256", strings.TrimSuffix(lines[4], "/")
	return t, t.pin()
}

// Snapshot takes a snapshot of the work tree. It keeps the objects in the folder scratch, which the caller removes.
func (t *Tree) Snapshot(ctx context.Context, scratch string) (s Snapshot, err error) {
	if err := t.Intact(); err != nil {
		return s, err
	}
	if info, err := os.Lstat(t.Top()); t.theirs != "" && (err != nil || !info.IsDir()) {
		return s, fmt.Errorf("%s was removed, or something else put in its place", t.Top())
	}
	var found survey
	if t.theirs != "" {
		if found, err = t.secure(ctx); err != nil {
			return s, err
		}
	}
	s.Head = t.At(ctx)
	err = t.writeTree(ctx, scratch, &s, found)
	return s, err
}

// writeTree writes the content of the work tree as a tree object into the scratch folder, through a
// separate index, and completes s, whose Head is known.
func (t *Tree) writeTree(ctx context.Context, scratch string, s *Snapshot, found survey) error {
	objects := filepath.Join(scratch, "objects")
	if err := os.MkdirAll(filepath.Join(objects, "info"), 0o700); err != nil {
		return err
	}
	index := filepath.Join(scratch, "index")
	links, err := t.copyIndex(filepath.Join(t.git, "index"), index)
	if err != nil {
		return err
	}
	// The lock's holder was killed: nobody else uses the folder.
	if err := os.Remove(index + ".lock"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	// A split index refers to a file beside it.
	shared, err := sharedIndexes(t.git)
	if err != nil {
		return err
	}
	for _, name := range shared {
		more, err := t.copyIndex(filepath.Join(t.git, name), filepath.Join(scratch, name))
		if err != nil {
			return err
		}
		links = append(links, more...)
	}
	overrides, err := t.overrides(ctx)
	if err != nil {
		return err
	}
	env := append(t.environment(scratch), overrides...)
	if t.theirs != "" && s.Head != "" && s.Head != t.at {
		// Committed files count even if git ignores them. A HEAD without a valid commit is skipped.
		if _, err := t.run(ctx, env, "read-tree", "-m", s.Head); err != nil && (!complains(err) || ctx.Err() != nil) {
			return err
		}
	}
	if t.theirs != "" {
		s.Untaken, err = t.takeFrom(ctx, env, index, links, found)
	} else {
		_, err = t.addAll(ctx, env, links)
	}
	if err != nil {
		return err
	}
	for _, commit := range t.bases(s.Head) {
		if err := t.keepUnedited(ctx, env, commit); err != nil && (!complains(err) || ctx.Err() != nil) {
			return err // without such a commit there is nothing to keep
		}
	}
	digest := ""
	if b, err := os.ReadFile(index); err == nil && len(shared) == 0 { // this file has only a part of a split index
		sum := sha256.Sum256(b)
		digest = hex.EncodeToString(sum[:])
	}
	if content, ok := t.knownTree(digest, objects); ok {
		s.Content = content
		return nil
	}
	if s.Content, err = t.treeOfIndex(ctx, env); err != nil {
		return err
	}
	t.known.mu.Lock()
	defer t.known.mu.Unlock()
	t.known.index, t.known.content = digest, s.Content
	return nil
}

// bases returns the commits whose versions of files may be in the work tree: HEAD and, in a clone, the commit that it
// was prepared with and the one that is merged.
func (t *Tree) bases(head string) (list []string) {
	for _, commit := range []string{t.at, t.merging(), head} {
		if commit != "" && !slices.Contains(list, commit) {
			list = append(list, commit)
		}
	}
	return list
}

// sharedIndexes returns the names of the shared parts of split indexes in a git directory.
func sharedIndexes(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "sharedindex.") {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// knownTree returns the tree that git wrote earlier for the same index, if its objects exist in the scratch folder or
// in the repository.
func (t *Tree) knownTree(digest, objects string) (content string, ok bool) {
	t.known.mu.Lock()
	defer t.known.mu.Unlock()
	if content = t.known.content; digest == "" || digest != t.known.index || len(content) < 3 {
		return "", false
	}
	name := filepath.Join(content[:2], content[2:])
	return content, exists(filepath.Join(objects, name)) || exists(filepath.Join(t.common, "objects", name))
}

// objectID matches an object id, SHA-1 or SHA-256.
var objectID = lazy.Regexp(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// treeOfIndex returns the project's tree in the index that env names.
func (t *Tree) treeOfIndex(ctx context.Context, env []string) (string, error) {
	out, err := t.run(ctx, env, "write-tree")
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(out))
	if !objectID().MatchString(id) {
		return "", fmt.Errorf("state of the work tree: git write-tree said %q, which is not an object", id)
	}
	if t.prefix == "" {
		return id, nil
	}
	// If the project is below the top, only its own folder counts.
	out, err = t.run(ctx, env, "rev-parse", "--verify", "--quiet", id+":"+t.prefix)
	if err != nil {
		// The folder has no file yet.
		out, err = t.run(ctx, env, "hash-object", "-t", "tree", "-w", "--stdin")
	}
	return strings.TrimSpace(string(out)), err
}

// environment makes git use the index and objects of the scratch folder. They need not survive a power cut: ralph then
// decides on the session without them.
func (t *Tree) environment(scratch string) (env []string) {
	if t.records {
		env = []string{"GIT_INDEX_FILE=" + filepath.Join(scratch, "index")}
	} else {
		env = []string{
			"GIT_CONFIG_KEY_0=core.fsync", "GIT_CONFIG_VALUE_0=none",
			"GIT_INDEX_FILE=" + filepath.Join(scratch, "index"),
			"GIT_OBJECT_DIRECTORY=" + filepath.Join(scratch, "objects"),
			"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + quoted(filepath.Join(t.common, "objects")),
		}
	}
	if t.Marker != "" {
		env = append(env, t.Marker)
	}
	return env
}

// Top returns the top of the work tree.
func (t *Tree) Top() string { return strings.TrimSuffix(strings.TrimSuffix(t.root, t.prefix), "/") }

// id returns the id of an object.
func (t *Tree) id(ctx context.Context, name string) (string, error) {
	id, err := t.resolve(ctx, name)
	if err == nil && id == "" {
		err = fmt.Errorf("git has no object %s", name)
	}
	return id, err
}

// quoted quotes a path for a list of paths separated by colons.
func quoted(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}

// copyIndex copies an index. It returns the nested repositories.
func (t *Tree) copyIndex(from, to string) (links []gitlink, err error) {
	info, statErr := os.Stat(from)
	b, err := os.ReadFile(from)
	if errors.Is(err, os.ErrNotExist) {
		// Before the first `git add` there is no index. An index from an earlier snapshot may refer
		// to missing objects.
		if err = os.Remove(to); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return nil, err
	}
	if err = errors.Join(err, statErr); err != nil {
		return nil, err
	}
	for e := range t.entries(b) {
		if id := e.link(); id != "" {
			links = append(links, gitlink{string(e.name), id})
		}
	}
	if err := os.WriteFile(to, b, 0o600); err != nil {
		return nil, err
	}
	// Git rereads files that are as new as the index: their times cannot show a change.
	return links, os.Chtimes(to, time.Time{}, info.ModTime())
}

// Changes returns the files that differ between two commits, by path, including files of the repository outside of
// the project's folder.
func (t *Tree) Changes(ctx context.Context, from, to string) ([]ralph.FileChange, error) {
	if from == to {
		return []ralph.FileChange{}, nil
	}
	// Attributes are relative to the current folder.
	out, err := t.run(ctx, t.unattributed(), "-C", t.common, "-c", "core.attributesFile=/dev/null",
		"diff-tree", "-r", "-M", "-z", "--no-ext-diff", "--no-textconv", "--raw", "--numstat",
		cmp.Or(from, emptyTree), cmp.Or(to, emptyTree))
	if err != nil {
		return nil, err
	}
	files, err := parseChanges(out)
	for i := range files {
		files[i].Path = t.relative(files[i].Path)
	}
	return sorted(files), err
}

// relative returns the inverse of [Tree.Below]. Files outside of the root begin with "../".
func (t *Tree) relative(path string) string {
	if t.prefix == "" {
		return path
	}
	// Both are below the same folder, so that such a path always exists.
	path, _ = filepath.Rel(filepath.FromSlash(t.prefix), filepath.FromSlash(path))
	return filepath.ToSlash(path)
}

// sorted sorts files by path; it never returns nil.
func sorted(files []ralph.FileChange) []ralph.FileChange {
	slices.SortFunc(files, func(a, b ralph.FileChange) int { return strings.Compare(a.Path, b.Path) })
	return slices.AppendSeq([]ralph.FileChange{}, slices.Values(files))
}

// statusNames has words for git's status letters.
var statusNames = map[byte]string{
	'A': "added", 'M': "modified", 'D': "deleted", 'R': "renamed", 'T': "modified", 'C': "added",
}

// parseChanges parses the output of `diff-tree -z --raw --numstat`: first each file's status, then the line counts. A
// rename has two paths.
func parseChanges(out []byte) ([]ralph.FileChange, error) {
	files := []ralph.FileChange{}
	at := map[string]int{}
	fields := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	i := 0
	for ; i+1 < len(fields) && strings.HasPrefix(fields[i], ":"); i += 2 {
		status := fields[i][strings.LastIndexByte(fields[i], ' ')+1:]
		if status == "" {
			return nil, fmt.Errorf("git diff-tree: no status before %q", fields[i+1])
		}
		if (status[0] == 'R' || status[0] == 'C') && i+2 < len(fields) {
			i++
		}
		at[fields[i+1]] = len(files)
		files = append(files, ralph.FileChange{Path: fields[i+1], Status: statusNames[status[0]]})
	}
	for ; i < len(fields); i++ {
		parts := strings.SplitN(fields[i], "\t", 3)
		if len(parts) != 3 {
			continue
		}
		path := parts[2]
		if path == "" && i+2 < len(fields) { // a rename: the old and the new path follow
			path = fields[i+2]
			i += 2
		}
		if n, ok := at[path]; ok {
			files[n].Added, files[n].Removed = count(parts[0]), count(parts[1])
		}
	}
	return files, nil
}

// count parses a number of lines; "-", for a binary file, is 0.
func count(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}
