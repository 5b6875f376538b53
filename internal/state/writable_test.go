package state

import (
	"os"
	"testing"

	"golang.org/x/sync/errgroup"
)

// TestProcessesThatTryAFolderAtOnce do not disturb each other, and leave nothing behind.
func TestProcessesThatTryAFolderAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var all errgroup.Group
	for range 8 {
		all.Go(func() error {
			for range 25 {
				if err := Writable(dir); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}
