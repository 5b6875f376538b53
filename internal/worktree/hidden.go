package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"ralph"
)

// An agent can write ignore rules, and with them hide what it makes, or remove rules, so that a
// person's ignored files look like its own. Which files count is therefore decided by the rules from
// the session's start. In a [Clone] it does not matter: only commits land.

// Names in the scratch folder.
const (
	rulesFolder = "rules"   // a repository with nothing but the ignore rules from the start
	ignoredList = "ignored" // what git ignored then
)

// maxWithin is how many files of a hidden folder are looked at one by one. Of larger ones, such as
// installed dependencies, only the name is recorded.
const maxWithin = 100

// ignoredNames lists what git ignores now, relative to the root. A folder, with a slash at the end,
// stands for its content.
func (t *Tree) ignoredNames(ctx context.Context, folders ...string) ([]string, error) {
	args := []string{"ls-files", "-z", "--others", "--ignored", "--exclude-standard"}
	if len(folders) == 0 {
		args = append(args, "--directory")
	}
	out, err := t.run(ctx, []string{"GIT_LITERAL_PATHSPECS=1"}, append(append(args, "--"), folders...)...)
	return slices.DeleteFunc(strings.Split(string(out), "\x00"), func(name string) bool {
		return name == "" || t.excludes(strings.TrimSuffix(name, "/"))
	}), err
}

// ignoredSoon is [Tree.ignoredNames] while something else is done. It ends when names is called.
func (t *Tree) ignoredSoon(ctx context.Context) (names func() ([]string, error)) {
	var list []string
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		list, err = t.ignoredNames(ctx)
	}()
	return func() ([]string, error) { <-done; return list, err }
}

// saveRules saves in the scratch folder what git ignores at a session's start, and the rules, which
// do not matter in a clone.
func (t *Tree) saveRules(ctx context.Context, scratch string, ignored []string) error {
	list := func() error {
		return os.WriteFile(filepath.Join(scratch, ignoredList), []byte(strings.Join(ignored, "\x00")), 0o600)
	}
	if t.theirs != "" {
		return list()
	}
	rules, err := t.ruleFiles(scratch)
	if err != nil {
		return err
	}
	for _, name := range ignored {
		if path.Base(name) == ".gitignore" { // it ignores itself, too
			rules = append(rules, t.Below(name))
		}
	}
	for above := t.prefix; above != "" && above != "."; {
		above = path.Dir(above)
		rules = append(rules, path.Join(above, ".gitignore"))
	}
	dir := filepath.Join(scratch, rulesFolder)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for _, name := range rules {
		name = filepath.FromSlash(name)
		if err := copyRules(filepath.Join(dir, name), os.Lstat, filepath.Join(t.top(), name)); err != nil {
			return err
		}
	}
	own, err := t.ownExcludes(ctx)
	if err != nil {
		return err
	}
	// Of two files, the repository's counts more; in one file, the last line does.
	git := filepath.Join(dir, ".git")
	err = copyRules(filepath.Join(git, "info", "exclude"), os.Stat, own, filepath.Join(t.common, "info", "exclude"))
	if err != nil {
		return err
	}
	set, err := t.configured(ctx, `^core\.ignorecase$`)
	if err != nil {
		return err
	}
	if n := len(set); n > 0 {
		c := fmt.Appendf(nil, "[core]\n\tignoreCase = %q\n", set[n-1].value)
		if err := os.WriteFile(filepath.Join(git, "config"), c, 0o600); err != nil {
			return err
		}
	}
	return list()
}

// ruleFiles lists the ignore files in the index of the scratch folder, from the top.
func (t *Tree) ruleFiles(scratch string) (names []string, err error) {
	parts, err := sharedIndexes(scratch)
	for _, part := range append(parts, "index") {
		b, failed := os.ReadFile(filepath.Join(scratch, part))
		if failed != nil && !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, failed)
		}
		for e := range t.entries(b) {
			if name := string(e.name); path.Base(name) == ".gitignore" {
				names = append(names, name)
			}
		}
	}
	return names, err
}

