package proc_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ralph/internal/proc"
)

// only keeps the command itself.
func only(s *session) func(proc.Member) bool {
	return func(m proc.Member) bool { return m.Pid == s.Pid() }
}

// prune prunes a session.
func (s *session) prune(keep func(proc.Member) bool) []proc.Leftover {
	s.t.Helper()
	killed, err := s.Prune(s.t.Context(), keep)
	if err != nil {
		s.t.Fatal(err)
	}
	return killed
}

// ends wants the session to end with this exit, its leftovers aside.
func (s *session) ends(want proc.Exit) proc.Exit {
	s.t.Helper()
	exit, err := s.wait()
	if err != nil {
		s.t.Errorf("Wait: %v", err)
	}
	if exit.Code != want.Code || exit.Signal != want.Signal {
		s.t.Errorf("got %+v, want %+v", exit, want)
	}
	if alive := carriers(s.t, s.marker); len(alive) > 0 {
		s.t.Errorf("alive after Wait: %q", alive)
	}
	s.rest()
	return exit
}

var killed = proc.Exit{Code: -1, Signal: "SIGKILL"}

// TestTheCommandIsKeptAndGoesOn while all that it has started is killed, twice.
func TestTheCommandIsKeptAndGoesOn(t *testing.T) {
	for _, family := range families {
		t.Run(family.name, func(t *testing.T) {
			t.Parallel()
			s := startScript(t, family.script+"\nread line; echo $line; read line; exit 3", nil)
			for range family.up {
				s.expect("up")
			}
			killed := s.prune(only(s))
			// A shell between the two may not have ended yet.
			if len(killed) < family.up {
				t.Errorf("got %+v, want %d killed", killed, family.up)
			}
			for _, l := range killed {
				if alive := commandOf(l.Pid); alive != "" || l.Command == "" {
					t.Errorf("%+v was killed, and is %q", l, alive)
				}
			}
			if _, err := io.WriteString(s.stdin, "on\n"); err != nil {
				t.Fatal(err)
			}
			s.expect("on")
			if killed = s.prune(only(s)); len(killed) > 0 {
				t.Errorf("killed the second time: %+v", killed)
			}
			s.stdin.Close()
			if exit := s.ends(proc.Exit{Code: 3}); len(exit.Leftovers) > 0 {
				t.Errorf("leftovers of what was killed already: %+v", exit.Leftovers)
			}
		})
	}
}

// TestPruneAsksForEachProcessOnce, and keeps those for which it is told so.
func TestPruneAsksForEachProcessOnce(t *testing.T) {
	t.Parallel()
	s := startScript(t, `setsid sleep 1000 & setsid sh -c 'sleep 1000 & echo up; wait' & read line`, nil)
	s.expect("up")
	waitFor(t, "sleep to run", func() bool {
		members, err := s.Members()
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, m := range members {
			if m.Command == "sleep 1000" && filepath.IsAbs(m.Exe) {
				n++
			}
		}
		return n == 2 && len(members) == 4
	})
	asked := map[int]proc.Member{}
	killed := s.prune(func(m proc.Member) bool {
		if _, again := asked[m.Pid]; again {
			t.Errorf("asked again for %+v", m)
		}
		asked[m.Pid] = m
		return m.Pid == s.Pid() || m.Command == "sleep 1000" && m.Parent == s.Pid()
	})
	if len(asked) != 4 || len(killed) != 2 {
		t.Errorf("asked for %+v, killed %+v; want 4 and 2", asked, killed)
	}
	members, err := s.Members()
	if err != nil || len(members) != 2 {
		t.Errorf("got the members %+v, %v; want two", members, err)
	}
	s.stdin.Close()
	if exit := s.ends(proc.Exit{Code: 1}); len(exit.Leftovers) != 1 {
		t.Errorf("got the leftovers %+v, want the one that was kept and goes on", exit.Leftovers)
	}
}

func TestEndedProcessesAreNotPruned(t *testing.T) {
	t.Parallel()
	s := startScript(t, "exit 3", nil)
	s.ends(proc.Exit{Code: 3})
	if killed, err := s.Prune(t.Context(), only(s)); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("got %+v, %v; want %v", killed, err, os.ErrProcessDone)
	}
	if members, err := s.Members(); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("got %+v, %v; want %v", members, err, os.ErrProcessDone)
	}
}

func TestAWrapperIsKeptWithItsCommand(t *testing.T) {
	// As bubblewrap: a process outside, one inside, then the command.
	s := startScript(t, "setsid sh -c 'echo up; sleep 1000; :' & read line; exit 3", func(spec *proc.Spec) {
		spec.Wrapper = []string{os.Args[0], "helper", "wrap"}
	})
	s.expect("up")
	wrapper := 0
	killed := s.prune(func(m proc.Member) bool {
		if strings.Contains(m.Command, "helper") {
			wrapper++
		}
		return strings.Contains(m.Command, "read line")
	})
	if len(killed) == 0 || !strings.Contains(killed[0].Command, "echo up") || wrapper > 0 {
		t.Errorf("killed %+v, asked for %d of the wrapper; want the child alone", killed, wrapper)
	}
	s.stdin.Close()
	s.ends(proc.Exit{Code: 3})
}

// TestAWrapperIsKnownByItsProgram: just after its start a process may still have another name, as this one has.
func TestAWrapperIsKnownByItsProgram(t *testing.T) {
	for program, want := range map[string]string{"": "", "bwrap": "bwrap", "bubblewrap-of-nix": "bubblewrap-of-n"} {
		if got := proc.WrapperOf(os.Getpid(), program); got != want {
			t.Errorf("the wrapper of %q is %q, want %q", program, got, want)
		}
	}
}

func TestASupervisorThatIsStoppedAllTheTimeKills(t *testing.T) {
	s := startScript(t, `for i in 1 2 3 4; do setsid env -i "$0" helper stops $PPID & done; read line`, func(spec *proc.Spec) {
		spec.Args = append(spec.Args, os.Args[0])
	})
	s.expect("up", "up", "up", "up")
	if err := s.Kill(); err != nil {
		t.Error(err)
	}
	s.ends(killed)
}

func TestASupervisorThatIsStoppedStillStarts(t *testing.T) {
	stdin, stdout := pipe(t), pipe(t)
	supervisor, start, err := proc.NewProcess(stdin.r, stdout.w, os.Stderr)
	if err == nil {
		err = errors.Join(stdout.w.Close(), syscall.Kill(supervisor, syscall.SIGSTOP))
	}
	if err != nil {
		t.Fatal(err)
	}
	marker := newMarker()
	p, err := start(proc.Spec{
		Args: []string{"sh", "-c", "echo up"}, Env: []string{"PATH=" + os.Getenv("PATH"), marker}, Marker: marker,
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &session{Process: p, stdout: bufio.NewReader(stdout.r), t: t, marker: marker}
	s.expect("up")
	s.ends(proc.Exit{})
}
