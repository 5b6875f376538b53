package place

import (
	"context"

	"golang.org/x/sync/errgroup"

	"ralph/internal/worktree"
	"ralph/store"
)

// maxUncommitted bounds how many uncommitted files a session remembers.
const maxUncommitted = 10_000

// Snapshot looks at the work tree before a session, and at the small ignored files. git
// does both at the same time: neither writes what the other reads.
func (p *Place) Snapshot(
	ctx context.Context, scratch string,
) (snapshot worktree.Snapshot, ignored worktree.Ignored, err error) {
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() (err error) {
		snapshot, err = p.Tree.Snapshot(ctx, scratch)
		return err
	})
	both.Go(func() (err error) {
		ignored, err = p.Tree.Ignored(ctx)
		return err
	})
	return snapshot, ignored, untold(both.Wait())
}

// Save keeps what people have not committed, under a name, before a session may touch it,
// and says which files that are (unattended, "Git").
func (p *Place) Save(
	ctx context.Context, snapshot worktree.Snapshot, ignored worktree.Ignored, scratch, name string,
) (found store.Uncommitted, err error) {
	if found.Files, err = p.Tree.Uncommitted(ctx, snapshot, scratch); err != nil {
		return found, &GitError{err}
	}
	found.Files = found.Files[:min(len(found.Files), maxUncommitted)]
	// Of what git ignores, secrets alone are nothing that a session may commit.
	found.Files = append(found.Files, p.Tree.Secrets(ignored)...)
	if !p.Saves {
		return found, nil
	}
	saved, ok, err := p.Tree.Save(ctx, snapshot, ignored, scratch, name)
	if err != nil {
		return found, &GitError{err}
	}
	if ok {
		found.Snapshot = saved.ID
	}
	return found, nil
}

// Gone are the files that were saved under a number and are not there any more; ok is
// false if they have been dropped since, so that there is nothing to point to.
func (p *Place) Gone(ctx context.Context, snapshot int64) (gone []string, ok bool, err error) {
	saved, err := p.Tree.Saved(ctx, snapshot)
	if err != nil {
		return nil, false, nil //nolint:nilerr // that it is not there is no failure
	}
	files, err := p.Tree.SavedFiles(ctx, saved)
	if err == nil {
		gone, err = p.Tree.Missing(files)
	}
	return gone, err == nil, err
}
