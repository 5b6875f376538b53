package proc_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gofrs/flock"

	"ralph/internal/proc"
)

// TestTheHolderOfALock is not confused with processes that have the file open, or only look at the lock.
func TestTheHolderOfALock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.lock")
	self := proc.Lineage()[0]
	holds := func(want bool, when string) {
		t.Helper()
		if got := self.Holds(path); got != want {
			t.Errorf("%s: it holds the lock: %t", when, got)
		}
	}
	holds(false, "without the file")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	holds(false, "with the file open")
	lock := flock.New(path)
	if ok, err := lock.TryRLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	holds(false, "with a shared lock")
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	if ok, err := lock.TryLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	holds(true, "with the lock")
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	holds(false, "after it")
}
