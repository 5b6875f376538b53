package project

import (
	"context"
	"errors"
	"io"

	"ralph"
	"ralph/loop/workspace"
	"ralph/store"
)

// LikelySetup returns the commands that seem to prepare a fresh clone of the project.
func (p *Project) LikelySetup() []string { return likelySetup(p.Root) }

// Try makes a workspace of the project with these commands, like a session's, and verifies HEAD in it. checks are the
// results. failed describes a failed set-up, which is a result, not an error.
func (p *Project) Try(
	ctx context.Context, db *store.DB, setup []string,
) (checks []ralph.Check, red bool, failed string, err error) {
	own := *p
	own.Config.Workspace.Setup = setup
	checks, red, err = own.Verify(ctx, db, 0, func(ralph.Check, io.ReadSeeker) error { return nil })
	if setup, ok := errors.AsType[*workspace.SetupError](err); ok {
		return nil, true, setup.Error(), nil
	}
	return checks, red, "", err
}

// Copied returns the copies of the person's folders that replace the results of failed set-up commands.
func (p *Project) Copied() ([]ralph.Copied, error) {
	return (&workspace.Pool{Dir: p.File("workspaces"), Setup: p.Config.Workspace.Setup}).Copied()
}
