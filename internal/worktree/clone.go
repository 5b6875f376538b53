package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ralph/internal/files"
	"ralph/internal/lazy"
)

// A Clone is a separate work tree that borrows the objects of a repository. One session works in it, or one commit is
// checked in it.
//
// Its .git belongs to its session, is not trusted, and is recreated before each use. To look at the work tree, ralph
// uses its own git directory, with its own index, configuration and objects. From .git it reads only HEAD, the refs,
// their logs and objects.
type Clone struct {
	*Tree        // the project's part
	dir   string // top of the work tree
}

// borrowed matches the settings of a repository that decide how its files are written.
var borrowed = lazy.Regexp(`^core\.(autocrlf|eol|filemode|ignorecase|symlinks|precomposeunicode|longpaths)$`)

// Clone opens the clone in a folder, and creates it if it does not exist. Its work tree is in
// "tree", ralph's own git directory in "git".
func (t *Tree) Clone(ctx context.Context, folder string) (*Clone, error) {
	if why := t.Uncloned(ctx); why != "" {
		return nil, errors.New(why)
	}
	c := &Clone{dir: filepath.Join(folder, "tree")}
	own := filepath.Join(folder, "git")
	c.Tree = &Tree{
		Marker: t.Marker, root: filepath.Join(c.dir, filepath.FromSlash(t.prefix)), git: own, common: own,
		prefix: t.prefix, exclude: t.exclude, longIDs: t.longIDs, foreign: true, theirs: filepath.Join(c.dir, ".git"),
		faults: &faults{by: map[string]fault{}},
		lender: t, asked: t.asked,
	}
	if at, err := os.ReadFile(c.atFile()); err == nil {
		c.at = string(at)
	}
	// A link to another work tree must not be followed: git would clean that one.
	if info, err := os.Lstat(c.dir); err == nil && !info.IsDir() {
		if err := os.Remove(c.dir); err != nil {
			return nil, err
		}
	}
	for _, dir := range []string{c.root, filepath.Join(own, "objects", "info"), filepath.Join(own, "info")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"refs", "packed-refs", "logs"} {
		err := os.Symlink(filepath.Join(c.dir, ".git", name), filepath.Join(own, name))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	return c, nil
}

// atFile returns the file with the commit of ralph's own index. The file is missing while that commit is unknown.
func (c *Clone) atFile() string { return filepath.Join(c.git, "at") }

// Top returns the top of the work tree.
func (c *Clone) Top() string { return c.dir }

// Whole takes a snapshot of the whole work tree, even if the project is a folder below its top:
// commits contain the whole.
func (c *Clone) Whole(ctx context.Context) (Snapshot, error) {
	if c.prefix == "" {
		return c.Snapshot(ctx, c.Scratch())
	}
	t := &Tree{
		Marker: c.Marker, root: c.dir, git: c.git, common: c.common, longIDs: c.longIDs, foreign: true,
		theirs: c.theirs, at: c.at, lender: c.lender, asked: c.asked, faults: c.faults,
	}
	for _, e := range c.exclude {
		t.exclude = append(t.exclude, c.Below(e))
	}
	return t.Snapshot(ctx, c.Scratch())
}

// gitFor is the oldest git version that supports clones: the first whose merge-tree writes trees.
var gitFor = [2]int{2, 38}

// Uncloned returns the reason why the repository cannot be cloned; "" if it can.
func (t *Tree) Uncloned(ctx context.Context) string {
	var version [2]int
	out, err := t.asked.answer("version", func() ([]byte, error) { return t.run(ctx, nil, "version") })
	if err == nil {
		_, err = fmt.Sscanf(string(out), "git version %d.%d", &version[0], &version[1])
	}
	if err != nil || slices.Compare(version[:], gitFor[:]) < 0 {
		return fmt.Sprintf("git is older than %d.%d, or does not report a version", gitFor[0], gitFor[1])
	}
	if t.At(ctx) == "" {
		return "the repository has no commit yet: `ralph init --git` makes one of this folder"
	}
	list, _ := t.configured(ctx, filterCommand())
	names := map[string]bool{}
	for _, s := range list {
		rest := strings.TrimPrefix(s.key, "filter.")
		names[rest[:strings.LastIndexByte(rest, '.')]] = true
	}
	delete(names, "lfs")
	return t.filteredBy(ctx, names)
}

// filteredBy returns the first of the filters that applies to files of the repository, which only the user's own git
// can write; "" for none.
func (t *Tree) filteredBy(ctx context.Context, filters map[string]bool) string {
	if len(filters) == 0 {
		return ""
	}
	rules, _ := t.run(ctx, nil, "-C", t.Top(), "grep", "-hI", "filter=", "HEAD", "--", ":(glob)**/.gitattributes")
	if own, err := os.ReadFile(filepath.Join(t.common, "info", "attributes")); err == nil {
		rules = append(append(rules, '\n'), own...)
	}
	for line := range strings.Lines(string(rules)) {
		for _, word := range strings.Fields(line) {
			if name, ok := strings.CutPrefix(word, "filter="); ok && !strings.HasPrefix(line, "#") && filters[name] {
				return "files of the repository belong to the filter " + name + ", which only your own git runs"
			}
		}
	}
	return ""
}

// Fresh checks out a commit over any contents of the work tree, and recreates .git. It removes untracked files; if all
// is true, ignored ones too. An error may mean that git cannot remove something. hidden lists further patterns for git
// to ignore; user is the committer's name and address.
func (c *Clone) Fresh(ctx context.Context, commit string, hidden []string, user [2]string, all bool) error {
	found, err := walk(ctx, c.dir)
	if err == nil && found.endless() != "" {
		err = fmt.Errorf("%s: git cannot clean it", found.endless())
	}
	if err != nil {
		return err
	}
	err = c.fresh(ctx, commit, hidden, user, all)
	if err == nil || ctx.Err() != nil {
		return err
	}
	// A power cut may have left an incomplete index.
	if rerr := os.Remove(c.index()); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
		return errors.Join(err, rerr)
	}
	return c.fresh(ctx, commit, hidden, user, all)
}

