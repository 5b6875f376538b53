package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// lockName is the file that a run locks.
const lockName = "run.lock"

// ErrLocked means that another run is active with the same state folder.
var ErrLocked = errors.New("another run is active in this project")

// Lock locks a state folder, with the workspaces in it, for one run. The lock ends with its owner; the error wraps
// [ErrLocked] and names the owner. It does not exclude runs with other folders: the database does.
func Lock(folder string) (unlock func() error, err error) {
	path := filepath.Join(folder, lockName)
	lock := flock.New(path)
	ok, err := lock.TryLock()
	if err != nil {
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
