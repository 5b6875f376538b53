package worktree

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ralph"
	"ralph/internal/text"
)

// asMade has git take objects as they are, and not those that somebody has put in their
// place (git replace), behind which a lost commit could hide.
var asMade = []string{"GIT_NO_REPLACE_OBJECTS=1"}

// maxLost bounds how many lost commits are listed.
const maxLost = 1000

// Standing tells where a session left the repository: now is a look at it, before
// its beginning. Of theirs, the files that were not committed then and are a person's,
// it tells which have been committed since. Lost commits are all that were there
// before and are in no branch any more; whose they are is not known here.
func (t *Tree) Standing(ctx context.Context, before, now Snapshot, scratch string, theirs []string) (s ralph.Standing, err error) {
	if t.git == "" {
		return s, nil
	}
	_, branch := t.head(ctx)
	s = ralph.Standing{
		Git: true, Branch: shortRef(branch), Commit: now.Head, Began: shortRef(before.Branch), Switched: branch != before.Branch,
		Emptied: t.emptied(before, now),
	}
	files, err := t.Uncommitted(ctx, now, scratch)
	if err != nil {
		return s, err
	}
	s.Uncommitted = len(files)
	if before.Marks != "" && before.Marks == t.refMarks() && before.Head == now.Head {
		return s, nil // nothing in the repository has moved
	}
	refs, stashes, err := t.readNames(ctx)
	if err != nil {
		return s, err
	}
	for _, step := range []func() error{
		func() (err error) { s.Lost, err = t.lost(ctx, before, now.Head, s.Switched, refs, stashes); return err },
		func() (err error) { s.Aside, err = t.aside(ctx, before, now.Head, branch, refs); return err },
		func() (err error) { s.Stashes, err = t.subjects(ctx, without(stashes, before.Stashes)); return err },
		func() (err error) {
			s.Taken, s.Secrets, err = t.taken(ctx, before, now.Head, theirs)
			return err
		},
	} {
		if err := step(); err != nil {
			return s, fmt.Errorf("what became of the repository: %w", err)
		}
	}
	return s, nil
}

// shortRef is a ref as people name it.
func shortRef(name string) string {
	for _, prefix := range []string{"refs/heads/", "refs/tags/", "refs/"} {
		if short, ok := strings.CutPrefix(name, prefix); ok {
			return short
		}
	}
	return name
}

// counted tells the refs whose commits are somebody's work here: not those of
// other repositories, nor ralph's own.
func counted(ref string) bool {
	return !strings.HasPrefix(ref, "refs/remotes/") && !strings.HasPrefix(ref, "refs/ralph/")
}

// without are those of list that are not in the other.
func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
}

// lost are the commits that HEAD's branch had before and has no more, and those that
// any branch, tag or stash had and nothing has any more.
func (t *Tree) lost(ctx context.Context, before Snapshot, head string, switched bool, refs map[string]string, stashes []string) ([]ralph.Commit, error) {
	now := slices.Concat(slices.Collect(maps.Values(refs)), stashes, []string{head})
	var ids []string
	for ref, id := range before.Refs {
		if counted(ref) && ref != "refs/stash" && !slices.Contains(now, id) {
			ids = append(ids, id)
		}
	}
	if before.Head != head {
		ids = append(ids, before.Head)
	}
	saved := without(before.Stashes, now)
	there, gone, err := t.present(ctx, slices.Concat(ids, saved))
	if err != nil {
		return nil, err
	}
	var list []ralph.Commit
	for _, id := range gone {
		list = append(list, ralph.Commit{ID: id})
	}
	everywhere := []string{"--not", "--exclude=refs/ralph/*", "--all", "--not"}
	in := func(list []string) []string {
		return slices.DeleteFunc(slices.Clone(there), func(id string) bool { return !slices.Contains(list, id) })
	}
	if !switched {
		if list, err = t.addLost(ctx, list, nil, in([]string{before.Head}), []string{head}); err != nil {
			return nil, err
		}
		for i, c := range list {
			if c.ID == before.Head || !slices.Contains(gone, c.ID) {
				list[i].From = shortRef(before.Branch)
			}
		}
		if !slices.ContainsFunc(list, func(c ralph.Commit) bool { return c.ID == before.Head }) {
			ids = without(ids, []string{before.Head}) // HEAD has it
		}
	}
	if list, err = t.addLost(ctx, list, everywhere, in(ids), append(slices.Clone(stashes), head)); err != nil {
		return nil, err
	}
	// The other parents of a stash are its own.
	return t.addLost(ctx, list, append([]string{"--first-parent"}, everywhere...), in(saved), append(slices.Clone(stashes), head))
}

