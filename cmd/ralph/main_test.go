package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/rogpeppe/go-internal/testscript"

	"ralph/internal/config"
	"ralph/internal/pgtest"
	"ralph/internal/sandbox"
	"ralph/internal/state"
	"ralph/store"
)

func TestMain(m *testing.M) {
	testscript.Main(away{m}, map[string]func(){"ralph": func() { quicken(); main() }})
}

// long skips a test of `make check` in `make test`.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped: make check has it")
	}
}

// quicken changes fixed constants, and the time of leases, as the variable RALPH_TEST_FIXED and a line "#test: {stuck:
// 1, lease: 5s}" of ralph.yaml say. It is called in a process of its own alone, before all else.
func quicken() {
	lines := []string{os.Getenv("RALPH_TEST_FIXED")}
	if text, err := os.ReadFile("ralph.yaml"); err == nil {
		for line := range strings.Lines(string(text)) {
			if fixed, ok := strings.CutPrefix(line, "#test: "); ok {
				lines = append(lines, fixed)
			}
		}
	}
	for _, line := range lines {
		if line == "" {
			continue // an empty document would empty the constants
		}
		var leases struct{ Lease time.Duration }
		if err := errors.Join(yaml.Unmarshal([]byte(line), &config.Fixed), yaml.Unmarshal([]byte(line), &leases)); err != nil {
			panic(err)
		}
		if leases.Lease > 0 {
			store.LeaseTime = leases.Lease
		}
	}
}

// away are tests with project states other than those of the user.
type away struct{ *testing.M }

func (a away) Run() int {
	dir, err := os.MkdirTemp("", "ralph-states-*")
	if err == nil {
		err = os.Setenv("XDG_STATE_HOME", dir)
	}
	if err != nil {
		panic(err)
	}
	status := a.M.Run()
	if err := os.RemoveAll(dir); err != nil {
		panic(err)
	}
	return status
}

// stateOf returns where the state of a project is.
func stateOf(t *testing.T, dir string, environ []string) string {
	t.Helper()
	home, err := state.Locate(t.Context(), dir, environ)
	if err != nil {
		t.Fatal(err)
	}
	return home.State
}

// TestStories runs every story in testdata: commands that a person could have typed, with the scripted agent where an
// agent is needed.
func TestStories(t *testing.T) {
	t.Parallel()
	runStories(t, "testdata")
}

// TestRareStories runs those of what few people meet, or that need more than Go and git.
func TestRareStories(t *testing.T) {
	if testing.Short() {
		t.Skip("make check has them")
	}
	t.Parallel()
	runStories(t, filepath.Join("testdata", "rare"))
}

func runStories(t *testing.T, dir string) {
	t.Helper()
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		Condition: func(cond string) (bool, error) {
			if cond == "root" {
				return os.Geteuid() == 0, nil
			}
			if cond == "postgres" {
				return pgtest.Found(), nil
			}
			if cond == "files" { // queues are in files, as is usual
				return !pgtest.Used(), nil
			}
			if cond == "landlock" { // instead of bubblewrap, also where that is there
				return sandbox.Find(t.Context(), "", sandbox.Policy{}).Name == sandbox.Landlock, nil
			}
			if cond == "landlock-sockets" {
				return sandbox.Find(t.Context(), "", sandbox.Policy{}).RefusesSockets(), nil
			}
			if cond != "sandbox" {
				return false, fmt.Errorf("no condition %q", cond)
			}
			return sandbox.Find(t.Context(), os.Getenv("PATH"), sandbox.Policy{}).Name == sandbox.Bubblewrap, nil
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir+"/.home")
			env.Setenv("XDG_CONFIG_HOME", env.WorkDir+"/.home/.config")
			// Not in the work directory, which often is the project.
			env.Setenv("XDG_STATE_HOME", env.WorkDir+"-state")
			for _, who := range []string{"AUTHOR", "COMMITTER"} {
				env.Setenv("GIT_"+who+"_NAME", "Test")
				env.Setenv("GIT_"+who+"_EMAIL", "test@example.com")
			}
			env.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			env.Setenv("NO_COLOR", "1")
			if pgtest.Used() {
				env.Setenv("RALPH_DATABASE", pgtest.New(t))
			}
			// Under the race detector every process would linger a second at its end.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			if err := os.MkdirAll(env.WorkDir+"/.home", 0o700); err != nil {
				return err
			}
			return os.WriteFile(env.WorkDir+"/.home/.gitignore", []byte("*\n"), 0o600)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"postgres": func(ts *testscript.TestScript, _ bool, _ []string) { ts.Setenv("POSTGRES", pgtest.New(t)) },
			"projects": func(ts *testscript.TestScript, _ bool, names []string) { // that have a database each, on a server
				if pgtest.Used() {
					ts.Setenv("RALPH_DATABASE", pgtest.Projects(t, names...))
				}
			},
			"repository": func(ts *testscript.TestScript, _ bool, _ []string) { repository(ts) },
		},
	})
}

// repository makes the working directory a repository in which all that is there is committed.
func repository(ts *testscript.TestScript) {
	for _, command := range []string{
		"init -q -b main", "add -A", "commit -q --allow-empty -m base",
	} {
		ts.Check(ts.Exec("git", strings.Fields(command)...))
	}
}
