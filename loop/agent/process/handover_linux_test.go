package process_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"ralph/loop/agent/process"
)

// TestAnUnusedHandOverIsWithdrawn, whatever a session has done to its name.
func TestAnUnusedHandOverIsWithdrawn(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"as it was":          func(string) error { return nil },
		"removed":            os.Remove,
		"renamed":            func(path string) error { return os.Rename(path, path+".kept") },
		"replaced by a file": func(path string) error { return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "servers.json")
			withdraw, err := process.HandOver(path, "secret")
			if err == nil {
				err = harm(path)
			}
			if err != nil {
				t.Fatal(err)
			}
			withdraw()
			if text, err := os.ReadFile(path); len(text) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("it has %q, %v", text, err)
			}
		})
	}
}
