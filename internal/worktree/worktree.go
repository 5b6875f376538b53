// Package worktree tells what a session changed in a project's work tree, whatever the agent did
// with git meanwhile: commits, amends, resets, switches of branch. It also finds a project's git
// directories, and makes clones.
//
// Looking at a work tree never touches the repository: not its index, refs, objects or
// configuration. The agent can write that configuration, so nothing in it that would run a program
// (hooks, monitors, filters, external diffs) is obeyed.
//
// A directory without git works too: its content is known by a digest, its changed files are not.
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
	// Marker is an environment entry for git processes, by which those of a killed ralph are found;
	// "" for none.
	Marker string

	native  bool // the git program is available
	root    string
	git     string // git directory of this work tree; "" without git
	common  string // git directory shared by all work trees
	prefix  string // path of the root below the top of the work tree; "" if it is the top
	exclude []string
	longIDs bool   // the repository uses SHA-256
	foreign bool   // do not use go-git
	theirs  string // .git of a [Clone], whose git directory and index are ralph's own; "" for none
	lender  *Tree  // the repository whose objects a [Clone] borrows; nil for none
	at      string // commit that the own index was read from; "" if unknown
	known   memory
	asked   *answers
	pinned  []pinned // the git directories' identities
}

// A Snapshot is the state of a work tree at one moment.
type Snapshot struct {
	Head    string            `json:"head"`    // commit; "" before the first one
	Branch  string            `json:"branch"`  // full ref name, "" if detached
	Content string            `json:"content"` // tree or digest of the files, untracked ones included, ignored ones not
	Refs    map[string]string `json:"refs"`    // ref name to commit
	Logged  []string          `json:"logged"`  // commits that only the logs of the refs know
	Stashes []string          `json:"stashes"` // commits of the stash, which are among Logged
	Marks   string            `json:"marks"`   // digest of the refs and their logs; "" if unknown

	// files, and folders with a slash at the end, that git ignores only since the session's start
	Hidden []string `json:"hidden,omitempty"`
	Whole  []string `json:"whole,omitempty"` // those folders whose files are not in Content

	Untaken []ralph.Untaken `json:"untaken,omitempty"` // what of a clone is not in Content although git does not ignore it

	Modules    map[string]Snapshot `json:"modules,omitempty"`    // nested repositories, by path
	Unreadable string              `json:"unreadable,omitempty"` // why a nested repository could not be read
}

// Open opens the work tree of a project. Paths in exclude, relative to the root, are ignored: files
// that ralph itself keeps there.
func Open(ctx context.Context, root string, exclude ...string) (*Tree, error) {
	t := &Tree{root: root, exclude: exclude, asked: &answers{said: map[string][]byte{}}}
	if _, err := exec.LookPath("git"); err != nil {
		return t, t.openWithout()
	}
	t.native = true
	// The prefix comes last: only it may be empty.
	lines, err := places(ctx, root, "--show-object-format", "--show-prefix")
	if errors.Is(err, ErrNoRepo) {
		return t, nil
	}
	if err != nil {
		return nil, err
	}
	t.common, t.git, t.longIDs, t.prefix = lines[1], lines[2], lines[3] == "sha256", strings.TrimSuffix(lines[4], "/")
	return t, t.pin()
}

// openWithout opens a work tree without a git program. A repository that go-git cannot read is
// treated as a folder without git.
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
	return t.pin()
}

// Snapshot records the state of the work tree. Data for later comparisons is kept in the folder
// scratch, which the caller removes.
func (t *Tree) Snapshot(ctx context.Context, scratch string) (Snapshot, error) {
	if t.git == "" {
		digest, err := t.digest(ctx)
		return Snapshot{Content: digest}, err
	}
	ignored := func() ([]string, error) { return nil, nil }
	if t.native {
		ignored = t.ignoredSoon(ctx)
	}
	s, err := t.look(ctx, scratch, (*Tree).Snapshot)
	names, failed := ignored()
	if err == nil && t.native {
		if err = failed; err == nil {
			err = t.saveRules(ctx, scratch, names)
		}
	}
	if err != nil {
		return s, err
	}
	_, s.Branch = t.head(ctx)
	// The refs are read before their commits: concurrent changes count as changes.
	state, err := t.readRefs(ctx)
	if err != nil {
		return s, err
	}
	s.Refs, s.Stashes, s.Marks = state.refs, state.stashes, state.digest()
	s.Logged, err = t.logged(ctx, state)
	return s, err
}

// Look is [Tree.Snapshot] with the commit and the content only, to detect changes.
func (t *Tree) Look(ctx context.Context, scratch string) (s Snapshot, err error) {
	if t.git == "" {
		s.Content, err = t.digest(ctx)
		return s, err
	}
	return t.look(ctx, scratch, (*Tree).Look)
}

// A looker is Look or Snapshot.
type looker func(t *Tree, ctx context.Context, scratch string) (Snapshot, error)

// look is Look for a git work tree; it uses into for nested repositories.
func (t *Tree) look(ctx context.Context, scratch string, into looker) (s Snapshot, err error) {
	if err := t.Intact(); err != nil {
		return s, err
	}
	if info, err := os.Lstat(t.top()); t.theirs != "" && (err != nil || !info.IsDir()) {
		return s, fmt.Errorf("%s was removed, or something else put in its place", t.top())
	}
	var found survey
	if t.theirs != "" {
		if found, err = t.secure(ctx); err != nil {
			return s, err
		}
	}
	s.Head, _ = t.head(ctx)
	links, err := t.writeTree(ctx, scratch, &s, found)
	if err != nil {
		return s, err
	}
	s.Modules, err = t.lookInto(ctx, scratch, links, into)
	return s, err
}

