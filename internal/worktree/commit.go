package worktree

import (
	"context"
	"slices"
	"strings"
)

// asRalph is the author of commits if git has no user configured.
var asRalph = [2]string{"ralph", "ralph@localhost"}

// author is asRalph in git's environment.
var author = signed(asRalph)

// signed returns git's environment for commits in a user's name.
func signed(user [2]string) (env []string) {
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		env = append(env, "GIT_"+who+"_NAME="+user[0], "GIT_"+who+"_EMAIL="+user[1])
	}
	return env
}

// rootPrefix returns the prefix of the root for paths relative to the top; "" if the root is the top.
func (t *Tree) rootPrefix() string {
	if t.prefix == "" {
		return ""
	}
	return t.prefix + "/"
}

// Below converts a path relative to the root to one relative to the top.
func (t *Tree) Below(path string) string { return t.rootPrefix() + path }

// withFilter returns the given files that have a filter attribute.
func (t *Tree) withFilter(ctx context.Context, files []string) (list []string, err error) {
	if len(files) == 0 {
		return nil, nil
	}
	lfs := len(t.lfs(ctx)) > 0
	out, err := t.runInput(ctx, nil, strings.Join(files, "\x00"), "check-attr", "-z", "--stdin", "filter")
	fields := strings.Split(string(out), "\x00")
	for i := 0; i+2 < len(fields); i += 3 {
		if value := fields[i+2]; value != "unspecified" && value != "unset" && (value != "lfs" || !lfs) {
			list = append(list, fields[i])
		}
	}
	return list, err
}

// CommitTree makes a commit in the name of user, or of ralph if user is empty.
func (t *Tree) CommitTree(
	ctx context.Context, tree string, parents []string, message string, user [2]string,
) (string, error) {
	if user[0] == "" {
		user = asRalph
	}
	args := []string{"commit-tree", "-F", "-"}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	out, err := t.runInput(ctx, signed(user), message, append(args, tree)...)
	return strings.TrimSpace(string(out)), err
}

// Record commits the whole work tree on HEAD, with untracked and without ignored files, and points ref at the commit.
// It changes neither the work tree nor the index. Without uncommitted changes, made.Head is HEAD. Its temporary index
// is in the folder scratch, outside of the work tree, which the caller removes.
func (t *Tree) Record(ctx context.Context, scratch, ref, message string) (made Candidate, err error) {
	whole := &Tree{
		Marker: t.Marker, root: t.Top(), git: t.git, common: t.common, longIDs: t.longIDs, asked: t.asked,
		pinned: t.pinned, records: true,
	}
	for _, e := range t.exclude {
		whole.exclude = append(whole.exclude, t.Below(e))
	}
	look, err := whole.Snapshot(ctx, scratch)
	if err != nil {
		return made, err
	}
	made = Candidate{Base: look.Head, Head: look.Head, Tree: look.Content}
	if is, err := t.Whole(ctx, look.Head); err != nil || is == look.Content {
		return made, err
	}
	if made.Head, err = t.CommitTree(ctx, look.Content, []string{look.Head}, message, t.User(ctx)); err != nil {
		return made, err
	}
	return made, t.SetRef(ctx, ref, made.Head)
}

// Uncommitted lists the files of the project with uncommitted changes, without ignored ones, by path. Files that git
// would only convert, by its attributes and settings, do not count.
func (t *Tree) Uncommitted(ctx context.Context) (files []string, err error) {
	files, _, err = t.uncommitted(ctx)
	return files, err
}

// Converted lists the files of the project that git calls modified although they equal the last commit, by path. `git
// add --renormalize .` ends that.
func (t *Tree) Converted(ctx context.Context) (files []string, err error) {
	_, files, err = t.uncommitted(ctx)
	return files, err
}

// uncommitted lists the changed files and, separately, the files that git would only convert.
func (t *Tree) uncommitted(ctx context.Context) (files, converted []string, err error) {
	overrides, err := t.overrides(ctx)
	if err != nil {
		return nil, nil, err
	}
	args := []string{"status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames", "--", "."}
	for _, e := range t.exclude {
		args = append(args, ":(exclude,literal)"+e)
	}
	out, err := t.run(ctx, overrides, args...)
	if err != nil {
		return nil, nil, err
	}
	// The number of fields of an entry before its path, by the first field.
	before := map[byte]int{'1': 8, 'u': 10, '?': 1}
	for line := range strings.SplitSeq(string(out), "\x00") {
		if line == "" || before[line[0]] == 0 {
			continue
		}
		f := strings.SplitN(line, " ", before[line[0]]+1)
		name := f[len(f)-1]
		list := &files
		if len(f) == 9 && f[1] == ".M" && f[4] == f[5] {
			same, err := t.isBlob(name, f[7])
			if err != nil {
				return nil, nil, err
			}
			if same {
				list = &converted
			}
		}
		*list = append(*list, strings.TrimPrefix(name, t.rootPrefix()))
	}
	slices.Sort(files)
	slices.Sort(converted)
	return files, converted, nil
}

// User returns the name and address of the repository's committer; empty if none is configured.
func (t *Tree) User(ctx context.Context) (user [2]string) {
	list, _ := t.configured(ctx, userIs())
	for _, s := range list {
		user[slices.Index([]string{"user.name", "user.email"}, s.key)] = strings.TrimSpace(s.value)
	}
	if slices.Contains(user[:], "") {
		return [2]string{}
	}
	return user
}
