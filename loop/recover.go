package loop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"

	"ralph"
	"ralph/internal/proc"
	"ralph/loop/session"
	"ralph/store"
)

// recover settles the sessions that an earlier run left without an end: its
// process, or the machine, stopped.
//
// The caller holds the project's lock, so nobody works on them any more.
func (l *Loop) recover(ctx context.Context) error {
	var lost []ralph.Session
	var last ralph.Run
	var ok bool
	if err := l.Store.View(ctx, func(tx *store.Tx) (err error) {
		if last, ok, err = tx.LastRun(); err != nil {
			return err
		}
		lost, err = tx.OpenSessions()
		return err
	}); err != nil {
		return err
	}
	if ok && last.EndedAt.IsZero() && l.Place.Tree.Marker != "" {
		// A look at the work tree that outlived its ralph would write where the next
		// one looks.
		if _, err := proc.Sweep(l.Place.Tree.Marker); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return fmt.Errorf("looks at the work tree that an earlier run left: %w", err)
		}
	}
	lost = slices.DeleteFunc(lost, func(s ralph.Session) bool { return s.Origin != ralph.FromLoop || s.Worker != "" })
	return l.each(ctx, lost, func(ctx context.Context, row ralph.Session) error {
		d, err := l.needs().Recover(ctx, row)
		if err == nil {
			l.Log.Info("settled a lost session",
				"session", row.ID, "task", row.TaskID, "status", string(d.Status), "reason", d.StatusReason)
		}
		return err
	})
}

// each settles sessions that are over, and goes on where one cannot be settled.
func (l *Loop) each(
	ctx context.Context, rows []ralph.Session, settle func(context.Context, ralph.Session) error,
) error {
	for _, row := range rows {
		if err := l.unsettled(ctx, row, settle(ctx, row)); err != nil {
			return err
		}
	}
	return nil
}

// unsettled notes that a session which is over could not be settled, and why: its
// task stays claimed, and the others go on. It is logged once. The error is the
// database's, or that the run was stopped.
func (l *Loop) unsettled(ctx context.Context, row ralph.Session, why error) error {
	if why == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var news bool
	err := l.Store.Tx(ctx, func(tx *store.Tx) (err error) {
		news, err = tx.NoteUnsettled(row.ID, session.Shortly(why))
		return err
	})
	if err != nil {
		return errors.Join(fmt.Errorf("session %s of TASK-%d: %w", row.ID, row.TaskID, why), err)
	}
	if news {
		l.Log.Error("a session that is over cannot be settled; its task stays claimed, see `ralph doctor`",
			"session", row.ID, "task", row.TaskID, "error", why)
	}
	return nil
}

// ErrLocked says that another run has the project.
var ErrLocked = errors.New("another run is active in this project")

// Lock takes the project for one run. It dies with its holder; the error wraps
// [ErrLocked] and says who holds it.
func Lock(state string) (unlock func() error, err error) {
	path := filepath.Join(state, "run.lock")
	lock := flock.New(path)
	// Those who only look whether a run is active hold the lock for an instant.
	brief, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	ok, err := lock.TryLockContext(brief, 20*time.Millisecond)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("lock of the run: %w", err)
	}
	if !ok {
		holder, err := os.ReadFile(path)
		if err != nil {
			holder = []byte("a process that cannot be told")
		}
		return nil, fmt.Errorf("%w (%s); stop it with `ralph stop` first", ErrLocked, holder)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	if err := os.WriteFile(path, fmt.Appendf(nil, "process %d on %s", os.Getpid(), host), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("lock of the run: %w", err), lock.Unlock())
	}
	return lock.Unlock, nil
}

// Active reports whether a run has the project now. Unlike a run's row, the lock
// on which it goes does not outlive a run that was killed.
func Active(state string) (bool, error) {
	path := filepath.Join(state, "run.lock")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	lock := flock.New(path)
	// Shared, so that those who only look do not see each other.
	ok, err := lock.TryRLock()
	if err != nil {
		return false, fmt.Errorf("lock of the run: %w", err)
	}
	if !ok {
		return true, nil
	}
	return false, lock.Unlock()
}
