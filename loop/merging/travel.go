package merging

import (
	"cmp"
	"context"
	"fmt"

	"ralph"
	"ralph/store"
)

// Travels reports whether changes go through the remote, because other machines may merge them and
// continue from them.
func (m *Merger) Travels() bool { return m.Store.Shared() && m.Push != "" && !m.Branch }

// HandOver pushes a session's change to the remote, where the other machines of the queue find it.
func (m *Merger) HandOver(ctx context.Context, c ralph.Change) error {
	if !m.Travels() {
		return nil
	}
	remote, err := m.remote(ctx)
	if err == nil {
		err = remote.HandOver(ctx, c.Ref(), c.Head)
	}
	if err != nil {
		return fmt.Errorf("hand the change of session %s over to %s: %w", c.SessionID, m.Push, err)
	}
	return nil
}

// Obtain returns the commit of a change, and fetches it if another machine made it; "" if it was never handed over. The
// error wraps [ErrAway] if the remote cannot be reached.
func (m *Merger) Obtain(ctx context.Context, c ralph.Change) (commit string, err error) {
	commit, err = m.Tree.Ref(ctx, c.Ref())
	if err != nil || commit != "" && (c.Head == "" || commit == c.Head) || !m.Travels() {
		return commit, err
	}
	if away, err := store.Read(ctx, m.Store, (*store.Tx).RemoteAway); err != nil || away {
		return "", cmp.Or(err, fmt.Errorf("%w; it is asked for the change of TASK-%d later", ErrAway, c.TaskID))
	}
	// The local commit may be older: its machine may have made another one after a restart.
	fetched, err := m.FetchChange(ctx, c)
	return cmp.Or(fetched, commit), err
}

// FetchChange is [Merger.Obtain] for the last handed-over version of a change, even if an older one
// is here.
func (m *Merger) FetchChange(ctx context.Context, c ralph.Change) (commit string, err error) {
	if !m.Travels() {
		return "", nil
	}
	remote, err := m.remote(ctx)
	if err != nil {
		return "", err
	}
	if commit, err = remote.FetchRef(ctx, c.Ref()); err != nil {
		return "", m.unreachable(ctx, fmt.Errorf("fetch the change of TASK-%d from %s: %w", c.TaskID, m.Push, err))
	}
	if commit == "" {
		return "", nil
	}
	return commit, m.Tree.SetRef(ctx, c.Ref(), commit)
}

// have makes sure that a change's commits are in the repository. The error wraps [ErrAway] if the remote could not be
// reached.
func (m *Merger) have(ctx context.Context, c ralph.Change) error {
	if m.Travels() && !m.Tree.Has(ctx, c.Head) {
		commit, err := m.Obtain(ctx, c)
		if err != nil {
			return err
		}
		if commit == "" || !m.Tree.Has(ctx, c.Head) {
			return fmt.Errorf("the change of TASK-%d, %.12s, was made on another machine, and %s does not have it: "+
				"push %s there from the one that has it", c.TaskID, c.Head, m.Push, c.Ref())
		}
	}
	return m.SetChangeRef(ctx, c)
}

// drop deletes refs of changes: first on the remote, then here, so that a failure is retried.
func (m *Merger) drop(ctx context.Context, refs []string) error {
	if len(refs) > 0 && m.Travels() {
		remote, err := m.remote(ctx)
		if err == nil {
			err = remote.Drop(ctx, refs)
		}
		if err != nil {
			return err
		}
	}
	for _, ref := range refs {
		if err := m.Tree.SetRef(ctx, ref, ""); err != nil {
			return err
		}
	}
	return nil
}
