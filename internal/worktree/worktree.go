// Package worktree tells what a session changed in a project's work tree,
// whatever the agent did with git meanwhile: commits, amends, resets, switches of
// branch. It also finds a project's git directories.
//
// It never touches the repository: not its index, refs, objects or
// configuration. The agent can write that configuration, so nothing in it that
// would run a program (hooks, monitors, filters, external diffs) is obeyed.
//
// A directory without git works too: its content is known by a digest, its
// changed files are not.
package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"ralph"
)

// A Tree is a project's work tree.
type Tree struct {
	// Marker is an entry for the environment of the git processes that take long in
	// a large work tree, by which those of a ralph that was killed are found; "" is none.
	Marker string

	native  bool // there is a git program
	root    string
	git     string // git directory of this work tree, "" for a project without git
	common  string // git directory shared by all work trees
	prefix  string // of the root below the top of the work tree, "" if it is the top
	exclude []string
	longIDs bool // of SHA-256
	foreign bool // go-git is not asked
	known   memory
	held    []held // what the repository is known by
}

// A Snapshot is where a work tree stood at one moment.
type Snapshot struct {
	Head    string            `json:"head"`    // commit, "" before the first one
	Branch  string            `json:"branch"`  // full ref name, "" if detached
	Content string            `json:"content"` // what is in the work tree, untracked files too, but no ignored ones
	Refs    map[string]string `json:"refs"`    // ref name to commit
	Logged  []string          `json:"logged"`  // commits that only the logs of the refs still know
	Stashes []string          `json:"stashes"` // commits of the stash, which are among those
	Marks   string            `json:"marks"`   // digest of the refs and their logs; "" if it is not known

	Modules    map[string]Snapshot `json:"modules,omitempty"`    // of the repositories within, by path from the root
	Unreadable string              `json:"unreadable,omitempty"` // why one of those could not be looked at
}

// Open opens the work tree of a project. Paths in exclude, relative to the root,
// never count: what ralph itself keeps there.
func Open(ctx context.Context, root string, exclude ...string) (*Tree, error) {
	t := &Tree{root: root, exclude: exclude}
	if _, err := exec.LookPath("git"); err != nil {
		return t, t.openWithout()
	}
	t.native = true
	// The prefix comes last: it alone may be empty.
	lines, err := places(ctx, root, "--show-object-format", "--show-prefix")
	if errors.Is(err, ErrNoRepo) {
		return t, nil
	}
	if err != nil {
		return nil, err
	}
	t.common, t.git, t.longIDs, t.prefix = lines[1], lines[2], lines[3] == "sha256", strings.TrimSuffix(lines[4], "/")
	return t, t.hold()
}

// openWithout opens a work tree without a git program. What go-git cannot read is a
// folder without git for it.
func (t *Tree) openWithout() error {
	top, common, err := findWithoutGit(t.root)
	if errors.Is(err, ErrNoRepo) {
		return nil
	}
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(t.root)
	if err != nil {
		return err
	}
	if t.prefix, err = filepath.Rel(top, real); err != nil {
		return err
	}
	if t.prefix = filepath.ToSlash(t.prefix); t.prefix == "." {
		t.prefix = ""
	}
	own, err := gitDirOf(filepath.Join(top, ".git"))
	if err != nil {
		return err
	}
	t.git, t.common = own, common
	if parsed, _, err := readConfig(filepath.Join(common, "config")); err == nil && parsed != nil {
		t.longIDs = parsed.Section("extensions").Options.Get("objectformat") == "sha256"
	}
	if _, err := t.objects(""); err != nil {
		t.git, t.common, t.prefix = "", "", ""
		return nil
	}
	return t.hold()
}

// Snapshot notes where the work tree stands. What it needs for comparing later
// is kept in the folder scratch, which the caller removes when it is done.
func (t *Tree) Snapshot(ctx context.Context, scratch string) (Snapshot, error) {
	if t.git == "" {
		digest, err := t.digest(ctx)
		return Snapshot{Content: digest}, err
	}
	s, err := t.look(ctx, scratch, (*Tree).Snapshot)
	if err != nil {
		return s, err
	}
	_, s.Branch = t.head(ctx)
	// Read before their commits are: what moves meanwhile counts as moved.
	state, err := t.readRefs(ctx)
	if err != nil {
		return s, err
	}
	s.Refs, s.Stashes, s.Marks = state.refs, state.stashes, state.digest()
	s.Logged, err = t.logged(ctx, state)
	return s, err
}

