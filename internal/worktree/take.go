package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ralph"
)

// secure examines a clone before git does, so that no git hangs or fails on its contents. It replaces an unusable .git.
func (t *Tree) secure(ctx context.Context) (survey, error) {
	found, err := walk(ctx, t.Top())
	if err != nil {
		return found, fmt.Errorf("look at %s: %w", t.Top(), err)
	}
	if found.git == "" {
		found.git = t.unusable()
	}
	if found.git == "" {
		if err := t.borrow(); err != nil {
			return found, err
		}
		if found.git, err = t.crowded(ctx); err != nil {
			return found, err
		}
	}
	if found.git != "" {
		return found, t.Renew(ctx)
	}
	return found, nil
}

// borrow makes the .git of a clone borrow the objects of the repository, and no others: git would read objects from
// every folder named in this file.
func (t *Tree) borrow() error {
	path := filepath.Join(t.theirs, "objects", "info", "alternates")
	want := filepath.Join(t.lender.common, "objects") + "\n"
	if is, err := readSmall(path, maxHead); err == nil && string(is) == want {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return replace(path, []byte(want))
}

// Renewed explains why ralph replaced a .git; why is a clause whose subject is the .git.
func Renewed(why string) ralph.Untaken {
	return ralph.Untaken{Path: ".git", Why: why + ": ralph has put a new one, at the commit at which this folder was " +
		"prepared. Your files are as you left them; your commits, branches and stashes are gone"}
}

// takeFrom adds a clone's contents to an index, which env names too and which has the committed state. It returns the
// untaken paths.
func (t *Tree) takeFrom(
	ctx context.Context, env []string, index string, links []gitlink, found survey,
) ([]ralph.Untaken, error) {
	if err := t.keepLeftOut(ctx, index); err != nil {
		return nil, err
	}
	list, err := t.untaken(ctx, env, index, found)
	if err != nil {
		return nil, err
	}
	more, err := t.take(ctx, env, links, list)
	if err != nil {
		return nil, err
	}
	list = append(list, more...)
	return list, t.addStaged(ctx, env, index, list)
}

// untaken returns the untaken paths of a clone, from its survey.
func (t *Tree) untaken(
	ctx context.Context, env []string, index string, found survey,
) (list []ralph.Untaken, err error) {
	ignored := map[string]bool{}
	if some := found.suspects(); len(some) > 0 {
		out, err := t.runInput(ctx, env, strings.Join(some, "\x00"), "-C", t.Top(), "check-ignore", "-z", "--stdin")
		var none *exitError // exit status 1: git ignores none of them
		if err != nil && !(errors.As(err, &none) && none.ExitCode() == 1) {
			return nil, err
		}
		for name := range strings.SplitSeq(string(out), "\x00") {
			ignored[name] = true
		}
	}
	list, err = t.faulty(ctx, env)
	if err != nil {
		return nil, err
	}
	list = append(list, found.refused(ignored)...)
	if found.git != "" {
		list = append(list, Renewed(found.git))
	}
	if !found.heavy() {
		return list, nil
	}
	files, err := t.pending(ctx, env)
	if err != nil {
		return nil, err
	}
	staged, _, err := t.staged(index)
	if err != nil {
		return nil, err
	}
	var weights []weight
	for _, name := range append(files, staged...) {
		if info, err := t.lstat(name); err == nil && info != nil && info.Mode().IsRegular() {
			weights = append(weights, weight{name, info.Size()})
		}
	}
	return append(list, overweight(weights)...), nil
}

// pending returns the files that differ from an index, relative to the top.
func (t *Tree) pending(ctx context.Context, env []string) ([]string, error) {
	out, err := t.run(ctx, env, "-C", t.Top(), "ls-files", "-z",
		"--others", "--modified", "--deleted", "--exclude-standard")
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), err
}

// maxAdds is the maximum number of git commands that look for files that git does not add.
const maxAdds = 64

// take adds the content of a clone's work tree to an index, except for untaken paths, and returns the paths that git
// refuses.
func (t *Tree) take(
	ctx context.Context, env []string, links []gitlink, untaken []ralph.Untaken,
) (list []ralph.Untaken, err error) {
	var omit []string
	for _, u := range untaken {
		if name, below := strings.CutPrefix(u.Path, t.rootPrefix()); below && u.Path != ".git" {
			omit = append(omit, name)
		}
	}
	complaint, err := t.addAll(ctx, env, links, omit...)
	if err != nil || complaint == nil {
		return nil, err
	}
	names, err := t.pending(ctx, env)
	if err != nil {
		return nil, err
	}
	left := map[string]bool{}
	for _, l := range links {
		left[l.name] = true
	}
	var files []string
	for _, name := range names {
		rel, below := strings.CutPrefix(name, t.rootPrefix())
		if below && !left[name] && !t.excludes(strings.TrimSuffix(rel, "/")) && !among(name, untaken) {
			files = append(files, name)
		}
	}
	adds := 0
	var add func(files []string, why error) error
	add = func(files []string, why error) error {
		if adds++; len(files) == 0 {
			return nil
		}
		if adds <= maxAdds {
			_, err := t.runInput(ctx, append(env, "GIT_LITERAL_PATHSPECS=1"), strings.Join(files, "\x00"), "-C", t.Top(),
				"add", "-A", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul")
			if err == nil {
				return nil
			}
			if !complains(err) || ctx.Err() != nil {
				return err
			}
			if why = err; len(files) > 1 {
				return errors.Join(add(files[:len(files)/2], err), add(files[len(files)/2:], err))
			}
		}
		for _, name := range files {
			list = append(list, ralph.Untaken{Path: name, Why: "is not taken by git (" + saidBy(why) + "): mend or remove it"})
		}
		return nil
	}
	return list, add(files, complaint)
}

// among reports whether a file is, or is below, an untaken path.
func among(name string, untaken []ralph.Untaken) bool {
	for _, u := range untaken {
		if u.Path == "." || name == u.Path || strings.HasPrefix(name, u.Path+"/") {
			return true
		}
	}
	return false
}

// saidBy returns git's own message in an error.
func saidBy(err error) string {
	_, said, _ := strings.Cut(err.Error(), ": ")
	return strings.TrimPrefix(strings.TrimPrefix(said, "exit status 128: "), "exit status 1: ")
}

// Refused reports whether git itself refused something in a clone, or did not end in time.
func Refused(err error) bool {
	return complains(err) || errors.Is(err, errSlow) || errors.Is(err, context.DeadlineExceeded)
}

// Limited returns a context for a whole look at a clone, with all of its git commands.
func Limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, lookLimit)
}
