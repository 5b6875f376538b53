package sandbox

import (
	"testing"

	"golang.org/x/sync/errgroup"
)

// TestFoldersOfCommandsAreMadeAtOnce: none is taken for what a killed one has left.
func TestFoldersOfCommandsAreMadeAtOnce(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var jobs errgroup.Group
	for range 8 {
		jobs.Go(func() error {
			for range 50 {
				_, leave, err := ownFolder()
				if err != nil {
					return err
				}
				leave()
			}
			return nil
		})
	}
	if err := jobs.Wait(); err != nil {
		t.Error(err)
	}
}
