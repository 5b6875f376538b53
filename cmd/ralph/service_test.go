package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestServiceUnderSystemd plays a service's life with a real systemd, where one
// can be run in a container of its own.
func TestServiceUnderSystemd(t *testing.T) {
	container, err := filepath.Abs("testdata/systemd/container.sh")
	if err != nil {
		t.Fatal(err)
	}
	try := exec.CommandContext(t.Context(), "sh", container, "true")
	try.Env = append(os.Environ(), "HOME="+t.TempDir())
	if out, err := try.CombinedOutput(); err != nil {
		t.Skipf("no systemd can be run in a container of its own here (as root, with unshare and cgroups): %v\n%s", err, out)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/systemd",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, ".home")
			env.Setenv("HOME", home)
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
			env.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			env.Setenv("NO_COLOR", "1")
			env.Setenv("CONTAINER", container)
			return os.MkdirAll(home, 0o700)
		},
	})
}