// Look is a [Tree.Snapshot] of the commit and the content alone, for those who only
// want to know whether something has changed.
func (t *Tree) Look(ctx context.Context, scratch string) (s Snapshot, err error) {
	if t.git == "" {
		s.Content, err = t.digest(ctx)
		return s, err
	}
	return t.look(ctx, scratch, (*Tree).Look)
}

// A looker is Look or Snapshot.
type looker func(t *Tree, ctx context.Context, scratch string) (Snapshot, error)

// look is Look of a git work tree, which looks at the repositories within with into.
func (t *Tree) look(ctx context.Context, scratch string, into looker) (s Snapshot, err error) {
	if err := t.Intact(); err != nil {
		return s, err
	}
	s.Head, _ = t.head(ctx)
	var links []gitlink
	if s.Content, links, err = t.writeTree(ctx, scratch, s.Head); err != nil {
		return s, err
	}
	s.Modules, err = t.lookInto(ctx, scratch, links, into)
	return s, err
}

// writeTree puts the content of the work tree into a tree object of the scratch
// folder, by way of an index of its own. head is the commit of HEAD. It also returns
// what repositories are within.
func (t *Tree) writeTree(ctx context.Context, scratch, head string) (string, []gitlink, error) {
	objects := filepath.Join(scratch, "objects")
	if err := os.MkdirAll(filepath.Join(objects, "info"), 0o700); err != nil {
		return "", nil, err
	}
	if !t.native {
		return t.writeWithout(ctx, scratch)
	}
	index := filepath.Join(scratch, "index")
	links, err := t.copyIndex(filepath.Join(t.git, "index"), index)
	if err != nil {
		return "", nil, err
	}
	// Whoever has locked it was killed: nobody else uses the folder.
	if err := os.Remove(index + ".lock"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", nil, err
	}
	// A split index refers to a file beside it.
	shared, err := sharedIndexes(t.git)
	if err != nil {
		return "", nil, err
	}
	for _, s := range shared {
		more, err := t.copyIndex(filepath.Join(t.git, s), filepath.Join(scratch, s))
		if err != nil {
			return "", nil, err
		}
		links = append(links, more...)
	}
	overrides, err := t.overrides(ctx)
	if err != nil {
		return "", nil, err
	}
	env := append(t.environment(scratch), overrides...)
	if err := t.addAll(ctx, env, ".", links); err != nil {
		return "", nil, err
	}
	digest := ""
	if b, err := os.ReadFile(index); err == nil && len(shared) == 0 { // of a split index a part would be elsewhere
		sum := sha256.Sum256(b)
		digest, links = hex.EncodeToString(sum[:]), t.lookAtAll(b)
	}
	if content, ok := t.knownTree(digest, objects); ok {
		return content, links, nil
	}
	content, err := t.treeOfIndex(ctx, env)
	if err == nil {
		t.known.mu.Lock()
		defer t.known.mu.Unlock()
		t.known.index, t.known.content = digest, content
	}
	return content, links, err
}

// sharedIndexes are the names of the parts of split indexes in a git directory.
func sharedIndexes(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "sharedindex.") {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// knownTree is the tree that git has made of an index like this one, if its objects
// are at hand: the scratch folder's, the repository's, or as the tree of HEAD.
func (t *Tree) knownTree(digest, objects string) (content string, ok bool) {
	t.known.mu.Lock()
	defer t.known.mu.Unlock()
	if content = t.known.content; digest == "" || digest != t.known.index || len(content) < 3 {
		return "", false
	}
	name := filepath.Join(content[:2], content[2:])
	return content, exists(filepath.Join(objects, name)) || exists(filepath.Join(t.common, "objects", name))
}

// objectID is how git names an object, by SHA-1 or SHA-256.
var objectID = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// treeOfIndex is the tree of the project in the index of an environment.
func (t *Tree) treeOfIndex(ctx context.Context, env []string) (string, error) {
	out, err := t.run(ctx, env, "write-tree")
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(out))
	if !objectID.MatchString(id) {
		return "", fmt.Errorf("state of the work tree: git write-tree said %q, which is no object", id)
	}
	if t.prefix == "" {
		return id, nil
	}
	// A project below the top: only its own folder counts.
	out, err = t.run(ctx, env, "rev-parse", "--verify", "--quiet", id+":"+t.prefix)
	if err != nil {
		// The folder has no file yet.
		out, err = t.run(ctx, env, "hash-object", "-t", "tree", "-w", "--stdin")
	}
	return strings.TrimSpace(string(out)), err
}

