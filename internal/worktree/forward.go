package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ralph/internal/lazy"
	"ralph/internal/text"
)

// Move moves a ref from one commit to another; from "" creates the ref. If the ref is no longer
// at from, moved is false and nothing has changed.
func (t *Tree) Move(ctx context.Context, ref, from, to, why string) (moved bool, err error) {
	was := from
	if was == "" {
		was = strings.Repeat("0", len(to))
	}
	err = t.updateRef(ctx, author, ref, "--create-reflog", "-m", "ralph: "+why, ref, to, was)
	if err == nil {
		return true, nil
	}
	if !complains(err) || ctx.Err() != nil {
		return false, err
	}
	now, looked := t.Ref(ctx, ref)
	if looked != nil || now == from {
		return false, errors.Join(err, looked) // the update failed for another reason
	}
	return now == to, nil
}

// updateRef runs git update-ref on a ref, and once more if git was killed, or met a stale lock of ralph's.
func (t *Tree) updateRef(ctx context.Context, env []string, ref string, args ...string) error {
	args = append([]string{"update-ref"}, args...)
	_, err := t.run(ctx, env, args...)
	if err == nil || ctx.Err() != nil {
		return err
	}
	killed := Killed(err)
	removed, uerr := t.unlockRef(ref, killed)
	if uerr == nil && (killed || removed) { // the ref may be updated already: then the second time changes nothing
		_, err = t.run(ctx, env, args...)
	}
	return errors.Join(err, uerr)
}

// A Checkout is a work tree of a repository.
type Checkout struct {
	Dir    string
	Branch string // full name of the branch that is checked out or being rebased; "" if detached
	Busy   string // git's unfinished operation there, "merge" or "rebase"; "" for none
}

// Checkouts lists the repository's work trees that exist.
func (t *Tree) Checkouts(ctx context.Context) (list []Checkout, err error) {
	out, err := t.run(ctx, nil, "worktree", "list", "--porcelain", "-z")
	if err != nil {
		return nil, err
	}
	for entry := range strings.SplitSeq(string(out), "\x00\x00") {
		var c Checkout
		skip := false
		for line := range strings.SplitSeq(entry, "\x00") {
			key, value, _ := strings.Cut(line, " ")
			switch key {
			case "worktree":
				c.Dir = value
			case "branch":
				c.Branch = value
			case "bare", "prunable":
				skip = true
			}
		}
		if c.Dir == "" || skip {
			continue
		}
		if c.Dir == filepath.Dir(t.common) || c.Dir == t.common {
			c.Dir = t.mainDir()
		}
		git, err := gitDirOf(filepath.Join(c.Dir, ".git"))
		if err != nil {
			return nil, fmt.Errorf("work tree %s: %w", c.Dir, err)
		}
		if branch, err := rebased(git); err != nil {
			return nil, err
		} else if branch != "" {
			c.Branch, c.Busy = branch, "rebase"
		} else if _, err := os.Lstat(filepath.Join(git, "MERGE_HEAD")); err == nil {
			c.Busy = "merge"
		}
		list = append(list, c)
	}
	return list, nil
}

// mainDir returns the repository's main work tree.
func (t *Tree) mainDir() string {
	if t.git == t.common {
		return t.Top()
	}
	return filepath.Dir(t.common)
}

