package main

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ralph/internal/sandbox"
	"ralph/internal/tools/messagesapi"
	"ralph/loop/agent"
	"ralph/loop/agent/kinds"
)

// TestRealUsedHome: an agent that was used before works in a sandbox, in a new project, despite its files in its
// folder; also if the folder is elsewhere and a symbolic link.
func TestRealUsedHome(t *testing.T) {
	t.Parallel()
	makers := maps.Clone(backends)
	for _, name := range otherNames() {
		makers[name] = func(t *testing.T, answer func(int, messagesapi.Request) messagesapi.Turn) *stage {
			t.Helper()
			return newOtherStage(t, name, answer)
		}
	}
	for name, newStage := range makers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, func(_ int, r messagesapi.Request) messagesapi.Turn {
				switch {
				case strings.Contains(r.Body, "said-by-the-model"):
					return finished // else it says done again and again until it is stopped
				case strings.Contains(r.Body, "made-by-the-model"):
					return done("said-by-the-model")
				}
				return bash("echo made-by-the-model > made.txt")
			})
			config, err := os.ReadFile(filepath.Join(s.dir, "ralph.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			s.useElsewhere(string(config)+"\nsandbox: off\n", "none")
			for _, moved := range []bool{false, true} {
				if s.t = t; moved {
					s.moveHome(name)
				}
				onEachSandbox(t, func(t *testing.T, name, first string) {
					if name == sandbox.Bubblewrap { // Landlock has the same folders: TestRealSandbox
						s.t, s.first = t, first
						s.useElsewhere(string(config), name)
					}
				})
			}
		})
	}
}

// useElsewhere has the agent do a task in a new project, in the sandbox of this name.
func (s *stage) useElsewhere(config, name string) {
	s.t.Helper()
	s.dir = s.t.TempDir()
	s.write(map[string]string{"ralph.yaml": config})
	s.git("init", "-q")
	s.commit()
	s.run(0, "task", "add", "Make", "--verify", "test -f made.txt")
	s.has(s.run(0, "run"), "sandbox: "+name, "TASK-1 merging: done and verified")
}

// moveHome moves the agent's folder, puts a link in its place and says by a variable where that is, if the agent
// has one for it.
func (s *stage) moveHome(name string) {
	s.t.Helper()
	p := kinds.Profiles[slices.IndexFunc(kinds.Profiles, func(p *agent.Profile) bool { return p.Name == name })]
	folder := filepath.Join(s.home, strings.TrimPrefix(p.Home[0], "~"))
	link, moved := folder, filepath.Join(s.home, "moved")
	err := os.Rename(folder, moved)
	if variable, below, _ := strings.Cut(p.HomeVariable, "/"); variable != "" {
		link = filepath.Join(s.home, "linked", filepath.Base(folder))
		s.environ = append(s.environ, variable+"="+strings.TrimSuffix(link, "/"+below))
	}
	err = errors.Join(err, os.MkdirAll(filepath.Dir(link), 0o700), os.Symlink(moved, link))
	// With the variable, Claude Code has this in its folder, too.
	if missing := os.Rename(filepath.Join(s.home, ".claude.json"), filepath.Join(moved, ".claude.json")); !errors.Is(missing, fs.ErrNotExist) {
		err = errors.Join(err, missing)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}
