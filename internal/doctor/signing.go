package doctor

import (
	"context"

	"ralph/internal/project"
	"ralph/internal/worktree"
)

// Signing says that ralph's commits are not signed although the person's are.
func Signing(ctx context.Context, p *project.Project) []Finding {
	if !p.Git || !worktree.Signs(ctx, p.Root) {
		return nil
	}
	return []Finding{{
		"signatures", true, "git signs your commits (commit.gpgsign); it signs no commit and no merge of ralph's",
		"if your remote refuses unsigned commits, leave merge.push out, and sign what you push yourself",
	}}
}
