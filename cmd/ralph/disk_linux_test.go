package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestAFullDisk: ralph says so, ends and loses nothing; with room again it goes on.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	s := newScriptedProject(t, "task *\n  learned {\"text\": \"x\", \"kind\": \"discovery\"}\n  run echo x > made.txt\n  flood 3000000\n  done {\"summary\": \"made\"}\n", "verify: {commands: ['test -f made.txt'], on_red: go}\n")
	disk := smallDisk(t, s)
	s.ralph(0, "task", "add", "Make")
	filler := filepath.Join(disk, "filler")
	if err := os.WriteFile(filler, make([]byte, 64<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk took it all: %v", err)
	}
	info, err := os.Stat(filler)
	if err != nil {
		t.Fatal(err)
	}
	// From no room at all to room for a part of the session.
	for _, room := range []int64{0, 16 << 10, 128 << 10, 512 << 10, 1 << 20, 2 << 20} {
		if err := os.Truncate(filler, max(0, info.Size()-room)); err != nil {
			t.Fatal(err)
		}
		out := s.ralph(1, "run")
		if !strings.Contains(out, "disk is full") && !strings.Contains(out, "no space left on device") {
			t.Errorf("with %d bytes of room it does not say why:\n%s", room, out)
		}
		if said := s.sh("ralph doctor --no-check || true"); room == 0 && !strings.Contains(said, "the disk of "+s.state()) {
			t.Errorf("doctor does not name the disk:\n%s", said)
		}
		if n := strings.Count(out, "▶"); n > 3 {
			t.Errorf("with %d bytes of room it began %d sessions", room, n)
		}
		// Earlier output takes the room; the next round begins again.
		if err := os.RemoveAll(filepath.Join(disk, "sessions")); err != nil {
			t.Fatal(err)
		}
		if info, err = os.Stat(filler); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	s.ralph(0, "run")
	s.ralph(0, "db", "check")
	if out := s.ralph(0, "task", "list", "--all", "--json"); !strings.Contains(out, `"status": "merged"`) {
		t.Errorf("the task is not done: %s", out)
	}
}

// TestATaskThatFillsTheDisk fails, and the next task of the same run is done.
func TestATaskThatFillsTheDisk(t *testing.T) {
	long(t)
	t.Parallel()
	for name, c := range map[string]struct{ run, fills, config, said string }{
		"files of a check":              {"true", "cat /dev/zero > filler", "", "`sh fill.sh` exits 1"},
		"files of a check, held open":   {"true", "cat /dev/zero > filler; sleep 1000", "", "grew beyond workspace.max_size, or filled the disk"},
		"files of a check, no sandbox":  {"true", "cat /dev/zero > filler", "sandbox: off\n", "`sh fill.sh` exits 1"},
		"files of a session, held open": {"cat /dev/zero > filler; sleep 1000", "true", "", "grew beyond workspace.max_size"},
		"files of a session":            {"cat /dev/zero > filler; true", "false", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScriptedProject(t, "task Fill\n  run echo '"+c.fills+"' > fill.sh; echo x > made.txt; "+c.run+"\n  done {\"summary\": \"made\"}\n"+
				"task *\n  run echo y > made.txt\n  done {\"summary\": \"made\"}\n",
				"#test: {retries: 0, refused: 1}\nverify: {commands: ['test -f made.txt'], on_red: go}\n"+c.config)
			smallDisk(t, s)
			s.ralph(0, "task", "add", "Fill", "--verify", "sh fill.sh")
			s.ralph(0, "task", "add", "Make")
			out := s.sh("ralph run; echo status $?")
			for _, want := range []string{"TASK-1 failed: ", c.said, "TASK-2 merged into master", "status 3"} {
				if !strings.Contains(out, want) {
					t.Errorf("%q is not in\n%s", want, out)
				}
			}
			s.ralph(0, "db", "check")
		})
	}
}

// TestAReadOnlyDatabase: one clear line, and nothing is begun; commands that only read work.
func TestAReadOnlyDatabase(t *testing.T) {
	t.Parallel()
	s := newScriptedProject(t, "task *\n  done {\"summary\": \"made\"}\n", "")
	disk := smallDisk(t, s)
	s.ralph(0, "task", "add", "Make")
	if err := syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"run"}, {"task", "add", "Another"}} {
		if out := s.ralph(1, args...); strings.Count(strings.TrimSpace(out), "\n") > 0 || !strings.Contains(out, "read-only") && !strings.Contains(out, "cannot be") {
			t.Errorf("ralph %v: %s", args, out)
		}
	}
	for _, args := range [][]string{{"task", "list"}, {"status", "--json"}, {"task", "show", "1"}} {
		if out := s.ralph(0, args...); !strings.Contains(out, "queued") {
			t.Errorf("ralph %v: %s", args, out)
		}
	}
	if out := s.ralph(0, "inbox"); out != "nothing waits for you\n" {
		t.Errorf("ralph inbox: %s", out)
	}
}

// smallDisk puts the state of ralph on a disk of its own; the project is elsewhere.
func smallDisk(t *testing.T, s *scriptedProject) (disk string) {
	t.Helper()
	disk = t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=6m"); err != nil {
		t.Skip("skipped: a small disk cannot be mounted: ", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(os.MkdirAll(filepath.Dir(s.state()), 0o700), os.Symlink(disk, s.state())); err != nil {
		t.Fatal(err)
	}
	return disk
}
