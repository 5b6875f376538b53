package worktree

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// asRalph is who makes saved states, and other commits if git has no user configured.
var asRalph = [2]string{"ralph", "ralph@localhost"}

// author is asRalph in git's environment.
var author = signed(asRalph)

// signed returns the environment in which git makes commits in somebody's name.
func signed(user [2]string) (env []string) {
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		env = append(env, "GIT_"+who+"_NAME="+user[0], "GIT_"+who+"_EMAIL="+user[1])
	}
	return env
}

// Uncommitted lists the files of a snapshot that differ from its commit, relative to the root.
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

// below is the prefix of the root for paths relative to the top; "" if the root is the top.
func (t *Tree) below() string {
	if t.prefix == "" {
		return ""
	}
	return t.prefix + "/"
}

// Below converts a path relative to the root to one relative to the top.
func (t *Tree) Below(path string) string { return t.below() + path }

// Commit commits the given files as they are in the work tree, and nothing else: other uncommitted
// and staged changes stay. Hooks do not run and nothing is signed. Filters do not run either; files
// with a filter are left uncommitted, since the filter's result is unknown, and are returned. id is
// the new commit; "" if there was nothing to commit.
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
	// `git add` would enter submodules and run the filters of their configuration.
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

// filtered returns those of the given files that have a filter attribute.
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

// CommitTree makes a commit in the name of user, or of ralph if user is empty.
func (t *Tree) CommitTree(
	ctx context.Context, tree string, parents []string, message string, user [2]string,
) (string, error) {
	if user[0] == "" {
		user = asRalph
	}
	return ask(t, "", func(o *objects) (string, error) {
		if !plainName(user[0]) || !plainName(user[1]) || strings.Contains(message, "\x00") {
			return "", errNative // git says what is wrong, or changes it
		}
		return o.commitTree(tree, parents, message, user)
	}, func() (string, error) {
		args := []string{"commit-tree", "-F", "-"}
		for _, p := range parents {
			args = append(args, "-p", p)
		}
		out, err := t.runInput(ctx, signed(user), message, append(args, tree)...)
		return strings.TrimSpace(string(out)), err
	})
}

// plainName reports whether git writes a name or address into a commit as it is.
func plainName(s string) bool {
	const stripped = " .,:;<>\"\\'" // from both ends
	return s != "" && s == strings.Trim(s, stripped) && !strings.ContainsAny(s, "<>") &&
		!strings.ContainsFunc(s, unicode.IsControl)
}

// commitTree makes a commit of a tree that the repository has.
func (o *objects) commitTree(tree string, parents []string, message string, user [2]string) (string, error) {
	by := object.Signature{Name: user[0], Email: user[1], When: time.Now()}
	c := object.Commit{Author: by, Committer: by, Message: message, TreeHash: plumbing.NewHash(tree)}
	there := []error{o.HasEncodedObject(c.TreeHash)}
	for _, p := range parents {
		c.ParentHashes = append(c.ParentHashes, plumbing.NewHash(p))
		there = append(there, o.HasEncodedObject(plumbing.NewHash(p)))
	}
	e := o.NewEncodedObject()
	if err := errors.Join(append(there, c.Encode(e))...); err != nil {
		return "", err
	}
	id, err := o.Storage.SetEncodedObject(e)
	return id.String(), err
}

// User returns the name and address of the repository's committer; empty if none is configured.
func (t *Tree) User(ctx context.Context) (user [2]string) {
	list, _ := t.configured(ctx, `^user\.(name|email)$`)
	for _, s := range list {
		user[slices.Index([]string{"user.name", "user.email"}, s.key)] = strings.TrimSpace(s.value)
	}
	if slices.Contains(user[:], "") {
		return [2]string{}
	}
	return user
}
