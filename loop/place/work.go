package place

import (
	"context"

	"ralph/internal/worktree"
	"ralph/store"
)

// maxUncommitted limits how many uncommitted files are recorded for a session.
const maxUncommitted = 10_000

// Snapshot scans the work tree before a session, and lists the small ignored files.
func (p *Place) Snapshot(
	ctx context.Context, scratch string,
) (snapshot worktree.Snapshot, ignored worktree.Ignored, err error) {
	if snapshot, err = p.Tree.Snapshot(ctx, scratch); err == nil {
		ignored, err = p.Tree.IgnoredBy(scratch)
	}
	return snapshot, ignored, untold(err)
}

// Save saves people's uncommitted files under a name before a session may
// touch them, and lists them (unattended, "Git"). Omitted are those that
// are too large to be saved in addition to what is saved already.
func (p *Place) Save(
	ctx context.Context, snapshot worktree.Snapshot, ignored worktree.Ignored, scratch, name string,
) (found store.Uncommitted, omitted []string, err error) {
	if found.Files, err = p.Tree.Uncommitted(ctx, snapshot, scratch); err != nil {
		return found, nil, &GitError{err}
	}
	found.Files = found.Files[:min(len(found.Files), maxUncommitted)]
	// Of the ignored files, only secrets count as files that no session may commit.
	found.Files = append(found.Files, p.Tree.Secrets(ignored)...)
	if !p.Saves {
		return found, nil, nil
	}
	saved, ok, err := p.Tree.Save(ctx, snapshot, ignored, scratch, name)
	if err != nil {
		return found, nil, &GitError{err}
	}
	if ok {
		found.Snapshot = saved.ID
	}
	return found, saved.Omitted, nil
}

// Gone returns the files of a saved snapshot that no longer exist; ok is
// false if the snapshot has been dropped.
func (p *Place) Gone(ctx context.Context, snapshot int64) (gone []string, ok bool, err error) {
	saved, err := p.Tree.Saved(ctx, snapshot)
	if err != nil {
		return nil, false, nil //nolint:nilerr // a missing snapshot is no failure
	}
	files, err := p.Tree.SavedFiles(ctx, saved)
	if err == nil {
		gone, err = p.Tree.Missing(files)
	}
	return gone, err == nil, err
}
