package sandbox

import (
	"os"
	"testing"

	"golang.org/x/sync/errgroup"
)

// TestFoldersOfCommandsAreMadeAtOnce: none is taken for a folder of a killed command, and nothing else is removed.
func TestFoldersOfCommandsAreMadeAtOnce(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Chdir(t.TempDir())
	if err := os.WriteFile("kept", nil, 0o600); err != nil {
		t.Fatal(err)
	}
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
	if _, err := os.Stat("kept"); err != nil {
		t.Error(err)
	}
}
