package worktree

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ralph"
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
func (t *Tree) Standing(
	ctx context.Context, before, now Snapshot, scratch string, theirs []string,
) (s ralph.Standing, err error) {
	if t.git == "" {
		return s, nil
	}
	_, branch := t.head(ctx)
	s = ralph.Standing{
		Git: true, Branch: shortRef(branch), Commit: now.Head,
		Began: shortRef(before.Branch), Switched: branch != before.Branch,
		Emptied: t.emptied(before, now), Approximate: t.Approximate(),
	}
	files, err := t.Uncommitted(ctx, now, scratch)
	if err != nil {
		return s, err
	}
	s.Uncommitted = len(files)
	state, err := t.readRefs(ctx)
	if err != nil || before.Marks != "" && before.Marks == state.digest() && before.Head == now.Head {
		return s, err // nothing in the repository has moved
	}
	for _, step := range []func() error{
		func() (err error) { s.Lost, err = t.lost(ctx, before, now.Head, s.Switched, state); return err },
		func() (err error) { s.Aside, err = t.aside(ctx, before, now.Head, branch, state.refs); return err },
		func() (err error) {
			s.Stashes, err = t.subjects(ctx, without(state.stashes, before.Stashes))
			return err
		},
		func() (err error) {
			s.Taken, s.Secrets, err = t.taken(ctx, before, now.Head, state, theirs)
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
func (t *Tree) lost(
	ctx context.Context, before Snapshot, head string, switched bool, state refState,
) ([]ralph.Commit, error) {
	stashes := state.stashes
	now := slices.Concat(slices.Collect(maps.Values(state.refs)), stashes, []string{head})
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
	everywhere := slices.Concat(stashes, []string{head}, state.heads)
	for name, id := range state.refs {
		if !strings.HasPrefix(name, "refs/ralph/") {
			everywhere = append(everywhere, id)
		}
	}
	in := func(list []string) []string {
		return slices.DeleteFunc(slices.Clone(there), func(id string) bool { return !slices.Contains(list, id) })
	}
	if !switched {
		if list, err = t.addLost(ctx, list, in([]string{before.Head}), []string{head}, all); err != nil {
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
	if list, err = t.addLost(ctx, list, in(ids), everywhere, all); err != nil {
		return nil, err
	}
	// The other parents of a stash are its own.
	return t.addLost(ctx, list, in(saved), everywhere, first)
}

// addLost adds the commits that can be reached from some and not from others.
func (t *Tree) addLost(
	ctx context.Context, list []ralph.Commit, from, not []string, how reach,
) ([]ralph.Commit, error) {
	commits, err := t.log(ctx, from, not, how)
	return append(list, slices.DeleteFunc(commits, func(c ralph.Commit) bool {
		return slices.ContainsFunc(list, func(l ralph.Commit) bool { return l.ID == c.ID })
	})...), err
}

// subjects are the messages of commits.
func (t *Tree) subjects(ctx context.Context, ids []string) ([]string, error) {
	commits, err := t.log(ctx, ids, nil, only)
	var list []string
	for _, c := range commits {
		list = append(list, c.Subject)
	}
	return list, err
}

// aside counts the commits that have been made since before on other branches, and on
// tags, than the one of HEAD.
func (t *Tree) aside(
	ctx context.Context, before Snapshot, head, branch string, refs map[string]string,
) ([]ralph.Aside, error) {
	var list []ralph.Aside
	for _, ref := range slices.Sorted(maps.Keys(refs)) {
		if ref == branch || ref == "refs/stash" || !counted(ref) || refs[ref] == before.Refs[ref] || refs[ref] == head {
			continue
		}
		commits, err := t.log(ctx, []string{refs[ref]}, t.beginnings(ctx, before, head), all)
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
func (t *Tree) taken(
	ctx context.Context, before Snapshot, head string, state refState, theirs []string,
) (files, secrets []string, err error) {
	if len(theirs) == 0 || head == "" {
		return nil, nil, nil
	}
	local, remote := append([]string{head}, state.heads...), []string{}
	for name, id := range state.refs {
		switch {
		case strings.HasPrefix(name, "refs/remotes/"):
			remote = append(remote, id)
		case counted(name) && name != "refs/stash":
			local = append(local, id)
		}
	}
	begun := t.beginnings(ctx, before)
	committed, err := t.committed(ctx, without(local, begun), begun, all)
	if err != nil {
		return nil, nil, err
	}
	pushed, err := t.committed(ctx, without(remote, begun), begun, all)
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
			if id, err := t.treeOf(ctx, before.Head, t.Below(f)); err == nil && id != emptyTree {
				continue // somebody has committed it before
			}
		}
		secrets = append(secrets, f)
	}
	return files, secrets, nil
}

// FilesOf are the files that some commits have changed, as far as these still exist.
func (t *Tree) FilesOf(ctx context.Context, commits []string) ([]string, error) {
	there, _, err := t.present(ctx, slices.Clone(commits))
	if err != nil || len(there) == 0 {
		return nil, err
	}
	return t.committed(ctx, there, nil, only)
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
	return t.differ(ctx, scratch, before.Content, after.Content)
}

// Secrets are those of some ignored files that look like secrets.
func (t *Tree) Secrets(i Ignored) []string {
	return slices.DeleteFunc(slices.Clone(i.files), func(name string) bool { return !t.SecretFile(name) })
}
