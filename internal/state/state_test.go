package state

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ralph"
)

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

// TestANetworkFileSystemIsRefused before anything is written there.
func TestANetworkFileSystemIsRefused(t *testing.T) {
	disk := networkDisk
	networkDisk = func(string) string { return "NFS" }
	t.Cleanup(func() { networkDisk = disk })
	h := &Home{Root: t.TempDir(), Warn: io.Discard}
	var err error
	if h.seat, err = plainSeat([]string{"HOME=" + t.TempDir()}, h.Root); err != nil {
		t.Fatal(err)
	}
	h.State = h.base
	if err := h.Make(); err == nil || !strings.Contains(err.Error(), "is on a network file system (NFS)") {
		t.Errorf("Make: %v", err)
	}
	if Exists(h.marker()) || Exists(h.record()) {
		t.Error("the folder is joined with the project all the same")
	}
}

// TestAProjectWhoseQueueIsOnAServer is one; without its configuration that is written anew.
func TestAProjectWhoseQueueIsOnAServer(t *testing.T) {
	h := &Home{Root: t.TempDir(), Warn: io.Discard}
	environ := []string{"HOME=" + t.TempDir()}
	var err error
	if h.seat, err = plainSeat(environ, h.Root); err != nil {
		t.Fatal(err)
	}
	h.State = h.base
	if err := errors.Join(h.Make(), os.WriteFile(h.File(onServer), []byte("postgres://db/queue\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := Prepare(t.Context(), h.Root, false, environ); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(h.Root, ConfigName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Prepare(t.Context(), h.Root, false, environ); !errors.Is(err, ErrProject) {
		t.Errorf("with its configuration: %v", err)
	}
}

// TestADatabaseInTheProjectIsNone: what a session puts into ralph's folder there is not the queue.
func TestADatabaseInTheProjectIsNone(t *testing.T) {
	h := &Home{Root: t.TempDir(), Warn: io.Discard}
	var err error
	if h.seat, err = plainSeat([]string{"HOME=" + t.TempDir()}, h.Root); err != nil {
		t.Fatal(err)
	}
	h.State = h.base
	planted := filepath.Join(h.desk, Database)
	if err := errors.Join(os.MkdirAll(h.desk, 0o700), os.WriteFile(planted, []byte("planted"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if there, err := h.HasQueue(); there || err != nil {
		t.Errorf("HasQueue: %v, %v", there, err)
	}
	if isRoot(h.Root) {
		t.Error("it makes the folder a project")
	}
}

// TestAStateFolderIsMoved, also to another file system, and where that was interrupted before.
func TestAStateFolderIsMoved(t *testing.T) {
	elsewhere := t.TempDir()
	if shm, err := os.MkdirTemp("/dev/shm", "ralph-*"); err == nil { // another file system
		t.Cleanup(func() { os.RemoveAll(shm) })
		elsewhere = shm
	}
	from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(elsewhere, "to")
	for path, text := range map[string]string{
		filepath.Join(from, "sessions", "one", "deep"): "deep", filepath.Join(from, "dashboard.token"): "secret",
		filepath.Join(to, "half"): "", filepath.Join(to+".taken", "half"): "",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("deep", filepath.Join(from, "sessions", "one", "link")); err != nil {
		t.Fatal(err)
	}
	if err := carry(from, to); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"sessions/one/deep": "deep", "sessions/one/link": "deep", "dashboard.token": "secret"} {
		if text, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(text) != want {
			t.Errorf("%s is %q, %v; want %q", name, text, err, want)
		}
	}
	for _, gone := range []string{from, to + ".taken", filepath.Join(to, "half")} {
		if Exists(gone) {
			t.Errorf("%s is left", gone)
		}
	}
}

// TestALargeQueueIsCopiedOnceAnHour: a small one by each run.
func TestALargeQueueIsCopiedOnceAnHour(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		size  int64
		since time.Duration
		want  bool
	}{
		{smallQueue, 0, true},
		{smallQueue + 1, time.Hour - 1, false},
		{smallQueue + 1, time.Hour, true},
	} {
		if got := due(c.size, c.since); got != c.want {
			t.Errorf("%d bytes, copied %s ago: %v", c.size, c.since, got)
		}
	}
}
