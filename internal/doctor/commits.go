package doctor

import (
	"context"

	"ralph/internal/project"
	"ralph/internal/worktree"
)

// Commits names the things that ralph's commits lack: a branch for them, and a person's name.
func Commits(ctx context.Context, p *project.Project) (list []Finding) {
	if !p.Git {
		return nil
	}
	tree, err := worktree.Open(ctx, p.Root)
	if err != nil {
		return nil // reported elsewhere
	}
	if p.Config.Merge.Into == "" && tree.Branch(ctx) == "" {
		list = append(list, Finding{
			"branch", false, "HEAD is detached, so there is no branch to merge into",
			"git switch BRANCH, or set merge.into in ralph.yaml",
		})
	}
	if user := tree.User(ctx); user[0] == "" {
		list = append(list, Finding{
			identity, true, "git does not know your name, so ralph's merges are by ralph <ralph@localhost>",
			`git config --global user.name "YOUR NAME" && git config --global user.email YOU@EXAMPLE.ORG`,
		})
	}
	return list
}

// identity is the check of the person's name.
const identity = "identity"