func (c *Clone) fresh(ctx context.Context, commit string, hidden []string, user [2]string, all bool) error {
	if err := c.lender.complete(ctx, commit); err != nil {
		return err
	}
	c.at = ""
	if err := os.Remove(c.atFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := errors.Join(c.spread(), c.renew(ctx, commit, hidden, user)); err != nil {
		return err
	}
	overrides, err := c.overrides(ctx)
	if err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(c.git, "index.lock")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // the holder was killed: nobody else uses the folder
	}
	if _, err := c.run(ctx, overrides, "-C", c.dir, "read-tree", "--reset", "-u", commit); err != nil {
		return err
	}
	clean := "-ffdq"
	if all {
		clean = "-ffdxq"
	}
	if _, err := c.run(ctx, overrides, "-C", c.dir, "clean", clean); err != nil {
		return err
	}
	if err := c.fillModules(ctx, commit, overrides); err != nil {
		return err
	}
	c.at = commit
	return errors.Join(replace(c.atFile(), []byte(commit)), c.giveIndex())
}

// Drop removes the untracked files that match globs in any folder, ignoring case. It also removes ignored ones.
func (c *Clone) Drop(ctx context.Context, globs []string) error {
	if len(globs) == 0 {
		return nil
	}
	args := []string{"-C", c.dir, "clean", "-ffdxq", "--"}
	for _, glob := range globs {
		args = append(args, ":(top,glob,icase)**/"+strings.TrimPrefix(glob, "**/"))
	}
	_, err := c.run(ctx, nil, args...)
	return err
}

// HasModules reports whether the checked out commit has submodules. [Clone.Fresh] fills them from the user's own
// copies; submodules without a copy are empty.
func (c *Clone) HasModules() bool { return exists(filepath.Join(c.dir, ".gitmodules")) }

// Tracked returns the names of the checked out files, submodules included.
func (c *Clone) Tracked(ctx context.Context) (map[string]bool, error) {
	out, err := c.run(ctx, nil, "-C", c.dir, "ls-files", "-z")
	names := map[string]bool{}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		names[name] = name != ""
	}
	return names, err
}