// addLost adds the commits that can be reached from some and not from others.
func (t *Tree) addLost(ctx context.Context, list []ralph.Commit, options, from, not []string) ([]ralph.Commit, error) {
	if len(from) == 0 {
		return list, nil
	}
	commits, err := t.log(ctx, options, from, not)
	return append(list, slices.DeleteFunc(commits, func(c ralph.Commit) bool {
		return slices.ContainsFunc(list, func(l ralph.Commit) bool { return l.ID == c.ID })
	})...), err
}

// present parts ids into those of objects that are there and those that are gone.
func (t *Tree) present(ctx context.Context, ids []string) (there, gone []string, err error) {
	slices.Sort(ids)
	ids = slices.DeleteFunc(slices.Compact(ids), func(s string) bool { return s == "" })
	if len(ids) == 0 {
		return nil, nil, nil
	}
	out, err := t.runInput(ctx, asMade, strings.Join(ids, "\n")+"\n", "cat-file", "--batch-check=%(objectname) %(objecttype)")
	for line := range strings.Lines(string(out)) {
		switch id, kind, _ := strings.Cut(strings.TrimSpace(line), " "); kind {
		case "missing":
			gone = append(gone, id)
		case "commit", "tag":
			there = append(there, id)
		}
	}
	return there, gone, err
}

// log are the commits that can be reached from some and not from others, the newest
// first, of so many at most.
func (t *Tree) log(ctx context.Context, options, from, not []string) ([]ralph.Commit, error) {
	// %x1f cannot stand in a name or a subject as git cleans them.
	args := slices.Concat([]string{
		"log", "--no-show-signature", "--no-decorate", "--no-patch", "--max-count=" + strconv.Itoa(maxLost),
		"--format=%H%x1f%an%x1f%s",
	}, options, []string{"--stdin"})
	out, err := t.runInput(ctx, asMade, revisions(from, not), args...)
	var list []ralph.Commit
	for line := range strings.Lines(string(out)) {
		if f := strings.SplitN(strings.TrimSuffix(line, "\n"), "\x1f", 3); len(f) == 3 {
			list = append(list, ralph.Commit{ID: f[0], Author: text.Clip(f[1], 60), Subject: text.Clip(f[2], 60)})
		}
	}
	return list, err
}

// revisions is what git reads of commits to begin from and not to go beyond.
func revisions(from, not []string) string {
	var b strings.Builder
	for _, id := range from {
		fmt.Fprintln(&b, id)
	}
	for _, id := range not {
		if id != "" {
			fmt.Fprintln(&b, "^"+id)
		}
	}
	return b.String()
}

// subjects are the messages of commits.
func (t *Tree) subjects(ctx context.Context, ids []string) ([]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	commits, err := t.log(ctx, []string{"--no-walk=unsorted"}, ids, nil)
	list := make([]string, len(commits))
	for i, c := range commits {
		list[i] = c.Subject
	}
	return list, err
}

// aside counts the commits that have been made since before on other branches, and on
// tags, than the one of HEAD.
func (t *Tree) aside(ctx context.Context, before Snapshot, head, branch string, refs map[string]string) ([]ralph.Aside, error) {
	var list []ralph.Aside
	for _, ref := range slices.Sorted(maps.Keys(refs)) {
		if ref == branch || ref == "refs/stash" || !counted(ref) || refs[ref] == before.Refs[ref] || refs[ref] == head {
			continue
		}
		commits, err := t.log(ctx, nil, []string{refs[ref]}, t.beginnings(ctx, before, head))
		if err != nil {
			return nil, err
		}
		if len(commits) > 0 {
			list = append(list, ralph.Aside{Branch: shortRef(ref), Commits: len(commits)})
		}
	}
	return list, nil
}

