package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// lockName is the file that a run locks.
const lockName = "run.lock"

// ErrLocked says that another run is active.
var ErrLocked = errors.New("another run is active in this project")

// Lock locks the project for one run. The lock dies with its owner; the error wraps [ErrLocked]
// and names the owner.
func Lock(folder string) (unlock func() error, err error) {
	path := filepath.Join(folder, lockName)
	lock := flock.New(path)
	// Checks for an active run hold the lock for an instant.
	brief, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	ok, err := lock.TryLockContext(brief, 20*time.Millisecond)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("lock of the run: %w", err)
	}
	if !ok {
		return nil, fmt.Errorf("%w (%s); stop it with `ralph stop` first", ErrLocked, lockOwner(folder))
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

// lockOwner names the process that has the lock.
func lockOwner(folder string) string {
	text, err := os.ReadFile(filepath.Join(folder, lockName))
	if err != nil {
		return "an unknown process"
	}
	return string(text)
}

// Active reports whether a run is active. Unlike the run's row in the database, its lock does not
// outlive a killed run.
func Active(folder string) (bool, error) {
	path := filepath.Join(folder, lockName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	lock := flock.New(path)
	// Shared, so that several checks do not see each other.
	ok, err := lock.TryRLock()
	if err != nil {
		return false, fmt.Errorf("lock of the run: %w", err)
	}
	if !ok {
		return true, nil
	}
	return false, lock.Unlock()
}
