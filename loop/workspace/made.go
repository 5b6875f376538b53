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

func (s *Clone) candidate(ctx context.Context, tree, message string) (worktree.Candidate, error) {
	return s.git.Candidate(ctx, s.Base, tree, message, s.user)
}

// commit commits the scanned tree of a session's workspace on top of the base, in the person's repository under the
// ref.
func (p *Workspace) commit(ctx context.Context, tree, ref, message string) (worktree.Candidate, error) {
	s := p.Clone
	if s.git.Below("") != "" { // the project is only a part of the repository
		now, err := p.standing(ctx)
		if err != nil {
			return worktree.Candidate{}, err
		}
		tree = now.Content
	}
	tree, err := p.lifted(ctx, tree)
	if err != nil {
		return worktree.Candidate{}, err
	}
	made, err := s.candidate(ctx, tree, message)
	if err != nil || made.Head == s.Base {
		return made, err
	}
	return made, s.pool.Here.Tree.Fetch(ctx, s.git, s.Base, made.Head, ref)
}

// SaveLoose saves the session's commits and stashes in the workspace that are
// not part of head, as they would be lost with the workspace.
func (p *Workspace) SaveLoose(ctx context.Context, session, head string) error {
	s := p.Clone
	refs, err := s.git.Refs(ctx, "refs/")
	if err != nil {
		return err
	}
	for name, commit := range refs {
		if !strings.HasPrefix(name, "refs/heads/") && name != "refs/stash" || name == "refs/heads/"+TipBranch {
			continue
		}
		in, err := s.git.Ancestor(ctx, commit, head)
		if err == nil && !in {
			err = s.pool.Here.Tree.Fetch(ctx, s.git, s.Base, commit, lostRefs+session+"/"+strings.TrimPrefix(name, "refs/"))
		}
		if err != nil {
			return fmt.Errorf("%s of the workspace: %w", name, err)
		}
	}
	return nil
}

// Aside returns what a session left in its workspace beside a commit: branches and stashes.
func (p *Workspace) Aside(ctx context.Context, head string) ([]ralph.Aside, []string, error) {
	return p.Clone.git.Aside(ctx, p.Clone.Base, head, TipBranch)
}

// TipBranch is the branch in a workspace that shows the target's tip.
const TipBranch = "ralph/main"

// ShowTip sets [TipBranch] to a commit.
func (p *Workspace) ShowTip(commit string) error { return p.Clone.git.Branch(TipBranch, commit) }

// Environ returns the environment variables for all processes in the workspace.
func (p *Workspace) Environ() (env []string) {
	s := p.Clone
	if s == nil {
		return nil
	}
	env = []string{
		"RALPH_WORKSPACE=" + strconv.Itoa(s.Number), "RALPH_ROOT=" + s.pool.Here.Dir,
		"TMPDIR=" + filepath.Join(s.folder, "tmp"),
		"COMPOSE_PROJECT_NAME=" + composeName(s.pool.Name) + "-" + s.name(),
	}
	if n := s.pool.Ports; n > 0 {
		number := s.Number - 1
		if s.Checks {
			number += firstCheck
		}
		first := s.pool.PortsFrom + number*n
		env = append(env, "RALPH_PORT="+strconv.Itoa(first), fmt.Sprintf("RALPH_PORTS=%d-%d", first, first+n-1))
	}
	return env
}
