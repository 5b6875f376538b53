package workspace

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"ralph"
	"ralph/internal/worktree"
)

func (c *Clone) candidate(ctx context.Context, tree, message string) (worktree.Candidate, error) {
	return c.git.Candidate(ctx, c.Base, tree, message, c.user)
}

// commit commits the scanned tree of a session's workspace on top of the base, in the person's repository under the
// ref. Debris is left out, and its roots are returned.
func (w *Workspace) commit(
	ctx context.Context, tree, ref, message string, keep []string,
) (made worktree.Candidate, debris []string, err error) {
	c := w.Clone
	if c.git.Below("") != "" { // the project is only a part of the repository
		now, err := w.standing(ctx)
		if err != nil {
			return made, nil, err
		}
		tree = now.Content
	}
	if tree, err = w.lifted(ctx, tree); err != nil {
		return made, nil, err
	}
	bases := []string{c.Base}
	if tip, err := c.git.Ref(ctx, "refs/heads/"+TipBranch); err == nil && tip != "" && tip != c.Base {
		bases = append(bases, tip) // newly merged work is not the session's
	}
	if tree, debris, err = c.git.WithoutDebris(ctx, tree, c.git.Scratch(), keep, bases...); err != nil {
		return made, nil, err
	}
	made, err = c.candidate(ctx, tree, message)
	if err != nil || made.Head == c.Base {
		return made, debris, err
	}
	return made, debris, c.pool.Here.Tree.Fetch(ctx, c.git, c.Base, made.Head, ref)
}

// SaveLoose saves the session's commits and stashes in the workspace that are not part of head, as they would be lost
// with the workspace: the newest [mostLoose].
func (w *Workspace) SaveLoose(ctx context.Context, session, head string) error {
	c := w.Clone
	refs, err := c.git.Unmerged(ctx, head, mostLoose, "refs/heads/", "refs/stash")
	if err != nil {
		return err
	}
	for name, commit := range refs {
		if name == "refs/heads/"+TipBranch {
			continue
		}
		err := c.pool.Here.Tree.Fetch(ctx, c.git, c.Base, commit, lostRefs+session+"/"+strings.TrimPrefix(name, "refs/"))
		if err != nil {
			return fmt.Errorf("%s of the workspace: %w", name, err)
		}
	}
	return nil
}

// mostLoose is the maximum number of a session's branches and stashes that are saved beside its work.
const mostLoose = 100

// Aside returns a session's work in its workspace beside a commit: branches and stashes.
func (w *Workspace) Aside(ctx context.Context, head string) ([]ralph.Aside, []string, error) {
	return w.Clone.git.Aside(ctx, w.Clone.Base, head, TipBranch)
}

// TipBranch is the branch in a workspace that shows the target's tip.
const TipBranch = "ralph/main"

// ShowTip sets [TipBranch] to a commit.
func (w *Workspace) ShowTip(commit string) error { return w.Clone.git.Branch(TipBranch, commit) }

// Environ returns the environment variables for all processes in the workspace.
func (w *Workspace) Environ() (env []string) {
	c := w.Clone
	if c == nil {
		return nil
	}
	env = []string{
		"RALPH_WORKSPACE=" + strconv.Itoa(c.Number), "RALPH_ROOT=" + c.pool.Here.Dir,
		"TMPDIR=" + filepath.Join(c.folder, "tmp"),
		"COMPOSE_PROJECT_NAME=" + composeName(c.pool.Name) + "-" + c.name(),
	}
	if n := c.pool.Ports; n > 0 {
		number := c.Number - 1
		if c.Checks {
			number += firstCheck
		}
		first := c.pool.PortsFrom + number*n
		env = append(env, "RALPH_PORT="+strconv.Itoa(first), fmt.Sprintf("RALPH_PORTS=%d-%d", first, first+n-1))
	}
	return env
}
