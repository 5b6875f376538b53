package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// TestASessionStartsFewGitProcesses counts them, which takes no clock: each is a
// millisecond or two of a session, and of every session.
func TestASessionStartsFewGitProcesses(t *testing.T) {
	long(t)
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	const alone = 74 // processes of a run of one session
	for _, tt := range []struct {
		name, script, config string
		most                 int // processes of each session but the first
	}{
		{"that changes nothing", "task *\n  done {\"summary\": \"seen\"}\nturn\n  done {\"summary\": \"seen\"}\n", "", 26},
		{"that commits", "task *\n  run echo x >> made; git add -A; git commit -qm made\n  done {\"summary\": \"made\"}\n", "", 52},
		{"that is merged", "task *\n  run echo x >> made\n  done {\"summary\": \"made\"}\n", "verify: [\"true\"]\n", 52}, // two are of its proof
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			count := func(sessions int) int {
				s := newScriptedProject(t, tt.script, "limits: {max_sessions: 1000, stagnant_sessions: 1000}\n"+tt.config)
				bin, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
				// The agent's own commands have GIT_AUTHOR_NAME, which ralph takes away from its.
				text := "#!/bin/sh\n[ -n \"$GIT_AUTHOR_NAME\" ] || echo \"$@\" >> '" + log + "'\nexec '" + git + "' \"$@\"\n"
				if err := os.WriteFile(filepath.Join(bin, "git"), []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
				for i := range sessions {
					s.ralph(0, "task", "add", "Task "+strconv.Itoa(i))
				}
				s.env = append(s.env, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
				s.ralph(0, "run")
				said, err := os.ReadFile(log)
				if err != nil {
					t.Fatal(err)
				}
				// A slow machine restarts the processes that answer questions.
				return bytes.Count(said, []byte("\n")) - bytes.Count(said, []byte("cat-file --batch"))
			}
			const more = 4
			first := count(1)
			if first > alone {
				t.Errorf("a run of one session starts git %d times, at most %d are allowed", first, alone)
			}
			each := float64(count(1+more)-first) / more
			if each > float64(tt.most) {
				t.Errorf("a session starts git %.2f times, at most %d are allowed", each, tt.most)
			}
		})
	}
}