// fillModules checks out the submodules again: their repositories were in the removed .git folder, and an earlier
// session's files must not stay. The clone has no remote, so submodules with relative addresses get absolute ones.
func (c *Clone) fillModules(ctx context.Context, commit string, env []string) error {
	if !c.HasModules() {
		return nil
	}
	out, err := c.run(ctx, nil, "-C", c.dir, "ls-files", "--stage", "-z")
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return err
	}
	addresses := ""
	for _, link := range gitlinks(string(out)) {
		address, aerr := c.moduleAddress(ctx, commit, link.name)
		addresses += address
		err = errors.Join(aerr, root.RemoveAll(link.name), root.MkdirAll(link.name, 0o755))
		if err == nil {
			err = c.lender.lendModule(ctx, commit, link, filepath.Join(c.dir, link.name), env)
		}
		if err != nil {
			break
		}
	}
	if err == nil && addresses != "" {
		err = appendTo(root, ".git/config", addresses)
	}
	return errors.Join(err, root.Close())
}

// moduleAddress returns the configuration of a submodule if its address is relative to that of the repository;
// otherwise "".
func (c *Clone) moduleAddress(ctx context.Context, commit, path string) (string, error) {
	section, said, err := c.lender.moduleSaid(ctx, commit, path)
	if err != nil || !relativeURL(said) || strings.Contains(section, "\n") {
		return "", err
	}
	address, err := c.lender.moduleURL(ctx, commit, path)
	if address = withoutUser(address); err != nil || address == "" {
		return "", err
	}
	name := value(strings.TrimPrefix(section, "submodule."))
	return fmt.Sprintf("[submodule %s]\n\turl = %s\n", name, value(address)), nil
}

