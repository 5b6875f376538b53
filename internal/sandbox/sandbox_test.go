//go:build linux

package sandbox_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"ralph/internal/proc"
	"ralph/internal/sandbox"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == proc.SuperviseArg {
		os.Exit(proc.Supervise())
	}
	goleak.VerifyTestMain(m)
}

func TestWrapper(t *testing.T) {
	const always = "/usr/bin/bwrap --ro-bind / / --dev /dev --unshare-pid --proc /proc"
	tests := []struct {
		name    string
		options sandbox.Options
		want    string
	}{
		{"nothing is writable", sandbox.Options{Network: true}, always + " --"},
		{"folders are writable", sandbox.Options{Network: true, Writable: []string{"/a", "/b"}}, always + " --bind /a /a --bind /b /b --"},
		{"no network", sandbox.Options{Writable: []string{"/a"}}, always + " --unshare-net --bind /a /a --"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.options.Program = "/usr/bin/bwrap"
			if got := strings.Join(sandbox.Wrapper(test.options), " "); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestResolve(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "a/b", "ab"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, name := range []string{"link", "ab", "a/b", "missing", "ab"} {
		paths = append(paths, filepath.Join(dir, name))
	}
	got := sandbox.Resolve(append(paths, "", "relative")...)
	want := []string{filepath.Join(dir, "a"), filepath.Join(dir, "ab")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
}

func TestWithoutBwrapItIsSaidWhatToDo(t *testing.T) {
	if _, err := sandbox.Available(t.Context(), t.TempDir(), true); err == nil || !strings.Contains(err.Error(), "install bubblewrap") {
		t.Errorf("got the error %v, want one that says how to install it", err)
	}
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "bwrap"), []byte("#!/bin/sh\necho setting up uid map: Permission denied\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := sandbox.Available(t.Context(), broken+":"+os.Getenv("PATH"), true)
	if err == nil || !strings.Contains(err.Error(), "uid map: Permission denied") || !strings.Contains(err.Error(), "user namespaces") {
		t.Errorf("got the error %v, want one that quotes bwrap and says what to allow", err)
	}
}

// inSandbox is a shell script in a real sandbox, in which dir is writable.
func inSandbox(t *testing.T, dir, script string, network bool) proc.Spec {
	t.Helper()
	program, err := sandbox.Available(t.Context(), os.Getenv("PATH"), network)
	if err != nil {
		t.Skip("skipped without a sandbox: ", err)
	}
	marker := "SANDBOX_TEST=" + filepath.Base(filepath.Dir(dir))
	return proc.Spec{
		Args: []string{"sh", "-c", script}, Dir: dir, Env: []string{"PATH=" + os.Getenv("PATH"), marker}, Marker: marker,
		Wrapper:   sandbox.Wrapper(sandbox.Options{Program: program, Network: network, Writable: sandbox.Resolve(dir)}),
		KillGrace: time.Minute,
	}
}

func run(t *testing.T, spec proc.Spec) proc.Result {
	t.Helper()
	r, err := proc.Run(t.Context(), spec, 10_000, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestOnlyWhatIsWritableCanBeWritten(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	readable := filepath.Join(other, "readable")
	if err := os.WriteFile(readable, []byte("read\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	spec := inSandbox(t, dir, `
		echo 1 > inside && cat inside
		cat "$0"
		(echo 2 >> "$0") 2>/dev/null || echo refused
		(mv "$0" inside) 2>/dev/null || echo refused
		echo 3 > /dev/null && echo no more
		exit 3`, true)
	spec.Args = append(spec.Args, readable)
	r := run(t, spec)
	if want := "1\nread\nrefused\nrefused\nno more\n"; r.Exit.Code != 3 || r.Output != want {
		t.Errorf("got %+v; want exit status 3 and %q", r, want)
	}
	if text, err := os.ReadFile(readable); err != nil || string(text) != "read\n" {
		t.Errorf("the file is now %q, %v", text, err)
	}
}

func TestProcessesOutsideAreOutOfSight(t *testing.T) {
	r := run(t, inSandbox(t, t.TempDir(), `cat /proc/[0-9]*/comm`, true))
	if want := "bwrap\nsh\n"; r.Output != want {
		t.Errorf("got the processes %q, want %q", r.Output, want)
	}
}

func TestTheNetworkIsTakenAwayOnRequest(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, network := range []bool{true, false} {
		// bash opens /dev/tcp itself, so that no other program is needed.
		spec := inSandbox(t, t.TempDir(), "", network)
		spec.Args = []string{"bash", "-c", `exec 3<>/dev/tcp/127.0.0.1/$0`, port}
		r := run(t, spec)
		if reached := r.Exit.Code == 0; reached != network {
			t.Errorf("with network %v: %+v", network, r)
		}
	}
}

func TestAMissingProgramIsFoundBeforeTheSandbox(t *testing.T) {
	spec := inSandbox(t, t.TempDir(), "", true)
	spec.Args = []string{"no-such-program"}
	if _, err := proc.Start(spec); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("got the error %v, want %v", err, exec.ErrNotFound)
	}
}

// talk starts a script that says "up" and returns what it says after that.
func talk(t *testing.T, spec proc.Spec) (*proc.Process, *bufio.Reader) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	spec.Stdout, spec.Stderr = w, os.Stderr
	p, err := proc.Start(spec)
	if err := errors.Join(err, w.Close(), r.SetReadDeadline(time.Now().Add(20*time.Second))); err != nil {
		t.Fatal(err)
	}
	output := bufio.NewReader(r)
	if line, err := output.ReadString('\n'); line != "up\n" {
		t.Errorf("read %q, %v; want up", line, err)
	}
	return p, output
}

func TestAnInterruptReachesTheCommandAndNotTheSandbox(t *testing.T) {
	for name, interrupt := range map[string]func(*proc.Process) error{
		"the command alone": (*proc.Process).Interrupt, "its group": (*proc.Process).InterruptGroup,
	} {
		t.Run(name, func(t *testing.T) {
			p, output := talk(t, inSandbox(t, t.TempDir(), `trap 'echo bye; exit 7' INT; echo up; sleep 1000 & wait`, true))
			if err := interrupt(p); err != nil {
				t.Fatal(err)
			}
			line, err := output.ReadString('\n')
			if line != "bye\n" {
				t.Errorf("read %q, %v; want bye", line, err)
			}
			exit, err := p.Wait()
			// A shell's background jobs ignore interrupts.
			if err != nil || exit.Code != 7 || len(exit.Leftovers) != 1 || exit.Leftovers[0].Command != "sleep 1000" {
				t.Errorf("got %+v, %v; want exit status 7 and sleep left over", exit, err)
			}
		})
	}
}

func TestNothingInASandboxOutlivesIt(t *testing.T) {
	const family = `(setsid sh -c 'exec env -i sleep 1000 >/dev/null 2>&1' &); setsid sleep 1000 & trap '' INT TERM; echo up; `
	deaths := map[string]struct {
		script string
		end    func(*proc.Process) error
		code   int
	}{
		"when the command ends": {family + "exit 3", func(*proc.Process) error { return nil }, 3},
		"when it is killed":     {family + "while :; do sleep 1000; done", (*proc.Process).Kill, -1},
		"when its time is up":   {family + "while :; do sleep 1000; done", (*proc.Process).Interrupt, -1},
	}
	for name, death := range deaths {
		t.Run(name, func(t *testing.T) {
			spec := inSandbox(t, t.TempDir(), death.script, true)
			spec.KillGrace = time.Millisecond
			p, output := talk(t, spec)
			if err := death.end(p); err != nil {
				t.Fatal(err)
			}
			exit, err := p.Wait()
			if err != nil || exit.Code != death.code || len(exit.Leftovers) < 2 {
				t.Errorf("got %+v, %v; want the exit status %d and two leftovers", exit, err, death.code)
			}
			for _, l := range exit.Leftovers {
				if strings.Contains(l.Command, "bwrap") {
					t.Errorf("the sandbox itself is a leftover: %+v", l)
				}
				if err := syscall.Kill(l.Pid, 0); !errors.Is(err, syscall.ESRCH) {
					t.Errorf("%+v: %v, want %v", l, err, syscall.ESRCH)
				}
			}
			if _, err := io.Copy(io.Discard, output); err != nil {
				t.Errorf("the output is still held open: %v", err)
			}
		})
	}
}
