package proc_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ralph/internal/proc"
)

// families are the ways to get away from a parent. Each prints "up" for every
// process that it leaves running.
var families = []struct {
	name, script string
	up           int
}{
	{"no child", ``, 0},
	{"a child", `sh -c 'echo up; exec sleep 1000' &`, 1},
	{"a child in a session of its own", `setsid sh -c 'echo up; exec sleep 1000' &`, 1},
	{"a daemon that was forked twice", `(setsid sh -c '(echo up; exec sleep 1000) &' &)`, 1},
	{
		"a daemon that has closed its streams and cleared its environment",
		`(setsid sh -c 'echo up; exec env -i sleep 1000 >/dev/null 2>&1' &)`, 1,
	},
	{"a child that ignores every signal it can", `sh -c 'trap "" HUP INT QUIT TERM; echo up; exec sleep 1000' &`, 1},
	{"a child that is stopped", `setsid sh -c 'echo up; kill -STOP $$; exec sleep 1000' &`, 1},
	{"a child whose main thread has ended", os.Args[0] + ` helper headless &`, 1},
	{"a family of three generations", `setsid sh -c '
		setsid sh -c "echo up; exec sleep 1000" &
		echo up; exec sleep 1000' &`, 2},
}

// deaths are the ways in which a command comes to its end while it reads a line.
var deaths = []struct {
	name string
	die  func(t *testing.T, s *session) error
	want proc.Exit
}{
	{"ends by itself", func(_ *testing.T, s *session) error { return s.stdin.Close() }, proc.Exit{Code: 3}},
	{"is interrupted and obeys", func(_ *testing.T, s *session) error { return s.Interrupt() }, proc.Exit{Code: -1, Signal: "SIGINT"}},
	{"is killed by ralph", func(_ *testing.T, s *session) error { return s.Kill() }, proc.Exit{Code: -1, Signal: "SIGKILL"}},
	{
		"is killed by somebody else", func(_ *testing.T, s *session) error { return syscall.Kill(s.Pid(), syscall.SIGKILL) },
		proc.Exit{Code: -1, Signal: "SIGKILL"},
	},
}