// copyRules writes the rules of some files into one. As for git, only regular files hold rules; look
// is [os.Lstat] for those to which git follows no link.
func copyRules(to string, look func(string) (fs.FileInfo, error), from ...string) error {
	var all []byte
	for _, name := range from {
		info, err := look(name)
		if errors.Is(err, fs.ErrNotExist) || isNotDir(err) || err == nil && !info.Mode().IsRegular() {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		all = append(append(all, bytes.TrimPrefix(b, []byte("\ufeff"))...), '\n')
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.WriteFile(to, all, 0o600)
}

// ownExcludes returns the name of the file with the user's ignore rules for all repositories.
func (t *Tree) ownExcludes(ctx context.Context) (string, error) {
	set, err := t.configured(ctx, `^core\.excludesfile$`)
	if err != nil {
		return "", err
	}
	home, err := os.UserHomeDir()
	if n := len(set); n > 0 {
		if below, ok := strings.CutPrefix(set[n-1].value, "~/"); ok {
			return filepath.Join(home, below), err
		}
		return inside(t.top(), set[n-1].value), nil
	}
	dir := os.Getenv("XDG_CONFIG_HOME")
	switch {
	case dir == "" && err != nil: // as for git, a user without a home has no such file
		return os.DevNull, nil //nolint:nilerr // it is the reason
	case dir == "":
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "git", "ignore"), nil
}

// wasIgnored returns what git ignored at the session's start, as [Tree.saveRules] saved it.
func wasIgnored(scratch string) ([]string, error) {
	b, err := os.ReadFile(filepath.Join(scratch, ignoredList))
	return strings.FieldsFunc(string(b), func(r rune) bool { return r == 0 }), err
}

// hidden returns what git ignores now and did not at the session's start: as people would name it,
// the files in it, and the folders whose files are not among them: large ones, and repositories.
func (t *Tree) hidden(
	ctx context.Context, scratch string, was, now []string,
) (names, files, whole []string, err error) {
	then := make(map[string]bool, len(was))
	for _, name := range was {
		then[name] = true
	}
	now = slices.DeleteFunc(now, func(name string) bool { return then[name] })
	now, err = t.byOldRules(ctx, scratch, now)
	if err != nil || len(now) == 0 {
		return nil, nil, nil, err
	}
	var folders []string
	for _, name := range now {
		if strings.HasSuffix(name, "/") {
			folders = append(folders, name)
		}
	}
	in := func(name string) bool {
		return slices.ContainsFunc(folders, func(f string) bool { return name != f && strings.HasPrefix(name, f) })
	}
	now = slices.DeleteFunc(now, in)
	var within []string
	for some := range slices.Chunk(folders, 500) {
		more, err := t.ignoredNames(ctx, some...)
		if err != nil {
			return nil, nil, nil, err
		}
		within = append(within, more...)
	}
	if within, err = t.byOldRules(ctx, scratch, within); err != nil {
		return nil, nil, nil, err
	}
	for _, name := range now {
		if !strings.HasSuffix(name, "/") {
			names, files = append(names, name), append(files, name)
			continue
		}
		var some []string
		for _, file := range within {
			if strings.HasPrefix(file, name) {
				some = append(some, file)
			}
		}
		if len(some) == 0 {
			continue // empty, or ignored by the old rules, file by file
		}
		names = append(names, name)
		repository := func(name string) bool { return strings.HasSuffix(name, "/") }
		if len(some) <= maxWithin && !slices.ContainsFunc(some, repository) {
			files = append(files, some...)
		} else {
			whole = append(whole, name)
		}
	}
	return names, files, whole, nil
}

// byOldRules returns those of the names that the rules from the session's start do not ignore.
func (t *Tree) byOldRules(ctx context.Context, scratch string, names []string) ([]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	dir := filepath.Join(scratch, rulesFolder)
	if _, err := runWithin(ctx, gitLimit, dir, nil, "", "init", "--quiet"); err != nil {
		return nil, err
	}
	var input strings.Builder
	for _, name := range names {
		fmt.Fprintf(&input, "./%s\x00", t.Below(name)) // a colon at the start would mean something else
	}
	out, err := runWithin(ctx, gitLimit, dir, nil, input.String(), "-c", "core.excludesFile=/dev/null",
		"check-ignore", "-z", "--stdin", "--no-index")
	var none *exitError // exit status 1: it ignores none of them
	if err != nil && !(errors.As(err, &none) && none.ExitCode() == 1) {
		return nil, err
	}
	ignored := map[string]bool{}
	for name := range strings.SplitSeq(string(out), "\x00") {
		ignored[name] = true
	}
	return slices.DeleteFunc(names, func(name string) bool { return ignored["./"+t.Below(name)] }), nil
}

// addAllAndHidden is [Tree.addAll] for all of the project, with what git ignores only since the
// session's start, if one began in the scratch folder; s says what that is. If git complains about
// the list of what it ignores, unlisted says so; the rest is as without that list.
func (t *Tree) addAllAndHidden(
	ctx context.Context, env []string, scratch string, links []gitlink, s *Snapshot,
) (unlisted, err error) {
	was, err := wasIgnored(scratch)
	if errors.Is(err, fs.ErrNotExist) {
		_, err = t.addAll(ctx, env, ".", links)
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	ignored := t.ignoredSoon(ctx)
	_, err = t.addAll(ctx, env, ".", links)
	now, unlisted := ignored()
	if err != nil || unlisted != nil {
		return unlisted, err
	}
	if err := t.leaveRevealed(ctx, env, scratch, was, now); err != nil {
		return nil, err
	}
	var files []string
	s.Hidden, files, s.Whole, err = t.hidden(ctx, scratch, was, now)
	if err != nil || len(files) == 0 {
		return nil, err
	}
	return nil, t.addIgnored(ctx, env, files)
}

// leaveRevealed takes what git ignored at the session's start, and does not ignore any more, out of an
// index again, unless it is tracked by now.
func (t *Tree) leaveRevealed(ctx context.Context, env []string, scratch string, was, now []string) error {
	still := make(map[string]bool, len(now))
	for _, name := range now {
		still[name] = true
	}
	revealed := slices.DeleteFunc(slices.Clone(was), func(name string) bool {
		_, err := os.Lstat(filepath.Join(t.root, name))
		return still[name] || err != nil
	})
	for some := range slices.Chunk(revealed, 500) {
		list := append([]string{"ls-files", "-z", "--others", "--exclude-standard", "--"}, some...)
		out, err := t.run(ctx, []string{"GIT_LITERAL_PATHSPECS=1"}, list...)
		if err != nil {
			return err
		}
		files := strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
		others, err := t.byOldRules(ctx, scratch, slices.Clone(files))
		if err != nil {
			return err
		}
		counts := map[string]bool{}
		for _, name := range others {
			counts[name] = true
		}
		files = slices.DeleteFunc(files, func(name string) bool { return counts[name] })
		if len(files) == 0 {
			continue
		}
		_, err = t.runInput(ctx, env, strings.Join(files, "\x00"), "update-index", "--force-remove", "-z", "--stdin")
		if err != nil {
			return err
		}
	}
	return nil
}

// addIgnored adds files to an index that git ignores.
func (t *Tree) addIgnored(ctx context.Context, env, files []string) error {
	literal := append(slices.Clip(env), "GIT_LITERAL_PATHSPECS=1")
	force := []string{"add", "-f", "--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul"}
	_, err := t.runInput(ctx, literal, strings.Join(files, "\x00"), force...)
	if err != nil && complains(err) && ctx.Err() == nil {
		return nil // one of them has vanished, or cannot be read
	}
	return err
}

// folders returns the folders that a session hid and whose files are not listed. Of the files that
// have vanished from the snapshots, those in one of them were there before.
func (s Snapshot) folders(vanished []ralph.FileChange) (list []ralph.FileChange) {
	for _, name := range s.Whole {
		f := ralph.FileChange{Path: name, Status: "added"}
		if slices.ContainsFunc(vanished, func(v ralph.FileChange) bool { return strings.HasPrefix(v.Path+"/", name) }) {
			f.Status = "modified"
		}
		list = append(list, f)
	}
	return list
}

// hiddenNow returns what a session hid, in nested repositories, too.
func (s Snapshot) hiddenNow() []string {
	names := slices.Clone(s.Hidden)
	for module, m := range s.Modules {
		for _, name := range m.hiddenNow() {
			names = append(names, module+"/"+name)
		}
	}
	slices.Sort(names)
	return names
}
