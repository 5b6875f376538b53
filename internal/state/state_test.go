package state

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"

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
		s, err := newSeat(t.Context(), tt.environ, tt.place)
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
	a, err := newSeat(t.Context(), []string{"HOME=/h"}, place)
	b, berr := newSeat(t.Context(), []string{"HOME=/h"}, filepath.Join(link, ".git"))
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
	if h.seat, err = newSeat(t.Context(), []string{"HOME=" + t.TempDir()}, h.Root); err != nil {
		t.Fatal(err)
	}
	h.State = h.base
	if err := h.Make(t.Context()); err == nil || !strings.Contains(err.Error(), "is on a network file system (NFS)") {
		t.Errorf("Make: %v", err)
	}
	if Exists(filepath.Join(h.desk(), idName)) || Exists(h.record()) {
		t.Error("the folder is joined with the project all the same")
	}
}

// TestAProjectWhoseQueueIsOnAServer is initialized; without its configuration, it is initialized again.
func TestAProjectWhoseQueueIsOnAServer(t *testing.T) {
	h := &Home{Root: t.TempDir(), Warn: io.Discard}
	environ := []string{"HOME=" + t.TempDir()}
	var err error
	if h.seat, err = newSeat(t.Context(), environ, h.Root); err != nil {
		t.Fatal(err)
	}
	h.State = h.base
	if err := errors.Join(h.Make(t.Context()), os.WriteFile(h.File(onServer), []byte("postgres://db/queue\n"), 0o600)); err != nil {
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

// TestAProjectThatIsMadeWaitsForNoLock, which a session may hold: people's commands, `ralph stop` among them, go on.
func TestAProjectThatIsMadeWaitsForNoLock(t *testing.T) {
	h := &Home{Root: t.TempDir(), Warn: io.Discard}
	var err error
	if h.seat, err = newSeat(t.Context(), []string{"HOME=" + t.TempDir()}, h.Root); err != nil {
		t.Fatal(err)
	}
	h.State = h.base
	lock := flock.New(filepath.Join(filepath.Dir(h.base), ".ids.lock"))
	if err := errors.Join(h.Make(t.Context()), lock.Lock()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(h.Make(t.Context()), lock.Unlock()); err != nil {
		t.Error(err)
	}
	if err := errors.Join(os.Remove(h.record()), h.Make(t.Context())); err != nil || !Exists(h.record()) {
		t.Errorf("a lost record is not made anew: %v", err)
	}
}

// TestADatabaseInTheProjectIsNone: files that a session puts into ralph's folder there are not the queue.
func TestADatabaseInTheProjectIsNone(t *testing.T) {
	h := &Home{Root: t.TempDir(), Warn: io.Discard}
	var err error
	if h.seat, err = newSeat(t.Context(), []string{"HOME=" + t.TempDir()}, h.Root); err != nil {
		t.Fatal(err)
	}
	h.State = h.base
	planted := filepath.Join(h.desk(), Database)
	if err := errors.Join(os.MkdirAll(h.desk(), 0o700), os.WriteFile(planted, []byte("planted"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if there, err := h.HasQueue(); there || err != nil {
		t.Errorf("HasQueue: %v, %v", there, err)
	}
	if isRoot(h.Root) {
		t.Error("it makes the folder a project")
	}
}

// TestQueuesOfProjects: a moved project keeps its queue. A copy, or a project that lost its id, does not get another's.
func TestQueuesOfProjects(t *testing.T) {
	t.Parallel()
	dir := resolved(t.TempDir())
	environ := []string{"HOME=" + dir}
	find := func(name string) (*Home, error) { return Find(t.Context(), filepath.Join(dir, name), environ) }
	begin := func(name string) *Home {
		t.Helper()
		h, err := find(name)
		if err != nil {
			t.Fatal(err)
		}
		db, err := h.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		return h
	}
	run := func(words ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", words, err, out)
		}
	}
	same := func(name string, want *Home) {
		t.Helper()
		if h, err := find(name); err != nil || h.State != want.State {
			t.Errorf("the queue of %s is in %v (%v), want %s", name, h, err, want.State)
		}
	}
	fails := func(name, why string) {
		t.Helper()
		if _, err := find(name); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %q", name, err, why)
		}
	}
	run("git", "init", "-q", "app")
	app := begin("app")
	run("mv", "app", "moved")
	same("moved", app)
	run("cp", "-r", "moved", "copy")
	fails("copy", "this is a copy of "+filepath.Join(dir, "moved", ".git"))
	run("git", "-C", "copy", "config", "--local", "--unset", "ralph.id")
	if other := begin("copy"); other.State == app.State {
		t.Error("the copy shares the queue")
	}
	run("git", "clone", "-q", "moved", "app") // where the project once was
	if other := begin("app"); other.State == app.State {
		t.Error("a clone has the queue")
	}
	same("moved", app)

	run("git", "-C", "moved", "config", "--local", "--unset", "ralph.id")
	fails("moved", "git config --local ralph.id "+app.id)
	run("rm", "-rf", "moved/.git")
	run("touch", "moved/"+ConfigName)
	fails("moved", "its queue is in")
	run("rm", "moved/"+ConfigName)
	fails("moved", "its queue is in")
	run("git", "init", "-q", "moved")
	fails("moved", "its queue is in")
	run("git", "-C", "moved", "config", "--local", "ralph.id", app.id)
	same("moved", app)

	run("git", "-C", "copy", "config", "--local", "ralph.id", app.id) // of another project that is there
	fails("copy", "this is a copy")
	run("git", "-C", "copy", "config", "--local", "ralph.id", "no-such-queue")
	fails("copy", "its queue is in")
	run("git", "-C", "copy", "config", "--local", "ralph.id", "../outside")
	fails("copy", "not one that ralph makes")
	run("mv", ".local/state/ralph/"+app.id, "elsewhere")
	fails("moved", "the state of this project is gone")
	run("mv", "elsewhere", ".local/state/ralph/"+app.id)
	same("moved", app)

	record := ".local/state/ralph/" + app.id + "/" + recordName // damaged: it names another project
	run("cp", record, "record")
	run("sed", "-i", "s/"+app.id+"/x"+app.id+"/", record)
	fails("moved", "is not as ralph wrote it: remove it")
	run("mv", "record", record)
	same("moved", app)

	environ = append(environ, DirVariable+"="+filepath.Join(dir, "ci")) // outlives the checkouts that use it
	run("git", "clone", "-q", "moved", "one")
	ci := begin("one")
	run("git", "clone", "-q", "moved", "two")
	fails("two", "name another folder with "+DirVariable)
	run("rm", "-rf", "one")
	same("two", ci)
	environ = environ[:1]

	run("mkdir", "plain")
	run("touch", "plain/"+ConfigName)
	plain := begin("plain")
	run("git", "init", "-q", "plain")
	same("plain", plain)
	begin("plain") // whose queue is the repository's from now on
	run("git", "-C", "plain", "config", "--local", "ralph.id", plain.id)
	same("plain", plain)
	if Exists(filepath.Join(dir, "plain", PlainName, idName)) {
		t.Error("it has its id in two places")
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