func TestNothingIsAliveAfterTheCommand(t *testing.T) {
	for _, family := range families {
		for _, death := range deaths {
			t.Run(family.name+" when the command "+death.name, func(t *testing.T) {
				t.Parallel()
				s := startScript(t, family.script+"\nread line; exit 3", nil)
				for range family.up {
					s.expect("up")
				}
				if err := death.die(t, s); err != nil {
					t.Fatal(err)
				}
				exit, err := s.wait()
				if err != nil {
					t.Errorf("Wait: %v", err)
				}
				if alive := carriers(t, s.marker); len(alive) > 0 {
					t.Errorf("alive after Wait: %q", alive)
				}
				s.rest()
				// A shell between the two may not have ended yet.
				if len(exit.Leftovers) < family.up {
					t.Errorf("got the leftovers %+v, want %d or more", exit.Leftovers, family.up)
				}
				for _, l := range exit.Leftovers {
					if err := syscall.Kill(l.Pid, 0); !errors.Is(err, syscall.ESRCH) {
						t.Errorf("signalling the leftover %+v: %v, want %v", l, err, syscall.ESRCH)
					}
				}
				exit.Leftovers = nil
				if diff := cmp.Diff(death.want, exit); diff != "" {
					t.Errorf("exit (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestLeftoversAreNamed(t *testing.T) {
	t.Parallel()
	s := startScript(t, `setsid sh -c 'echo $$; exec sleep 1000' & read line`, nil)
	line, err := s.stdout.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "sleep to run", func() bool { return commandOf(pid) == "sleep 1000 " })
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	exit, err := s.wait()
	if err != nil {
		t.Fatal(err)
	}
	want := []proc.Leftover{{Pid: pid, Command: "sleep 1000"}}
	if diff := cmp.Diff(want, exit.Leftovers); diff != "" {
		t.Errorf("leftovers (-want +got):\n%s", diff)
	}
}

func TestChildrenThatEndByThemselvesAreNoLeftovers(t *testing.T) {
	t.Parallel()
	// The child sees the end of its input when the command has ended, and still
	// has something to do then.
	s := startScript(t, `mkfifo "$0"; sh -c 'cat "$0"; for i in 1 2 3 4 5 6 7 8; do sh -c :; done' "$0" & exec 9>"$0"; echo up; read line`, func(spec *proc.Spec) {
		spec.Args = append(spec.Args, filepath.Join(t.TempDir(), "fifo"))
	})
	s.expect("up")
	s.stdin.Close()
	exit, err := s.wait()
	if err != nil || exit.Code != 1 || len(exit.Leftovers) > 0 {
		t.Errorf("got %+v, %v; want exit status 1 of read and no leftover", exit, err)
	}
}

func TestAForkStormIsKilled(t *testing.T) {
	storms := []struct{ name, script string }{
		{"many processes at once", `
			n=0
			while [ $n -lt 300 ]; do
				setsid sh -c 'sleep 1000 & sleep 1000 & wait' &
				n=$((n+1))
				[ $n -ne 100 ] || echo up
			done
			wait`},
		{"processes that replace themselves all the time", `
			hop='[ $1 -gt 0 ] || exec sleep 1000
				setsid sh -c "$0" "$0" $(($1-1)) & exit 0'
			for i in 1 2 3 4 5 6 7 8; do sh -c "$hop" "$hop" 3000 & done
			echo up; wait; read line`},
		{"parents that restart their children", `
			for i in 1 2 3 4 5 6 7 8; do
				setsid sh -c 'n=0; while [ $n -lt 5000 ]; do sleep 1000; n=$((n+1)); done' &
			done
			echo up; wait`},
	}
	for _, storm := range storms {
		t.Run(storm.name, func(t *testing.T) {
			s := startScript(t, storm.script, nil)
			s.expect("up")
			if err := s.Kill(); err != nil {
				t.Fatal(err)
			}
			if _, err := s.wait(); err != nil {
				t.Error(err)
			}
			if alive := carriers(t, s.marker); len(alive) > 0 {
				t.Errorf("alive after Wait: %q", alive)
			}
			s.rest()
		})
	}
}

func TestNothingIsAliveAfterRalphWasKilled(t *testing.T) {
	for _, family := range families[1:] {
		t.Run(family.name, func(t *testing.T) {
			t.Parallel()
			marker := newMarker()
			ralph := exec.Command(os.Args[0], "helper", "run", "trap '' INT TERM HUP\n"+family.script+"\necho ready; read line; sleep 1000")
			ralph.Env = append(os.Environ(), marker) // as one that runs within a session has
			out := pipe(t)
			ralph.Stdout, ralph.Stderr = out.w, os.Stderr
			if err := ralph.Start(); err != nil {
				t.Fatal(err)
			}
			out.w.Close()
			lines := make([]byte, family.up*len("up\n")+len("ready\n"))
			if _, err := io.ReadFull(out.r, lines); err != nil {
				t.Fatalf("read %q, %v", lines, err)
			}
			if err := ralph.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			var killed *exec.ExitError
			if err := ralph.Wait(); !errors.As(err, &killed) {
				t.Errorf("the helper ended with %v, want a signal", err)
			}
			if _, err := io.ReadAll(out.r); err != nil {
				t.Errorf("the output is still held open: %v", err)
			}
			waitFor(t, "the supervisor to end", func() bool { return len(carriers(t, marker)) == 0 })
		})
	}
}

// supervisorOf returns the supervisor's process id.
func supervisorOf(t *testing.T, s *session) int {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	_, parent, _, _, _, err := proc.ParseStat(string(stat))
	if err != nil {
		t.Fatal(err)
	}
	return parent
}

func TestALostSupervisorsProcessesAreSwept(t *testing.T) {
	for _, family := range families {
		if strings.Contains(family.script, "env -i") {
			continue // out of a sweep's reach
		}
		t.Run(family.name, func(t *testing.T) {
			t.Parallel()
			s := startScript(t, family.script+"\nread line", nil)
			for range family.up {
				s.expect("up")
			}
			if err := syscall.Kill(supervisorOf(t, s), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			exit, err := s.wait()
			if !errors.Is(err, proc.ErrSupervisorLost) {
				t.Errorf("got the error %v, want %v", err, proc.ErrSupervisorLost)
			}
			if alive := carriers(t, s.marker); len(alive) > 0 {
				t.Errorf("alive after Wait: %q", alive)
			}
			s.rest()
			// A parent that has only started another may still be there.
			if exit.Code != -1 || exit.Signal != "" || len(exit.Leftovers) < family.up+1 {
				t.Errorf("got %+v, want nothing known but %d leftovers", exit, family.up+1)
			}
		})
	}
}

func TestALostSupervisorWithoutAMarkerIsReported(t *testing.T) {
	t.Parallel()
	s := startScript(t, "echo up; read line", func(spec *proc.Spec) { spec.Marker = "" })
	s.expect("up")
	if err := syscall.Kill(supervisorOf(t, s), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := s.wait(); !errors.Is(err, proc.ErrSupervisorLost) || !strings.Contains(err.Error(), "may still run") {
		t.Errorf("got the error %v, want one that says that it may still run", err)
	}
	if _, err := proc.Sweep(s.marker); err != nil {
		t.Error(err)
	}
	s.rest()
}

func TestASupervisorThatIsKilledAtTheStartLeavesNothing(t *testing.T) {
	t.Parallel()
	for i := range 60 {
		out, marker := pipe(t), newMarker()
		supervisor, start, err := proc.NewProcess(nil, out.w, os.Stderr)
		if err := errors.Join(err, out.w.Close()); err != nil {
			t.Fatal(err)
		}
		kill := func() {
			if err := syscall.Kill(supervisor, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
		killed := make(chan struct{})
		if i == 0 { // before, and then ever later
			kill()
			close(killed)
		} else {
			time.AfterFunc(time.Duration(i)*200*time.Microsecond, func() { kill(); close(killed) })
		}
		p, err := start(proc.Spec{
			Args: []string{"sh", "-c", "sleep 1000"}, Env: []string{"PATH=" + os.Getenv("PATH"), marker}, Marker: marker,
		})
		if err == nil {
			_, err = p.Wait()
		}
		<-killed
		if !errors.Is(err, proc.ErrSupervisorLost) {
			t.Errorf("got the error %v, want %v", err, proc.ErrSupervisorLost)
		}
		if _, err := io.ReadAll(out.r); err != nil {
			t.Fatalf("killed after %d: the output is still held open: %v, by %q", i, err, carriers(t, marker))
		}
	}
}

func TestASupervisorHeedsNoSignal(t *testing.T) {
	t.Parallel()
	s := startScript(t, "echo up; read line; exit 4", nil)
	s.expect("up")
	for _, sig := range []syscall.Signal{
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGABRT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE, syscall.SIGALRM, syscall.SIGTSTP,
	} {
		if err := syscall.Kill(supervisorOf(t, s), sig); err != nil {
			t.Fatal(err)
		}
	}
	s.stdin.Close()
	if exit, err := s.wait(); err != nil || exit.Code != 4 {
		t.Errorf("got %+v, %v; want exit status 4", exit, err)
	}
}

func TestASupervisorThatWasStoppedObeys(t *testing.T) {
	t.Parallel()
	s := startScript(t, "setsid sleep 1000 & echo up; read line", nil)
	s.expect("up")
	if err := syscall.Kill(supervisorOf(t, s), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if exit, err := s.wait(); err != nil || exit.Signal != "SIGKILL" {
		t.Errorf("got %+v, %v; want SIGKILL", exit, err)
	}
	s.rest()
}

func TestASupervisorThatWasStoppedEndsWithRalph(t *testing.T) {
	t.Parallel()
	for _, family := range families[:2] {
		t.Run(family.name, func(t *testing.T) {
			marker := newMarker()
			ralph := exec.Command(os.Args[0], "helper", "run", family.script+"\nkill -STOP $PPID; echo stopped; sleep 1000")
			ralph.Env = append(os.Environ(), marker)
			out := pipe(t)
			ralph.Stdout, ralph.Stderr = out.w, os.Stderr
			if err := ralph.Start(); err != nil {
				t.Fatal(err)
			}
			out.w.Close()
			for text := ""; !strings.Contains(text, "stopped\n"); {
				b := make([]byte, 100)
				n, err := out.r.Read(b)
				if err != nil {
					t.Fatal(err)
				}
				text += string(b[:n])
			}
			if err := ralph.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = ralph.Wait()
			waitFor(t, "the supervisor to end", func() bool { return len(carriers(t, marker)) == 0 })
		})
	}
}

func TestRunDoesNotWaitForADaemonWithTheOutputOpen(t *testing.T) {
	got, err := proc.Run(t.Context(), shell(`setsid sleep 1000 & echo done`), 100, nil)
	if err != nil || got.Output != "done\n" || len(got.Exit.Leftovers) != 1 {
		t.Errorf("got %+v, %v; want one leftover", got, err)
	}
}

// writer is a function as an [io.Writer].
type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

func TestRunDoesNotWaitForAnotherCommandWithTheOutputOpen(t *testing.T) {
	t.Parallel()
	stdin := pipe(t)
	spec := shell("echo $$; read line; echo done")
	spec.Stdin = stdin.r
	var other *os.File // holds the output, and is not the command's
	got, err := proc.Run(t.Context(), spec, 100, writer(func(p []byte) (_ int, err error) {
		if other == nil {
			other, err = os.OpenFile("/proc/"+strings.TrimSpace(string(p))+"/fd/1", os.O_WRONLY, 0)
			err = errors.Join(err, stdin.w.Close())
		}
		return len(p), err
	}))
	if err != nil || !strings.HasSuffix(got.Output, "\ndone\n") {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
}