// writeTree writes the content of the work tree as a tree object into the scratch folder, through a
// separate index, and completes s, whose Head is known. It returns the nested repositories.
func (t *Tree) writeTree(
	ctx context.Context, scratch string, s *Snapshot, found survey,
) (links []gitlink, err error) {
	objects := filepath.Join(scratch, "objects")
	if err := os.MkdirAll(filepath.Join(objects, "info"), 0o700); err != nil {
		return nil, err
	}
	if !t.native {
		s.Content, links, err = t.writeWithout(ctx, scratch)
		return links, err
	}
	index := filepath.Join(scratch, "index")
	links, err = t.copyIndex(filepath.Join(t.git, "index"), index)
	if err != nil {
		return nil, err
	}
	// A lock's holder was killed: nobody else uses the folder.
	if err := os.Remove(index + ".lock"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	// A split index refers to a file beside it.
	shared, err := sharedIndexes(t.git)
	if err != nil {
		return nil, err
	}
	for _, name := range shared {
		more, err := t.copyIndex(filepath.Join(t.git, name), filepath.Join(scratch, name))
		if err != nil {
			return nil, err
		}
		links = append(links, more...)
	}
	overrides, err := t.overrides(ctx)
	if err != nil {
		return nil, err
	}
	env := append(t.environment(scratch), overrides...)
	if t.theirs != "" && s.Head != "" && s.Head != t.at {
		// Committed files count even if git ignores them. A HEAD without a valid commit is skipped.
		if _, err := t.run(ctx, env, "read-tree", "-m", s.Head); err != nil && (!complains(err) || ctx.Err() != nil) {
			return nil, err
		}
	}
	var unlisted error
	if t.theirs != "" {
		s.Untaken, err = t.takeFrom(ctx, env, index, links, found)
	} else { // what is wrong with the index, the tree says best: without it the list is the reason
		unlisted, err = t.addAllAndHidden(ctx, env, scratch, links, s)
	}
	if err != nil {
		return nil, err
	}
	digest := ""
	if b, err := os.ReadFile(index); err == nil && len(shared) == 0 { // a split index is only in part in this file
		sum := sha256.Sum256(b)
		digest, links = hex.EncodeToString(sum[:]), t.lookAtAll(b)
	}
	if content, ok := t.knownTree(digest, objects); ok {
		s.Content = content
		return links, unlisted
	}
	if s.Content, err = t.treeOfIndex(ctx, env); err != nil {
		return links, err
	}
	t.known.mu.Lock()
	defer t.known.mu.Unlock()
	t.known.index, t.known.content = digest, s.Content
	return links, unlisted
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

// knownTree returns the tree that git wrote for the same index before, if its objects exist in the
// scratch folder or in the repository.
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
var objectID = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// treeOfIndex returns the project's tree in the index that env names.
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
	// If the project is below the top, only its own folder counts.
	out, err = t.run(ctx, env, "rev-parse", "--verify", "--quiet", id+":"+t.prefix)
	if err != nil {
		// The folder has no file yet.
		out, err = t.run(ctx, env, "hash-object", "-t", "tree", "-w", "--stdin")
	}
	return strings.TrimSpace(string(out)), err
}

// environment makes git use the index and objects of the scratch folder, if there is one. They need not survive a
// power cut: a session is then settled without them.
func (t *Tree) environment(scratch string) (env []string) {
	if scratch != "" {
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

// quoted quotes a path for a list of paths separated by colons.
func quoted(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}

// copyIndex copies an index and clears the flags that hide files. It returns the nested
// repositories.
func (t *Tree) copyIndex(from, to string) (links []gitlink, err error) {
	info, statErr := os.Stat(from)
	b, err := os.ReadFile(from)
	if errors.Is(err, os.ErrNotExist) {
		// Before the first `git add` there is no index. One that an earlier snapshot left may refer
		// to missing objects.
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
	// Git rereads files whose time is not older than that of the index: their changes cannot be
	// told by time.
	return links, os.Chtimes(to, time.Time{}, info.ModTime())
}

// Changes returns the files that differ between two snapshots, by path, and the commits made
// between them, amended and reset ones included.
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
		return sorted(append(within, after.folders(nil)...)), commits, nil
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
	var vanished []ralph.FileChange
	files = slices.DeleteFunc(files, func(f ralph.FileChange) bool {
		there := f.Status == "deleted" && t.ignoredNow(f.Path)
		if there {
			vanished = append(vanished, f)
		}
		return there
	})
	return sorted(slices.Concat(files, within, after.folders(vanished))), commits, err
}

// ignoredNow reports whether a file or a nested repository that is missing in a later snapshot still
// exists: it has become ignored and was not deleted.
func (t *Tree) ignoredNow(name string) bool {
	info, err := os.Lstat(filepath.Join(t.root, filepath.FromSlash(name)))
	return err == nil && (!info.IsDir() || t.populated(t.Below(name)))
}

// sorted sorts files by path; it never returns nil.
func sorted(files []ralph.FileChange) []ralph.FileChange {
	slices.SortFunc(files, func(a, b ralph.FileChange) int { return strings.Compare(a.Path, b.Path) })
	return slices.AppendSeq([]ralph.FileChange{}, slices.Values(files))
}

// statusNames are git's status letters in words.
var statusNames = map[byte]string{
	'A': "added", 'M': "modified", 'D': "deleted", 'R': "renamed", 'T': "modified", 'C': "added",
}

// parseChanges parses `diff-tree -z --raw --numstat`: first each file's status, then the line
// counts. A rename has two paths.
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
