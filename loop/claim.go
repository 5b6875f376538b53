package loop

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"

	"ralph"
	"ralph/loop/order"
	"ralph/loop/session"
	"ralph/loop/workspace"
	"ralph/store"
)

// Claim claims a task for a worker. The error wraps [ralph.ErrConflict] if the task
// cannot be claimed, and explains why.
func (l *Loop) Claim(ctx context.Context, task int64, worker string) (*Claim, error) {
	if err := l.Lapse(ctx); err != nil {
		return nil, err
	}
	one := func(tx *store.Tx) (ralph.Task, bool, error) { return only(tx, task) }
	if _, _, _, err := l.pick(ctx, one); err != nil { // fails the task if its attempts are used up
		return nil, err
	}
	if err := l.Store.Tx(ctx, func(tx *store.Tx) error {
		if err := l.sameTarget(tx); err != nil {
			return err
		}
		return tx.SetTarget(l.Merger.Into, l.Merger.Pulls)
	}); err != nil {
		return nil, err
	}
	defer l.queueUp(ctx)() // otherwise several workers would prepare workspaces for the same task
	t, err := l.claimable(ctx, task)
	if err != nil {
		return nil, err
	}
	ws, about, err := l.outside().enter(ctx, t, l.takeForWorker)
	if err != nil {
		return nil, err
	}
	s, err := l.openFor(ctx, ws, t, store.Start{Worker: worker, Lease: session.Lease},
		func(tx *store.Tx, t ralph.Task) (order.Order, error) { return order.ForWorker(tx, &l.Config, t, about) })
	if err != nil {
		l.giveBack(ws)
		return nil, err
	}
	return &Claim{l, s}, nil
}

// openFor takes the baseline and opens a session for a worker or a person.
func (l *Loop) openFor(
	ctx context.Context, at *workspace.Workspace, t ralph.Task, start store.Start,
	write func(tx *store.Tx, t ralph.Task) (order.Order, error),
) (*session.Session, error) {
	c := l.outside()
	if err := c.baseline(ctx, t, at); err != nil {
		return nil, err
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	s, err := c.open(ctx, at, start, t.ID, write)
	if err != nil {
		_, herr := l.holdBack(ctx, t.ID, err)
		return nil, errors.Join(err, herr)
	}
	return s, nil
}

// mostWorkers is the maximum number of workers with workspaces at once.
const mostWorkers = 64

// takeForWorker takes the first free workspace for workers. The workspace of an open session is not free,
// even if its server was killed: its agent may still work there.
func (l *Loop) takeForWorker(ctx context.Context) (*workspace.Workspace, error) {
	for number := workspace.FirstWorker; number < workspace.FirstWorker+mostWorkers; number++ {
		p, err := l.Pool.TakeNow(ctx, number)
		if errors.Is(err, workspace.ErrTaken) {
			continue
		}
		if err != nil {
			return nil, err
		}
		open, err := store.Read(ctx, l.Store, (*store.Tx).OpenSessions)
		works := slices.ContainsFunc(open, func(s ralph.Session) bool { return s.Dir == p.Dir })
		if err == nil && !works {
			return p, nil
		}
		if err := errors.Join(err, p.Release()); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%d workers have workspaces, which is the most", mostWorkers)
}

// ClaimFor claims a task for a person working on it with a chat (human, "In the terminal"). The loop leaves the task
// alone until it is completed or released. ClaimFor returns the session and the prompt for the chat. The error wraps
// [ralph.ErrConflict] if the task cannot be claimed, and gives the reason.
func (l *Loop) ClaimFor(ctx context.Context, task int64, person string) (ralph.Session, string, error) {
	if err := l.Lapse(ctx); err != nil {
		return ralph.Session{}, "", err
	}
	t, err := l.claimable(ctx, task)
	if err != nil {
		return ralph.Session{}, "", err
	}
	s, err := l.openFor(ctx, l.Here, t, store.Start{Origin: ralph.FromHuman, Worker: person},
		func(tx *store.Tx, t ralph.Task) (order.Order, error) { return order.ForPerson(tx, &l.Config, t) })
	if err != nil {
		return ralph.Session{}, "", err
	}
	return s.Row, s.Prompt, nil
}

// claimable returns a task that can be claimed; the error explains why it cannot be.
func (l *Loop) claimable(ctx context.Context, task int64) (ralph.Task, error) {
	return store.Read(ctx, l.Store, func(tx *store.Tx) (ralph.Task, error) {
		t, err := tx.Task(task)
		if err != nil {
			return t, err
		}
		return t, tx.Claimable(t)
	})
}

// queueTime is the longest time a worker waits for the workers before it.
const queueTime = 20 * time.Second

// queueUp waits while another worker claims. Otherwise all would scan their work trees for the same first task, which
// takes long, and only one would get it. This only saves work: after queueTime they continue in parallel.
func (l *Loop) queueUp(ctx context.Context) (unlock func()) {
	limited, cancel := context.WithTimeout(ctx, queueTime)
	defer cancel()
	lock := flock.New(filepath.Join(l.Here.State, "claim.lock"))
	if _, err := lock.TryLockContext(limited, 20*time.Millisecond); err != nil && limited.Err() == nil {
		l.Log.Warn("cannot wait for other workers that claim", "error", err)
	}
	return func() {
		if err := lock.Unlock(); err != nil {
			l.Log.Warn("cannot release the claim lock", "error", err)
		}
	}
}

// Lapse decides on the claims whose lease has expired. It also ends people's
// sessions on tasks that were cancelled or amended.
func (l *Loop) Lapse(ctx context.Context) error {
	lapsed, err := store.Read(ctx, l.Store, (*store.Tx).LapsedClaims)
	if err != nil {
		return err
	}
	return l.outside().lapse(ctx, lapsed)
}

// lapse decides on claims whose lease has expired.
func (c course) lapse(ctx context.Context, lapsed []ralph.Session) error {
	return c.each(ctx, lapsed, func(ctx context.Context, row ralph.Session) error {
		at, err := c.placeOf(ctx, row)
		if err != nil {
			return err
		}
		return errors.Join(c.parts().Lapse(ctx, at, row), at.Workspace.Release())
	})
}

// Next returns the task that the loop would claim next. First it decides on expired claims, and merges their work.
func (l *Loop) Next(ctx context.Context) (task ralph.Task, ok bool, err error) {
	if err := l.Lapse(ctx); err != nil {
		return task, false, err
	}
	l.mergeLeft(ctx)
	if err := l.release(ctx); err != nil {
		return task, false, err
	}
	task, ok, _, err = l.pick(ctx, (*store.Tx).Next)
	return task, ok, err
}
