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

// asMade makes git ignore replaced objects (git replace), behind which a lost commit could hide.
var asMade = []string{"GIT_NO_REPLACE_OBJECTS=1"}

// maxLost bounds how many lost commits are listed.
const maxLost = 1000

// Standing describes the state in which a session left the repository, from snapshots before and
// after it. theirs are the files that a person had not committed before; it tells which have been
// committed since. Lost commits are those that existed before and are on no branch any more,
// whoever made them.
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
		Emptied: t.emptied(before, now), Approximate: t.Approximate(), Hidden: now.hiddenNow(),
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
			return s, fmt.Errorf("state of the repository: %w", err)
		}
	}
	return s, nil
}

// shortRef shortens a ref's name for people.
func shortRef(name string) string {
	for _, prefix := range []string{"refs/heads/", "refs/tags/", "refs/"} {
		if short, ok := strings.CutPrefix(name, prefix); ok {
			return short
		}
	}
	return name
}

// counted reports whether a ref's commits are work in this repository: refs of remotes and ralph's
// own are not.
func counted(ref string) bool {
	return !strings.HasPrefix(ref, "refs/remotes/") && !strings.HasPrefix(ref, "refs/ralph/")
}

// without returns the elements of list that are not in the other.
func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
}

// lost returns the commits that HEAD's branch has lost, and those that were on any branch, tag or
// stash and are on none now.
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
	// A stash's other parents belong to the stash itself.
	return t.addLost(ctx, list, in(saved), everywhere, first)
}

// addLost adds the commits reachable from some and not from others, each once.
func (t *Tree) addLost(
	ctx context.Context, list []ralph.Commit, from, not []string, how reach,
) ([]ralph.Commit, error) {
	commits, err := t.log(ctx, from, not, how)
	return append(list, slices.DeleteFunc(commits, func(c ralph.Commit) bool {
		return slices.ContainsFunc(list, func(l ralph.Commit) bool { return l.ID == c.ID })
	})...), err
}

// subjects returns the subjects of commits.
func (t *Tree) subjects(ctx context.Context, ids []string) ([]string, error) {
	commits, err := t.log(ctx, ids, nil, only)
	var list []string
	for _, c := range commits {
		list = append(list, c.Subject)
	}
	return list, err
}

// aside counts the new commits on branches and tags other than HEAD's branch.
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

// beginnings returns the objects that delimit a session's commits: the earlier refs that still
// exist, and some others.
func (t *Tree) beginnings(ctx context.Context, before Snapshot, others ...string) []string {
	ids := append(slices.Collect(maps.Values(before.Refs)), before.Head)
	there, _, err := t.present(ctx, append(ids, others...))
	if err != nil {
		return others // then more commits are counted, and none is missed
	}
	return there
}

// taken returns those of the given files that new commits on any ref but a stash contain, and those
// among them that look like secrets and were not committed before. Branches of remotes count only
// for secrets: other commits there may have been fetched.
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

// FilesOf returns the files that commits changed, as far as the commits still exist.
func (t *Tree) FilesOf(ctx context.Context, commits []string) ([]string, error) {
	there, _, err := t.present(ctx, slices.Clone(commits))
	if err != nil || len(there) == 0 {
		return nil, err
	}
	return t.committed(ctx, there, nil, only)
}

// maxSecretRead bounds how many bytes of a file are searched for secrets.
const maxSecretRead = 64 << 10

// SecretFile reports whether a file, relative to the root, looks like a secret; see [Secret].
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

// Moved returns the files that differ between two snapshots.
func (t *Tree) Moved(ctx context.Context, before, after Snapshot, scratch string) ([]string, error) {
	if t.git == "" || before.Content == after.Content {
		return nil, nil
	}
	return t.differ(ctx, scratch, before.Content, after.Content)
}

// Secrets returns those of the ignored files that look like secrets.
func (t *Tree) Secrets(i Ignored) []string {
	return slices.DeleteFunc(slices.Clone(i.files), func(name string) bool { return !t.SecretFile(name) })
}
