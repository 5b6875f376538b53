package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"ralph/internal/proc"
	"ralph/internal/sandbox"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == proc.SuperviseArg {
		os.Exit(proc.Supervise())
	}
	testscript.Main(m, map[string]func(){"ralph": main})
}

// TestStories runs every story in testdata: what a person could have typed, with
// the scripted agent where an agent is needed.
func TestStories(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Condition: func(cond string) (bool, error) {
			if cond == "root" {
				return os.Geteuid() == 0, nil
			}
			if cond != "sandbox" {
				return false, fmt.Errorf("no condition %q", cond)
			}
			_, err := sandbox.Available(t.Context(), os.Getenv("PATH"), true)
			return err == nil, nil
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir+"/.home")
			env.Setenv("XDG_CONFIG_HOME", env.WorkDir+"/.home/.config")
			for _, who := range []string{"AUTHOR", "COMMITTER"} {
				env.Setenv("GIT_"+who+"_NAME", "Test")
				env.Setenv("GIT_"+who+"_EMAIL", "test@example.com")
			}
			env.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			env.Setenv("NO_COLOR", "1")
			// Under the race detector every process would linger a second at its end.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			return os.MkdirAll(env.WorkDir+"/.home", 0o700)
		},
	})
}