// beginnings are the objects from which on a session's commits are counted: what was
// there before it, as far as it still is, and some others.
func (t *Tree) beginnings(ctx context.Context, before Snapshot, others ...string) []string {
	ids := append(slices.Collect(maps.Values(before.Refs)), before.Head)
	there, _, err := t.present(ctx, append(ids, others...))
	if err != nil {
		return others // more commits are counted then, and none is overlooked
	}
	return there
}

// taken are those of some files that commits since before have, which any ref but a stash
// still knows, and those of them that look like secrets and were in no commit before. A
// remote's branch counts for secrets alone: what else it has may have been fetched.
func (t *Tree) taken(ctx context.Context, before Snapshot, head string, theirs []string) (files, secrets []string, err error) {
	if len(theirs) == 0 || head == "" {
		return nil, nil, nil
	}
	local := []string{"--exclude=refs/ralph/*", "--exclude=refs/stash", "--exclude=refs/remotes/*", "--all"}
	begun := t.beginnings(ctx, before)
	committed, err := t.committed(ctx, local, []string{head}, begun)
	if err != nil {
		return nil, nil, err
	}
	pushed, err := t.committed(ctx, []string{"--remotes"}, nil, begun)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range theirs {
		here := slices.Contains(committed, f)
		if here {
			files = append(files, f)
		}
		if !here && !slices.Contains(pushed, f) || !t.SecretFile(f) {
			continue
		}
		if before.Head != "" {
			if _, err := t.id(ctx, nil, before.Head+":"+t.Below(f)); err == nil {
				continue // somebody has committed it before
			}
		}
		secrets = append(secrets, f)
	}
	return files, secrets, nil
}

// committed are the files that commits have changed.
func (t *Tree) committed(ctx context.Context, options, from, not []string) ([]string, error) {
	args := slices.Concat([]string{
		"-c", "log.showRoot=true", "log", "--no-show-signature", "--format=", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv",
		"--diff-merges=first-parent", "--relative",
	}, options, []string{"--stdin"})
	out, err := t.runInput(ctx, asMade, revisions(from, not), args...)
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 || r == '\n' }), err
}

// FilesOf are the files that some commits have changed, as far as these still exist.
func (t *Tree) FilesOf(ctx context.Context, commits []string) ([]string, error) {
	there, _, err := t.present(ctx, slices.Clone(commits))
	if err != nil || len(there) == 0 {
		return nil, err
	}
	return t.committed(ctx, []string{"--no-walk"}, there, nil)
}

// maxSecretRead bounds how much of a file is read to see whether it holds a secret.
const maxSecretRead = 64 << 10

// SecretFile tells whether a file, relative to the root, looks like one of [Secret].
func (t *Tree) SecretFile(name string) bool {
	return Secret(name, func() []byte {
		f, err := os.Open(filepath.Join(t.root, filepath.FromSlash(name)))
		if err != nil {
			return nil
		}
		defer f.Close()
		b := make([]byte, maxSecretRead)
		n, err := f.Read(b)
		if err != nil {
			return nil
		}
		return b[:n]
	})
}

// Moved are the files that differ between two looks at the work tree.
func (t *Tree) Moved(ctx context.Context, before, after Snapshot, scratch string) ([]string, error) {
	if t.git == "" || before.Content == after.Content {
		return nil, nil
	}
	out, err := t.run(ctx, t.environment(scratch), "diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", before.Content, after.Content)
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), err
}

// Secrets are those of some ignored files that look like secrets.
func (t *Tree) Secrets(i Ignored) []string {
	return slices.DeleteFunc(slices.Clone(i.files), func(name string) bool { return !t.SecretFile(name) })
}
