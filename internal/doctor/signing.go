package doctor

import (
	"context"

	"ralph/internal/project"
	"ralph/internal/worktree"
)

// Signing describes the unsigned kinds of commits that ralph puts on the branch, if git signs the
// person's.
func Signing(ctx context.Context, p *project.Project) []Finding {
	if !p.Git || !worktree.Signs(ctx, p.Root) {
		return nil
	}
	const signs = "git signs your commits (commit.gpgsign)"
	switch c := p.Config.Merge; {
	case !c.Sign:
		return []Finding{{
			"signatures", true, signs + "; ralph signs neither its merges nor the commits of sessions",
			"set merge.sign: true: ralph signs its commits on the branch with your key",
		}}
	case c.Strategy != "squash":
		return []Finding{{
			"signatures", true, signs + "; ralph signs its merges, and not the commits of sessions below them",
			"set merge.strategy: squash if your remote refuses unsigned commits",
		}}
	}
	return nil
}
