package sandbox_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ralph/internal/proc"
	"ralph/internal/sandbox"
)

// TestALayerIsWrittenToInAFolderOfItsOwn: the lower layer stays unchanged under any command, and the next command with
// the same upper layer continues with it.
func TestALayerIsWrittenToInAFolderOfItsOwn(t *testing.T) {
	for _, m := range layered(t) {
		t.Run(m.Name, func(t *testing.T) {
			dir := t.TempDir()
			below := filepath.Join(dir, "be,l:ow\\")
			write(t, filepath.Join(below, "kept"), "kept\n")
			write(t, filepath.Join(below, "folder", "gone"), "gone\n")
			lowest := write(t, filepath.Join(dir, "lowest", "deep"), "deep\n")
			at, upper := filepath.Join(dir, "at"), filepath.Join(dir, "upper", "tree")
			if err := os.Mkdir(at, 0o700); err != nil {
				t.Fatal(err)
			}
			view := sandbox.View{Layers: []sandbox.Layer{{At: at, Lower: []string{below, filepath.Dir(lowest)}, Upper: upper}}, Dir: at}
			in := func(script string) string { return within(t, m, view, dir, script) }
			if got := in("pwd; cat kept deep && echo new >kept && rm -r folder && mkdir folder && touch folder/new && ls folder"); got != at+"\nkept\ndeep\nnew\n" {
				t.Errorf("the first command sees %q", got)
			}
			if got := in("cat kept; ls folder"); got != "new\nnew\n" {
				t.Errorf("the second command sees %q", got)
			}
			for path, want := range map[string]string{"kept": "kept\n", "folder/gone": "gone\n"} {
				if got, err := os.ReadFile(filepath.Join(below, path)); err != nil || string(got) != want {
					t.Errorf("%s below is %q, %v", path, got, err)
				}
			}
			if err := os.RemoveAll(filepath.Dir(upper)); err != nil {
				t.Fatal(err)
			}
			if got := in("cat kept folder/gone"); got != "kept\ngone\n" {
				t.Errorf("without the upper layer, the command sees %q", got)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "upper", ".work-*")); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// TestANetworkOfItsOwn: servers of the command's can be reached, those of others cannot, and /dev/shm is empty.
func TestANetworkOfItsOwn(t *testing.T) {
	for _, m := range layered(t) {
		t.Run(m.Name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			port := listener.Addr().(*net.TCPAddr).Port
			left := write(t, fmt.Sprintf("/dev/shm/ralph-test-%d", os.Getpid()), "left")
			t.Cleanup(func() { _ = os.Remove(left) })
			script := fmt.Sprintf(`
				ls /dev/shm
				python3 -c '
import socket
try:
    socket.create_connection(("127.0.0.1", %[1]d), 5)
    print("reached")
except ConnectionRefusedError:
    print("refused")
own = socket.create_server(("127.0.0.1", %[1]d))
socket.create_connection(("127.0.0.1", %[1]d), 5)
print("own")'`, port)
			if got := within(t, m, sandbox.View{Network: true, Shm: true}, t.TempDir(), script); got != "refused\nown\n" {
				t.Errorf("got %q", got)
			}
		})
	}
}

// TestATrialThatWasKilledIsRemoved: and none of a process that is still at it.
func TestATrialThatWasKilledIsRemoved(t *testing.T) {
	in := t.TempDir()
	gone, busy := filepath.Join(in, ".layers-4194305-1"), filepath.Join(in, fmt.Sprintf(".layers-%d-1", os.Getppid()))
	write(t, filepath.Join(gone, "at", "file"), "")
	write(t, filepath.Join(busy, "at", "file"), "")
	(&sandbox.Mechanism{Name: sandbox.None}).TryLayers(t.Context(), in)
	left, err := filepath.Glob(filepath.Join(in, ".layers-*"))
	if err != nil || len(left) != 1 || left[0] != busy {
		t.Errorf("left: %q, %v", left, err)
	}
}

// layered returns the mechanisms that work here, with layers.
func layered(t *testing.T) (list []sandbox.Mechanism) {
	t.Helper()
	for _, m := range append(mechanisms(t), sandbox.Mechanism{Name: sandbox.None}) {
		if why := m.TryLayers(t.Context(), t.TempDir()); why != "" {
			t.Skip("skipped without layers: ", why)
		}
		list = append(list, m)
	}
	return list
}

// within runs a script with a view; dir is writable.
func within(t *testing.T, m sandbox.Mechanism, view sandbox.View, dir, script string) string {
	t.Helper()
	p := sandbox.Policy{Network: true}
	p.Add(sandbox.ReadOnly, "/")
	p.Add(sandbox.Hidden, "/dev")
	p.Add(sandbox.Writable, "/dev/null", "/dev/shm", dir)
	spec := proc.Spec{Args: []string{"sh", "-c", script}, Dir: dir, Env: []string{"PATH=" + os.Getenv("PATH")}}
	leave, err := sandbox.Box{Mechanism: m, Policy: p, View: view}.Enter(&spec)
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	r := run(t, spec)
	if r.Exit.Code != 0 {
		t.Errorf("exit status %d", r.Exit.Code)
	}
	return strings.TrimLeft(r.Output, "\r")
}
