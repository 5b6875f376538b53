package project

import (
	"context"
	"io"

	"ralph"
	"ralph/internal/config"
	"ralph/store"
)

// Try makes a workspace of the project, as sessions work in, and verifies what is committed in it. checks are the
// results.
func (p *Project) Try(
	ctx context.Context, db *store.DB,
) (found config.StarterWorkspace, checks []ralph.Check, red bool, err error) {
	found.Setup = likelySetup(p.Root)
	own := *p
	own.Config.Workspace.Setup = found.Setup
	checks, red, err = own.Verify(ctx, db, 0, func(ralph.Check, io.ReadSeeker) error { return nil })
	return found, checks, red, err
}
