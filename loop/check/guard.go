package check

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"ralph/internal/worktree"
	"ralph/loop/workspace"
)

// A Guard knows the files of a project that need a person's approval if a session changed them: files that
// configure runs, and files that steer agents.
type Guard struct {
	Configuration []string // files that configure runs, relative to the root
	Steering      []string // globs of files that steer agents; files imported by these count, too
	Own           []string // globs of agents' own data among them, which is not guarded
	More          []string // globs of further files, and after "!" of unguarded ones
}

// Changed returns the files that differ between two commits of a repository and that only people may change: the
// protected ones (Protect), and the guarded ones. Names are relative to the root of the project.
func (r Rules) Changed(
	ctx context.Context, tree *worktree.Tree, from, to string,
) (protected, guarded []string, err error) {
	names, err := tree.Files(ctx, from, to)
	if err != nil || len(names) == 0 {
		return nil, nil, err
	}
	steering, err := r.Guard.steering(ctx, tree, from, names)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		name, within := strings.CutPrefix(name, tree.Below(""))
		switch {
		case !within:
		case workspace.Matches(r.Protect, name):
			protected = append(protected, name)
		case slices.Contains(steering, name), slices.ContainsFunc(r.Guard.Configuration, func(file string) bool {
			return strings.EqualFold(file, name)
		}):
			guarded = append(guarded, name)
		}
	}
	return protected, guarded, nil
}

// Lay restores agent-steering files from the target in a workspace with a session's commit, so that an agent does not
// follow instructions of the commit's author.
func (g Guard) Lay(ctx context.Context, ws *workspace.Workspace, target, commit string) error {
	tree := ws.Here().Tree
	names, err := tree.Files(ctx, target, commit)
	if err == nil && len(names) > 0 {
		names, err = g.steering(ctx, tree, target, names)
	}
	if err != nil {
		return err
	}
	return ws.Lay(ctx, target, names)
}

// steering returns the names, relative to the top, that steer agents: by their name, or because a steering text at
// a commit imports them.
func (g Guard) steering(
	ctx context.Context, tree *worktree.Tree, at string, names []string,
) (list []string, err error) {
	var others []string
	for _, name := range names {
		name, within := strings.CutPrefix(name, tree.Below(""))
		switch {
		case !within || workspace.Matches(g.Own, name):
		case workspace.MatchesFolded(g.Steering, name):
			list = append(list, name)
		default:
			others = append(others, name)
		}
	}
	if len(others) == 0 {
		return list, nil
	}
	all, err := tree.Names(ctx, at)
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, name := range all {
		steers := strings.EqualFold(filepath.Ext(name), ".md") && workspace.MatchesFolded(g.Steering, name)
		if steers && !workspace.Matches(g.Own, name) {
			texts = append(texts, name)
		}
	}
	imports := workspace.Imports(texts, func(name string) ([]byte, error) {
		v, err := tree.Version(ctx, at, name)
		return v.Content, err
	})
	for _, name := range others {
		if slices.Contains(imports, name) {
			list = append(list, name)
		}
	}
	return list, nil
}
