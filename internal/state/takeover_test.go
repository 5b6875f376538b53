package state

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"ralph"
	"ralph/store"
)

// killAfter has the test binary take over a state and kill itself after that step.
const killAfter = "RALPH_TEST_KILL_AFTER"

func TestMain(m *testing.M) {
	if step := os.Getenv(killAfter); step != "" {
		mover := mover{from: os.Args[1], to: os.Args[2], after: func(done string) error {
			if done == step {
				return syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
			return nil
		}}
		if err := mover.move(context.Background()); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// before makes a state as it was before it lay outside of the project, with a task.
func before(t *testing.T) *Home {
	t.Helper()
	common := filepath.Join(t.TempDir(), ".git")
	h := &Home{Root: filepath.Dir(common), Git: true, Top: filepath.Dir(common), Common: common, Warn: io.Discard}
	elsewhere := t.TempDir()
	if shm, err := os.MkdirTemp("/dev/shm", "ralph-*"); err == nil { // another file system
		t.Cleanup(func() { os.RemoveAll(shm) })
		elsewhere = shm
	}
	var err error
	if h.seat, err = gitSeat([]string{"XDG_STATE_HOME=" + elsewhere}, common); err != nil {
		t.Fatal(err)
	}
	h.State = h.base
	db, err := store.Open(t.Context(), filepath.Join(h.desk, Database), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	addTask(t, db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		path := filepath.Join(h.desk, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write("sessions/one/stream.jsonl", "{}")
	write("sessions/one/deep/file", "deep")
	write("dashboard.token", "secret")
	if err := os.Symlink("deep/file", filepath.Join(h.desk, "sessions", "one", "link")); err != nil {
		t.Fatal(err)
	}
	return h
}

func addTask(t *testing.T, db *store.DB) {
	t.Helper()
	if err := db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.AddTask(ralph.Task{Title: "Kept"}, "human")
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// wantTakenOver makes sure that all is where it belongs, and that nothing can be done
// with what is left.
func wantTakenOver(t *testing.T, h *Home) {
	t.Helper()
	if there, err := h.HasQueue(t.Context()); err != nil || !there {
		t.Fatalf("HasQueue: %v, %v", there, err)
	}
	if n, err := countTasks(t.Context(), h.seat); err != nil || n != 1 {
		t.Errorf("%d tasks, %v; want 1", n, err)
	}
	for name, want := range map[string]string{
		"sessions/one/stream.jsonl": "{}", "sessions/one/deep/file": "deep", "sessions/one/link": "deep", "dashboard.token": "secret",
	} {
		if text, err := os.ReadFile(h.File(name)); err != nil || string(text) != want {
			t.Errorf("%s is %q, %v; want %q", name, text, err, want)
		}
	}
	if info, err := os.Stat(h.base); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder's mode: %v, %v", info, err)
	}
	left, err := os.ReadDir(h.desk)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range left {
		if e.Name() != lockName { // which an end just before its removal leaves
			names = append(names, e.Name())
		}
	}
	if want := []string{Database, markerName}; !slices.Equal(names, want) {
		t.Errorf("left: %v, want %v", names, want)
	}
	if _, err := store.Open(t.Context(), filepath.Join(h.desk, Database), store.Options{}); err == nil ||
		!strings.Contains(err.Error(), "was moved into the state folder") {
		t.Errorf("what is left opens: %v", err)
	}
	if err := h.known(); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(h.base)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".taken") {
			t.Errorf("left half: %s", e.Name())
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// steps are all that a take-over does.
func steps(t *testing.T) (list []string) {
	t.Helper()
	h := before(t)
	if err := h.Make(); err != nil {
		t.Fatal(err)
	}
	m := mover{from: h.desk, to: h.State, after: func(step string) error { list = append(list, step); return nil }}
	if err := m.move(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantTakenOver(t, h)
	if len(list) < 6 {
		t.Fatalf("steps: %v", list)
	}
	return list
}

func TestTakeOverThatIsKilled(t *testing.T) {
	for _, step := range steps(t) {
		t.Run(step, func(t *testing.T) {
			h := before(t)
			if err := h.Make(); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], h.desk, h.State)
			cmd.Env = append(os.Environ(), killAfter+"="+step)
			out, err := cmd.CombinedOutput()
			if err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("it was not killed: %v\n%s", err, out)
			}
			wantTakenOver(t, h)
			wantTakenOver(t, h) // the second time there is nothing to do
		})
	}
}

func TestTakeOverThatFails(t *testing.T) {
	fault := errors.New("the disk is full")
	for _, step := range steps(t) {
		t.Run(step, func(t *testing.T) {
			h := before(t)
			if err := h.Make(); err != nil {
				t.Fatal(err)
			}
			m := mover{from: h.desk, to: h.State, after: func(done string) error {
				if done == step {
					return fault
				}
				return nil
			}}
			if err := m.move(t.Context()); !errors.Is(err, fault) {
				t.Fatalf("move: %v", err)
			}
			wantTakenOver(t, h)
		})
	}
}

func TestTakeOverIsRefused(t *testing.T) {
	untouched := func(t *testing.T, h *Home, says string) {
		t.Helper()
		if _, err := h.HasQueue(t.Context()); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("HasQueue: %v; want %q", err, says)
		}
		if moved, err := store.Moved(filepath.Join(h.desk, Database)); moved || err != nil {
			t.Errorf("moved: %v, %v", moved, err)
		}
		if _, err := os.Stat(filepath.Join(h.desk, "dashboard.token")); err != nil {
			t.Error(err)
		}
	}
	t.Run("a run", func(t *testing.T) {
		h := before(t)
		unlock, err := Lock(h.desk)
		if err != nil {
			t.Fatal(err)
		}
		untouched(t, h, "a run of an older ralph works in this project (process ")
		if err := unlock(); err != nil {
			t.Fatal(err)
		}
		wantTakenOver(t, h)
	})
	t.Run("another process", func(t *testing.T) {
		h := before(t)
		db, err := store.Open(t.Context(), filepath.Join(h.desk, Database), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		untouched(t, h, "an older ralph works with the database")
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		wantTakenOver(t, h)
	})
	t.Run("two queues", func(t *testing.T) {
		h := before(t)
		db, err := store.Open(t.Context(), h.File(Database), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		untouched(t, h, "there are two queues for this project")
	})
	t.Run("a damaged database", func(t *testing.T) {
		h := before(t)
		path := filepath.Join(h.desk, Database)
		if err := os.WriteFile(path, []byte(strings.Repeat("no database ", 20)), 0o600); err != nil {
			t.Fatal(err)
		}
		untouched(t, h, "move that file away, and `ralph db restore FILE` brings a copy back")
	})
	t.Run("a network file system", func(t *testing.T) {
		h := before(t)
		disk := networkDisk
		networkDisk = func(dir string) string { return "NFS" }
		t.Cleanup(func() { networkDisk = disk })
		untouched(t, h, "is on a network file system (NFS)")
	})
}

// TestNothingIsTakenOverTwice: what a session puts where the state was before does not
// become ralph's.
func TestNothingIsTakenOverTwice(t *testing.T) {
	h := before(t)
	wantTakenOver(t, h)
	put := func(name string) {
		path := filepath.Join(h.desk, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("planted"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(h.desk, Database)); err != nil {
		t.Fatal(err)
	}
	put("sessions/one/stream.jsonl")
	put("dashboard.token")
	if there, err := h.HasQueue(t.Context()); err != nil || !there {
		t.Error(there, err)
	}
	put(Database)
	if _, err := h.HasQueue(t.Context()); err == nil || !strings.Contains(err.Error(), "two queues") {
		t.Errorf("a database beside the one that there is: %v", err)
	}
	for _, name := range []string{"sessions/one/stream.jsonl", "dashboard.token", Database} {
		if text, err := os.ReadFile(h.File(name)); err != nil || string(text) == "planted" {
			t.Errorf("%s is %.20q, %v", name, text, err)
		}
	}
}

// TestTakeOverOfTwo has two commands begin at once: both find the queue.
func TestTakeOverOfTwo(t *testing.T) {
	h := before(t)
	errs := make(chan error)
	for range 4 {
		one := *h
		go func() {
			there, err := one.HasQueue(t.Context())
			if err == nil && !there {
				err = fs.ErrNotExist
			}
			errs <- err
		}()
	}
	for range 4 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	wantTakenOver(t, h)
}

// TestPlainFolder has the folder of a project without git keep what is others'.
func TestPlainFolder(t *testing.T) {
	root := t.TempDir()
	h := &Home{Root: root, Warn: io.Discard}
	var err error
	if h.seat, err = plainSeat([]string{"HOME=" + t.TempDir()}, root); err != nil {
		t.Fatal(err)
	}
	h.State = h.base
	db, err := store.Open(t.Context(), filepath.Join(h.desk, Database), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tests.xml", ".gitignore", "session.json"} {
		if err := os.WriteFile(filepath.Join(h.desk, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if there, err := h.HasQueue(t.Context()); err != nil || !there {
		t.Fatal(there, err)
	}
	for path, want := range map[string]bool{
		filepath.Join(h.desk, "tests.xml"): true, filepath.Join(h.desk, ".gitignore"): true, h.File("session.json"): true,
		h.File("tests.xml"): false,
	} {
		if Exists(path) != want {
			t.Errorf("%s: %v, want %v", path, !want, want)
		}
	}
}

func TestWhereTheStateLies(t *testing.T) {
	place := filepath.Join(t.TempDir(), "my-app", ".git")
	if err := os.MkdirAll(place, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Dir(place), link); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, place string
		environ     []string
		want, fails string
	}{
		{"by default", place, []string{"HOME=/h"}, "/h/.local/state/ralph/my-app-", ""},
		{"by the user's folder", place, []string{"HOME=/h", "XDG_STATE_HOME=/s"}, "/s/ralph/my-app-", ""},
		{"which counts only whole", place, []string{"HOME=/h", "XDG_STATE_HOME=s"}, "/h/.local/state/ralph/my-app-", ""},
		{"outright", place, []string{"RALPH_STATE_DIR=/d/e/"}, "/d/e", ""},
		{"outright, but not whole", place, []string{"RALPH_STATE_DIR=d"}, "", "whole path"},
		{"without any", place, nil, "", "HOME is not set"},
		{"of a bare repository", filepath.Join(filepath.Dir(place), "lib.git"), []string{"HOME=/h"}, "/ralph/lib-", ""},
	} {
		s, err := gitSeat(tt.environ, tt.place)
		if tt.fails != "" {
			var status *ralph.ExitError
			if err == nil || !strings.Contains(err.Error(), tt.fails) || !errors.As(err, &status) {
				t.Errorf("%s: %v, want %q", tt.name, err, tt.fails)
			}
			continue
		}
		if err != nil || !strings.Contains(s.base, tt.want) {
			t.Errorf("%s: %s, %v; want %s", tt.name, s.base, err, tt.want)
		}
	}
	a, err := gitSeat([]string{"HOME=/h"}, place)
	b, berr := gitSeat([]string{"HOME=/h"}, filepath.Join(link, ".git"))
	if a.base != b.base || err != nil || berr != nil {
		t.Errorf("through a link it is %s, and %s", b.base, a.base)
	}
}