// appendTo adds text to a file.
func appendTo(root *os.Root, name, text string) error {
	f, err := root.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// Lay writes the files of a tree over the checked out ones, as uncommitted changes.
func (c *Clone) Lay(ctx context.Context, tree string) error {
	overrides, err := c.overrides(ctx)
	if err != nil {
		return err
	}
	kept, err := os.ReadFile(c.index())
	if err == nil {
		// This includes paths outside of a sparse work tree, whose differences the index does not show.
		_, err = c.run(ctx, overrides, "-C", c.dir, "-c", "core.sparseCheckout=false", "read-tree", "--reset", "-u", tree)
	}
	if err == nil {
		err = replace(c.index(), kept)
	}
	return err
}

// index returns the path of ralph's own index.
func (c *Clone) index() string { return filepath.Join(c.git, "index") }

// replace replaces a file in one step, because another process may be reading it, and this one may be killed.
func replace(path string, text []byte) error {
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// maxHead bounds the size of a HEAD file, in bytes.
const maxHead = 4096

// copyHead copies the session's HEAD into ralph's own git directory, where git does not accept a link. It returns the
// content; "" if the session has none.
func (t *Tree) copyHead() (at string, err error) {
	if t.theirs == "" {
		return "", nil
	}
	text, err := readSmall(filepath.Join(t.theirs, "HEAD"), maxHead)
	if err != nil {
		return "", err
	}
	t.known.mu.Lock()
	defer t.known.mu.Unlock()
	own, at := filepath.Join(t.git, "HEAD"), strings.TrimSpace(string(text))
	if is, err := os.ReadFile(own); err == nil && bytes.Equal(is, text) {
		return at, nil
	}
	return at, replace(own, text)
}

// readSmall reads a regular file of at most that many bytes, which ralph did not write.
func readSmall(path string, most int64) (text []byte, err error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err = io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		return nil, fmt.Errorf("%s has more than %d bytes", path, most)
	}
	return text, err
}

// renew recreates both git directories with HEAD at a commit.
func (c *Clone) renew(ctx context.Context, commit string, hidden []string, user [2]string) error {
	exclude, err := os.ReadFile(filepath.Join(c.lender.common, "info", "exclude"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	ignored := string(exclude) + "\n" + strings.Join(hidden, "\n") + "\n"
	for _, own := range c.exclude {
		ignored += "/" + c.Below(own) + "\n"
	}
	return c.Tree.renew(ctx, commit, ignored, user)
}

// Scratch returns the folder for snapshots of the clone, from which candidates are fetched.
func (c *Clone) Scratch() string { return filepath.Join(c.git, "scratch") }

// value quotes a text for a git configuration file.
func value(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// A Candidate is the work in a clone, as a commit.
type Candidate struct {
	Base string `json:"base"` // its base commit
	Head string `json:"head"` // the commit
	Tree string `json:"tree"`
}

// Candidate makes a commit from a tree that was written in the clone. If HEAD has that tree, it returns HEAD, otherwise
// a new commit on HEAD. If base is not an ancestor of HEAD, the new commit is on base. During a merge, the merged
// commit becomes a second parent. user is the author.
func (c *Clone) Candidate(
	ctx context.Context, base, tree, message string, user [2]string,
) (made Candidate, err error) {
	made = Candidate{Base: base, Tree: tree}
	parent := base
	if head := c.At(ctx); head != "" && head != base {
		_, err := c.run(ctx, nil, "merge-base", "--is-ancestor", base, head)
		if err == nil {
			parent = head
		} else if !complains(err) || ctx.Err() != nil {
			return made, err
		}
	}
	parents := []string{parent}
	if other := c.merging(); other != "" {
		_, err := c.run(ctx, nil, "merge-base", "--is-ancestor", other, parent)
		var not *exitError // exit status 1; only a commit can be a parent
		if errors.As(err, &not) && not.ExitCode() == 1 {
			parents = append(parents, other)
		} else if err != nil && (!complains(err) || ctx.Err() != nil) {
			return made, err
		}
	}
	if is, err := c.treeOf(ctx, parent, ""); err != nil || is == tree && len(parents) == 1 {
		made.Head = parent
		return made, err
	}
	made.Head, err = c.CommitTree(ctx, tree, parents, message, user)
	return made, err
}

// mergeHead is the file of a .git that names the commit being merged.
const mergeHead = "MERGE_HEAD"

// merging returns the commit that is being merged in the clone; "" for none.
func (t *Tree) merging() string {
	if t.theirs == "" {
		return ""
	}
	text, err := readSmall(filepath.Join(t.theirs, mergeHead), maxHead)
	if id := strings.TrimSpace(string(text)); err == nil && isID(id) {
		return id
	}
	return ""
}

// Merge leaves the clone in the middle of a merge with a commit. It writes the files in which the result's tree differs
// from was, the clone's present tree. It follows no links of the session.
func (c *Clone) Merge(ctx context.Context, commit, was, tree string) (err error) {
	out, err := c.lender.run(ctx, nil, "diff-tree", "-r", "-z", "--raw", "--no-renames", was, tree)
	if err != nil {
		return err
	}
	index := filepath.Join(c.Scratch(), "merge")
	if _, err := c.run(ctx, []string{"GIT_INDEX_FILE=" + index}, "read-tree", tree); err != nil {
		return err
	}
	own, err := os.ReadFile(c.index())
	if err != nil {
		return err
	}
	absent := c.absent(own)
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	var written []string // objects that the sparse work tree lacks
	fields := strings.Split(string(out), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		f := strings.Fields(strings.TrimPrefix(fields[i], ":"))
		if len(f) < 4 {
			return fmt.Errorf("git diff-tree answers %q", fields[i])
		}
		if f[0] == moduleMode || f[1] == moduleMode {
			continue
		}
		if absent[fields[i+1]] {
			delete(absent, fields[i+1])
			written = append(written, fields[i+1])
		}
		var v Version
		if strings.Trim(f[3], "0") != "" {
			v.Mode = f[1]
			if v.Content, err = c.lender.run(ctx, nil, "cat-file", "blob", f[3]); err != nil {
				return err
			}
		}
		if err := v.Write(root, fields[i+1]); err != nil {
			return err
		}
	}
	if err := errors.Join(c.mark(ctx, c.index(), "--no-skip-worktree", written),
		c.mark(ctx, index, "--skip-worktree", slices.Collect(maps.Keys(absent)))); err != nil {
		return err
	}
	staged, err := os.ReadFile(index)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"index": staged, mergeHead: []byte(commit + "\n"), "MERGE_MSG": []byte("Merge the target\n"),
	} {
		if err := (Version{"100644", content}).Write(root, ".git/"+name); err != nil {
			return err
		}
	}
	return nil
}

// moduleMode is git's mode of a submodule.
const moduleMode = "160000"

// Root returns the project's folder in the clone.
func (c *Clone) Root() string { return c.root }

// Branch creates or moves a branch in the clone's .git to a commit.
func (c *Clone) Branch(name, commit string) (err error) {
	root, err := os.OpenRoot(c.dir) // refs that the session replaced by links lead nowhere outside
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return Version{"100644", []byte(commit + "\n")}.Write(root, ".git/refs/heads/"+name)
}
