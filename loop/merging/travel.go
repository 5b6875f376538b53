package merging

import (
	"cmp"
	"context"
	"fmt"

	"ralph"
	"ralph/store"
)

// Travels reports whether changes go through the remote, since other machines may merge them and go on from them.
func (l *Merger) Travels() bool { return l.Store.Shared() && l.Push != "" && !l.Branch }

// HandOver puts a session's change on the remote, where the machines find it that work on the same queue.
func (l *Merger) HandOver(ctx context.Context, c ralph.Change) error {
	if !l.Travels() {
		return nil
	}
	remote, err := l.remote(ctx)
	if err == nil {
		err = remote.HandOver(ctx, c.Ref(), c.Head)
	}
	if err != nil {
		return fmt.Errorf("hand the change of session %s over to %s: %w", c.SessionID, l.Push, err)
	}
	return nil
}

// Obtain returns the commit of a change, which is fetched if another machine has made it; "" if nobody has handed it
// over. The error wraps [ErrAway] if the remote cannot be reached.
func (l *Merger) Obtain(ctx context.Context, c ralph.Change) (commit string, err error) {
	commit, err = l.Tree.Ref(ctx, c.Ref())
	if err != nil || commit != "" && (c.Head == "" || commit == c.Head) || !l.Travels() {
		return commit, err
	}
	if away, err := store.Read(ctx, l.Store, (*store.Tx).RemoteAway); err != nil || away {
		return "", cmp.Or(err, fmt.Errorf("%w; it is asked for the change of TASK-%d later", ErrAway, c.TaskID))
	}
	// What is here may have been fetched before its machine, started anew, made another one.
	fetched, err := l.FetchChange(ctx, c)
	return cmp.Or(fetched, commit), err
}

// FetchChange is [Merger.Obtain] of a change as it was handed over last, whatever is known of it here.
func (l *Merger) FetchChange(ctx context.Context, c ralph.Change) (commit string, err error) {
	if !l.Travels() {
		return "", nil
	}
	remote, err := l.remote(ctx)
	if err != nil {
		return "", err
	}
	if commit, err = remote.FetchRef(ctx, c.Ref()); err != nil {
		return "", l.unreachable(ctx, fmt.Errorf("fetch the change of TASK-%d from %s: %w", c.TaskID, l.Push, err))
	}
	if commit == "" {
		return "", nil
	}
	return commit, l.Tree.SetRef(ctx, c.Ref(), commit)
}

// have makes sure that what is to be merged is in the repository. The error wraps [ErrAway] if the remote could not be
// reached.
func (l *Merger) have(ctx context.Context, c ralph.Change) error {
	if l.Travels() && !l.Tree.Has(ctx, c.Head) {
		commit, err := l.Obtain(ctx, c)
		if err != nil {
			return err
		}
		if commit == "" || !l.Tree.Has(ctx, c.Head) {
			return fmt.Errorf("the change of TASK-%d, %.12s, was made on another machine, and %s does not have it: "+
				"push %s there from the one that has it", c.TaskID, c.Head, l.Push, c.Ref())
		}
	}
	return l.SetChangeRef(ctx, c)
}

// drop deletes refs of changes: where they were handed over, and then here, as those that are here are tried again.
func (l *Merger) drop(ctx context.Context, refs []string) error {
	if len(refs) > 0 && l.Travels() {
		remote, err := l.remote(ctx)
		if err == nil {
			err = remote.Drop(ctx, refs)
		}
		if err != nil {
			return err
		}
	}
	for _, ref := range refs {
		if err := l.Tree.SetRef(ctx, ref, ""); err != nil {
			return err
		}
	}
	return nil
}