// environment has git use an index and objects of the scratch folder. Those need not
// outlive a power cut: after one a session is settled without them.
func (t *Tree) environment(scratch string) []string {
	env := []string{
		"GIT_CONFIG_KEY_0=core.fsync", "GIT_CONFIG_VALUE_0=none",
		"GIT_INDEX_FILE=" + filepath.Join(scratch, "index"),
		"GIT_OBJECT_DIRECTORY=" + filepath.Join(scratch, "objects"),
		"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + quoted(filepath.Join(t.common, "objects")),
	}
	if t.Marker != "" {
		env = append(env, t.Marker)
	}
	return env
}

// quoted is a path as git reads it in a list of paths, which colons part.
func quoted(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}

// copyIndex copies an index, so that git looks at every file in it. It returns the
// repositories within.
func (t *Tree) copyIndex(from, to string) (links []gitlink, err error) {
	info, statErr := os.Stat(from)
	b, err := os.ReadFile(from)
	if errors.Is(err, os.ErrNotExist) {
		// Before the first `git add` there is none. One that an earlier look has left
		// may speak of objects that are gone.
		if err = os.Remove(to); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return nil, err
	}
	if err = errors.Join(err, statErr); err != nil {
		return nil, err
	}
	links = t.lookAtAll(b)
	if err := os.WriteFile(to, b, 0o600); err != nil {
		return nil, err
	}
	// By its time git tells which files were changed too soon after it was written
	// to be told by theirs; those it reads.
	return links, os.Chtimes(to, time.Time{}, info.ModTime())
}

// Changes are the files that differ between two snapshots, by path, and the
// commits that were made between them, amended and reset ones included.
func (t *Tree) Changes(
	ctx context.Context, before, after Snapshot, scratch string,
) ([]ralph.FileChange, []string, error) {
	if t.git == "" || before.Content == "" {
		return []ralph.FileChange{}, []string{}, nil
	}
	commits, err := t.commits(ctx, before)
	if err != nil {
		return nil, nil, err
	}
	within, theirs, err := t.changesWithin(ctx, before, after, scratch)
	if err != nil {
		return nil, nil, err
	}
	commits = append(commits, theirs...)
	if before.Content == after.Content {
		return sorted(within), commits, nil
	}
	files, err := ask(t, scratch, func(o *objects) ([]ralph.FileChange, error) {
		return o.changed(ctx, before.Content, after.Content)
	}, func() ([]ralph.FileChange, error) {
		out, err := t.run(ctx, t.environment(scratch), "diff-tree", "-r", "-M", "-z", "--no-ext-diff", "--no-textconv",
			"--raw", "--numstat", before.Content, after.Content)
		if err != nil {
			return nil, err
		}
		return parseChanges(out)
	})
	return sorted(append(files, within...)), commits, err
}

// sorted are files by their path; never nil.
func sorted(files []ralph.FileChange) []ralph.FileChange {
	slices.SortFunc(files, func(a, b ralph.FileChange) int { return strings.Compare(a.Path, b.Path) })
	return slices.AppendSeq([]ralph.FileChange{}, slices.Values(files))
}

// statusNames are git's letters in words.
var statusNames = map[byte]string{
	'A': "added", 'M': "modified", 'D': "deleted", 'R': "renamed", 'T': "modified", 'C': "added",
}

// parseChanges reads `diff-tree -z --raw --numstat`: first what became of each file,
// then how many lines. A rename has two paths.
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
		if path == "" && i+2 < len(fields) { // a rename: the old path and the new one follow
			path = fields[i+2]
			i += 2
		}
		if n, ok := at[path]; ok {
			files[n].Added, files[n].Removed = count(parts[0]), count(parts[1])
		}
	}
	return files, nil
}

// count reads a number of lines; a binary file has "-", which counts as none.
func count(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}