// rebased returns the branch that a rebase in progress in a git directory will move; "" if there is
// none.
func rebased(git string) (string, error) {
	for _, folder := range []string{"rebase-merge", "rebase-apply"} {
		name, err := os.ReadFile(filepath.Join(git, folder, "head-name"))
		if err == nil {
			return strings.TrimSpace(string(name)), nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !isNotDir(err) {
			return "", err
		}
	}
	return "", nil
}

// In returns the work tree of the repository in a folder, its top.
func (t *Tree) In(ctx context.Context, dir string) (*Tree, error) {
	if dir == t.root && t.prefix == "" {
		return t, nil
	}
	in, err := Open(ctx, dir)
	if err == nil {
		in.asked, in.Marker = t.asked, t.Marker
	}
	return in, err
}

// Filtered names the first file of a commit that only a filter can write, so that [FastForward] refuses it; "" for
// none.
func (t *Tree) Filtered(ctx context.Context, commit string, files []string) (refused string, err error) {
	filtered, err := t.smudged(ctx, commit, files)
	if err != nil || len(filtered) == 0 {
		return "", err
	}
	return "a filter has to write " + strings.Join(filtered, ", "), nil
}

// FastForward moves the branch that is checked out in the work tree, with its files, to a descendant commit. It
// refuses, and changes nothing, if a file to be updated was edited or exists as an untracked or ignored file, if a
// merge is in progress, or if git could not move the branch. Hooks and filters do not run: a file with a filter is a
// reason to refuse. It finishes an earlier move that was interrupted. The reason is for people, with their first step
// in parentheses.
func (t *Tree) FastForward(ctx context.Context, commit string) (refused string, err error) {
	head, branch := t.At(ctx), t.checkedOut(ctx)
	files, err := t.Files(ctx, head, commit)
	if err != nil {
		return "", err
	}
	if refused, err = t.Filtered(ctx, commit, files); err != nil || refused != "" {
		return refused, err
	}
	if refused, err = t.lockOn(branch); err != nil || refused != "" {
		return refused, err // git would write the files, and then fail to move the branch
	}
	overrides, err := t.overrides(ctx)
	if err != nil {
		return "", err
	}
	for again := false; ; again = true {
		_, err = t.run(ctx, slices.Concat(overrides, author), "merge", "--quiet",
			"--ff-only", "--no-overwrite-ignore", "--no-autostash", "--no-verify-signatures", "--no-stat", commit)
		if err == nil || ctx.Err() != nil || !complains(err) && !Killed(err) {
			return "", err
		}
		killed := Killed(err)
		if killed {
			if err := t.unlockKilled(branch); err != nil {
				return "", err
			}
		}
		if t.At(ctx) == commit {
			return "", nil
		}
		own, mended, merr := t.finish(ctx, overrides, head, branch, commit, files)
		if merr == nil && !mended && !again {
			mended, merr = t.refreshUnedited(ctx, head, files)
		}
		if merr == nil && !mended && !again {
			mended, merr = t.removeDebris(ctx, head, files)
		}
		if merr != nil || !mended && !killed || again {
			return refusal(err, own), merr
		}
	}
}

// lockOn names the lock that prevents moving a work tree and its branch; "" for none.
func (t *Tree) lockOn(branch string) (why string, err error) {
	lock, err := t.Locked(branch)
	for _, name := range []string{"index.lock", "HEAD.lock"} {
		path := filepath.Join(t.git, name)
		if _, serr := os.Lstat(path); serr == nil && lock == "" {
			lock = t.inside(path)
		}
	}
	if err != nil || lock == "" {
		return "", err
	}
	return "it is locked by " + lock + " (remove that file, unless a git is at work)", nil
}

// unlockKilled removes the locks that a killed git of ralph's left: there were none before it.
func (t *Tree) unlockKilled(branch string) error {
	var errs []error
	for _, path := range []string{
		filepath.Join(t.git, "index.lock"), filepath.Join(t.git, "HEAD.lock"),
		filepath.Join(t.common, filepath.FromSlash(branch)+".lock"),
	} {
		_, err := removeStale(path, t.Top())
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// mostPassed is the number of past merges that are searched for an unfinished move.
const mostPassed = 20

// finish completes an interrupted fast-forward: files were written, but the branch was not moved. If the
// index is the tree of a commit on the way, it moves the branch there. If only files identical to the
// commit's are in the way, it adds them to the index. mended reports that it did something; own are the files
// that people have not edited.
func (t *Tree) finish(
	ctx context.Context, overrides []string, head, branch, commit string, files []string,
) (own []string, mended bool, err error) {
	same := func(of string) (bool, error) {
		_, err := t.run(ctx, nil, "diff-index", "--cached", "--quiet", of)
		if complains(err) && ctx.Err() == nil {
			return false, nil
		}
		return err == nil, err
	}
	clean, err := same(head)
	if err != nil {
		return nil, false, err
	}
	for _, name := range []string{"SQUASH_MSG", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"} {
		if exists(filepath.Join(t.git, name)) {
			return nil, false, nil // people own the index
		}
	}
	if !clean && branch != "" {
		out, err := t.run(ctx, nil, "rev-list", "--first-parent", "--max-count="+strconv.Itoa(mostPassed), commit, "^"+head)
		if err != nil {
			return nil, false, err
		}
		for _, passed := range strings.Fields(string(out)) {
			if is, err := same(passed); err != nil || !is {
				if err != nil {
					return nil, false, err
				}
				continue
			}
			moved, err := t.Move(ctx, branch, head, passed, "finish a fast-forward")
			if complains(err) {
				return nil, false, nil // it is locked again
			}
			return nil, moved, err
		}
	}
	return t.written(ctx, overrides, head, commit, files)
}

// written adds the files that equal a commit's to the index, if all others equal head's.
func (t *Tree) written(
	ctx context.Context, overrides []string, head, commit string, files []string,
) (own []string, all bool, err error) {
	was, err := t.inCommit(ctx, head, files)
	if err != nil {
		return nil, false, err
	}
	want, err := t.inCommit(ctx, commit, files)
	if err != nil {
		return nil, false, err
	}
	is, err := t.onDisk(ctx, overrides, files)
	if err != nil {
		return nil, false, err
	}
	out, err := t.run(ctx, nil, "diff-index", "--cached", "--name-only", "--no-renames", "-z", head)
	if err != nil {
		return nil, false, err
	}
	staged := strings.Split(string(out), "\x00")
	all = true
	var index strings.Builder
	for _, name := range files {
		switch {
		case is[name] == want[name] && !slices.Contains(staged, name):
			own = append(own, name)
			entry := want[name]
			if entry == "" {
				entry = "0 " + strings.Repeat("0", len(commit))
			}
			fmt.Fprintf(&index, "%s\t%s\x00", entry, name)
		case is[name] != was[name] || slices.Contains(staged, name):
			all = false
		}
	}
	if !all || len(own) == 0 {
		return own, false, nil
	}
	_, err = t.runInput(ctx, nil, index.String(), "update-index", "-z", "--index-info")
	return own, err == nil, err
}

// inCommit returns mode and object of files of the whole repository in a commit, as for git update-index; files missing
// there are left out.
func (t *Tree) inCommit(ctx context.Context, commit string, files []string) (map[string]string, error) {
	of := map[string]bool{}
	for _, name := range files {
		of[name] = true
	}
	out, err := t.run(ctx, nil, "ls-tree", "--full-tree", "-r", "-z", commit)
	list := map[string]string{}
	for entry := range strings.SplitSeq(string(out), "\x00") {
		about, name, _ := strings.Cut(entry, "\t")
		if f := strings.Fields(about); len(f) == 3 && of[name] {
			list[name] = f[0] + " " + f[2]
		}
	}
	return list, err
}

// onDisk is [Tree.inCommit] for the present files. Links and submodules have no object, so they never equal those of a
// commit.
func (t *Tree) onDisk(ctx context.Context, overrides []string, files []string) (map[string]string, error) {
	list, regular := map[string]string{}, []string{}
	for _, name := range files {
		info, err := os.Lstat(filepath.Join(t.Top(), filepath.FromSlash(name)))
		switch {
		case errors.Is(err, fs.ErrNotExist) || isNotDir(err):
			continue
		case err != nil:
			return nil, err
		case !info.Mode().IsRegular() || strings.Contains(name, "\n"):
			list[name] = "unknown"
			continue
		case info.Mode()&0o100 != 0:
			list[name] = "100755 "
		default:
			list[name] = "100644 "
		}
		regular = append(regular, name)
	}
	if len(regular) == 0 {
		return list, nil
	}
	out, err := runWithin(ctx, gitLimit, t.Top(), append(t.here(), overrides...), strings.Join(regular, "\n")+"\n",
		"hash-object", "--stdin-paths")
	ids := strings.Fields(string(out))
	if err == nil && len(ids) != len(regular) {
		err = fmt.Errorf("git hash-object: %d ids for %d files", len(ids), len(regular))
	}
	for i, id := range ids[:min(len(ids), len(regular))] {
		list[regular[i]] += id
	}
	return list, err
}

// smudged returns the files of a commit that a filter would write at a checkout.
func (t *Tree) smudged(ctx context.Context, commit string, files []string) (list []string, err error) {
	if list, err = t.withFilter(ctx, files); err != nil {
		return nil, err
	}
	lfs := len(t.lfs(ctx)) > 0
	for _, file := range files { // files whose attributes come with the commit
		if filepath.Base(file) != ".gitattributes" {
			continue
		}
		text, err := t.run(ctx, nil, "cat-file", "blob", commit+":"+file)
		if err != nil && !complains(err) {
			return nil, err
		}
		for _, m := range filterAttribute().FindAllSubmatch(text, -1) {
			if !lfs || string(m[1]) != "lfs" {
				list = append(list, file)
				break
			}
		}
	}
	return list, nil
}

// filterAttribute matches a filter in a text of attributes.
var filterAttribute = lazy.Regexp(`\bfilter=(\S+)`)

// refusals are git's reasons for not moving a checkout, with words for people. The file names are between begins and
// ends.
var refusals = []struct {
	begins string
	why    func(files []string) string
}{
	{"changes to the following files would be overwritten by merge:", Edits},
	{"untracked working tree files would be overwritten by merge:", Untracked},
	{"untracked working tree files would be removed by merge:", Untracked},
}

// Edits reports that people's edits of files prevent moving a checkout, and names the first step.
func Edits(files []string) string {
	return fmt.Sprintf("you have edits in %s (commit them first)", text.Names(files, 0))
}

// Untracked reports the same for files that people's commit does not have.
func Untracked(files []string) string {
	return fmt.Sprintf("you have untracked files in the way: %s (move or commit them first)", text.Names(files, 0))
}

// refusal explains in one line why git did not move a checkout. Own are ralph's own files in git's message.
func refusal(err error, own []string) string {
	said := err.Error()
	for _, r := range refusals {
		_, rest, found := strings.Cut(said, r.begins)
		if files, _, ends := strings.Cut(rest, "Please"); found && ends {
			theirs := slices.DeleteFunc(strings.Fields(files), func(f string) bool { return slices.Contains(own, f) })
			if len(theirs) > 0 {
				return r.why(theirs)
			}
		}
	}
	_, said, _ = strings.Cut(said, ": ")
	return said
}

// Has reports whether the repository has a commit.
func (t *Tree) Has(ctx context.Context, commit string) bool {
	_, err := t.run(ctx, nil, "cat-file", "-e", commit+"^{commit}")
	return err == nil
}

// Names returns the files of the project in a commit.
func (t *Tree) Names(ctx context.Context, commit string) ([]string, error) {
	out, err := t.run(ctx, nil, "ls-tree", "-r", "-z", "--name-only", commit)
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), err
}

// A Version is a file in a commit.
type Version struct {
	Mode    string // git's mode; "" if the commit has no such file
	Content []byte // for a link, its target
}

// Write writes the file into a folder, or removes it there if the commit has none. It follows no links.
func (v Version) Write(root *os.Root, name string) error {
	name = filepath.FromSlash(name)
	if err := root.RemoveAll(name); err != nil || v.Mode == "" {
		return err
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	switch v.Mode {
	case "120000":
		return root.Symlink(string(v.Content), name)
	case "100755":
		return root.WriteFile(name, v.Content, 0o755)
	}
	return root.WriteFile(name, v.Content, 0o644)
}

// Version returns a file of the project in a commit.
func (t *Tree) Version(ctx context.Context, commit, name string) (v Version, err error) {
	literal := []string{"GIT_LITERAL_PATHSPECS=1"}
	out, err := t.run(ctx, literal, "ls-tree", "--full-tree", "-z", commit, "--", t.Below(name))
	mode, rest, _ := strings.Cut(string(out), " ")
	kind, rest, _ := strings.Cut(rest, " ")
	id, _, _ := strings.Cut(rest, "\t")
	if err != nil || kind != "blob" {
		return v, err
	}
	v.Mode = mode
	v.Content, err = t.run(ctx, nil, "cat-file", "blob", id)
	return v, err
}

// Files returns the files that differ between two commits, relative to the top.
func (t *Tree) Files(ctx context.Context, from, to string) ([]string, error) {
	was, err := t.treeOf(ctx, from, "")
	if err != nil {
		return nil, err
	}
	is, err := t.treeOf(ctx, to, "")
	if err != nil {
		return nil, err
	}
	return t.differ(ctx, was, is)
}
