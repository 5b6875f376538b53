package proc_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ralph/internal/proc"
)

// bothWays runs a test with signals, and with a cgroup if there is one.
func bothWays(t *testing.T, test func(t *testing.T, by string, edit func(*proc.Spec))) {
	t.Run("signals", func(t *testing.T) { test(t, "signals", func(*proc.Spec) {}) })
	t.Run("cgroup", func(t *testing.T) {
		c := needCgroups(t)
		test(t, "cgroup", func(spec *proc.Spec) { spec.Containment = c })
	})
}

// only keeps the command itself.
func only(s *session) func(proc.Member) bool {
	return func(m proc.Member) bool { return m.Pid == s.Pid() }
}

func all(proc.Member) bool { return true }

// still freezes a session.
func (s *session) still(keep func(proc.Member) bool) *proc.Still {
	s.t.Helper()
	still, err := s.Still(s.t.Context(), keep)
	if err != nil {
		s.t.Fatal(err)
	}
	return still
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

// size is the size of a file that is written all the time, once it is there.
func size(t *testing.T, file string) (n int64) {
	t.Helper()
	waitFor(t, "the file to be written", func() bool {
		info, err := os.Stat(file)
		if err == nil {
			n = info.Size()
		}
		return n > 0
	})
	return n
}

var killed = proc.Exit{Code: -1, Signal: "SIGKILL"}

// TestTheCommandIsKeptAndGoesOn freezes all families twice and thaws them.
func TestTheCommandIsKeptAndGoesOn(t *testing.T) {
	bothWays(t, func(t *testing.T, by string, edit func(*proc.Spec)) {
		for _, family := range families {
			t.Run(family.name, func(t *testing.T) {
				t.Parallel()
				s := startScript(t, family.script+"\nread line; echo $line; read line; exit 3", edit)
				for range family.up {
					s.expect("up")
				}
				still := s.still(only(s))
				// A shell between the two may not have ended yet.
				if len(still.Killed) < family.up || still.By != by {
					t.Errorf("got %+v, want %d killed by %s", still, family.up, by)
				}
				for _, l := range still.Killed {
					if alive := commandOf(l.Pid); alive != "" || l.Command == "" {
						t.Errorf("%+v was killed, and is %q", l, alive)
					}
				}
				if err := still.Thaw(); err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(s.stdin, "on\n"); err != nil {
					t.Fatal(err)
				}
				s.expect("on")
				if still = s.still(only(s)); len(still.Killed) > 0 {
					t.Errorf("killed the second time: %+v", still.Killed)
				}
				if err := still.Thaw(); err != nil {
					t.Fatal(err)
				}
				s.stdin.Close()
				if exit := s.ends(proc.Exit{Code: 3}); len(exit.Leftovers) > 0 {
					t.Errorf("leftovers of what was killed already: %+v", exit.Leftovers)
				}
			})
		}
	})
}

// TestNothingMovesUntilItIsKilled freezes families that write to a file all the
// time, and kills them.
func TestNothingMovesUntilItIsKilled(t *testing.T) {
	bothWays(t, func(t *testing.T, by string, edit func(*proc.Spec)) {
		for _, family := range families {
			t.Run(family.name, func(t *testing.T) {
				t.Parallel()
				file := filepath.Join(t.TempDir(), "file")
				s := startScript(t, family.script+`
					sh -c 'while :; do echo x >>"$0"; done' "$0" & setsid sh -c 'while :; do echo x >>"$0"; done' "$0" &
					while :; do echo x >>"$0"; done`, func(spec *proc.Spec) {
					edit(spec)
					spec.Args = append(spec.Args, file)
				})
				for range family.up {
					s.expect("up")
				}
				size(t, file)
				still := s.still(all)
				if len(still.Killed) > 0 || still.By != by {
					t.Errorf("got %+v, want nothing to be killed and %s", still, by)
				}
				before := size(t, file)
				// Not even while another one is frozen and thawed beside it.
				other := startScript(t, "read line", edit)
				if err := other.still(all).Thaw(); err != nil {
					t.Error(err)
				}
				other.stdin.Close()
				other.ends(proc.Exit{Code: 1})
				if err := still.Kill(); err != nil {
					t.Error(err)
				}
				if exit := s.ends(killed); len(exit.Leftovers) > 0 {
					t.Errorf("leftovers of what was kept: %+v", exit.Leftovers)
				}
				if after := size(t, file); after != before {
					t.Errorf("%d bytes were written while it was frozen", after-before)
				}
			})
		}
	})
}

func TestStillAsksForEachProcessOnce(t *testing.T) {
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
	still := s.still(func(m proc.Member) bool {
		if _, again := asked[m.Pid]; again {
			t.Errorf("asked again for %+v", m)
		}
		asked[m.Pid] = m
		return m.Pid == s.Pid() || m.Command == "sleep 1000" && m.Parent == s.Pid()
	})
	if len(asked) != 4 || len(still.Killed) != 2 {
		t.Errorf("asked for %+v, killed %+v; want 4 and 2", asked, still.Killed)
	}
	members, err := s.Members()
	if err != nil || len(members) != 2 {
		t.Errorf("got the members %+v, %v; want two", members, err)
	}
	if err := still.Thaw(); err != nil {
		t.Error(err)
	}
	if err := still.Kill(); err == nil {
		t.Error("it was killed after it had been thawed")
	}
	s.stdin.Close()
	if exit := s.ends(proc.Exit{Code: 1}); len(exit.Leftovers) != 1 {
		t.Errorf("got the leftovers %+v, want the one that was kept and goes on", exit.Leftovers)
	}
}

func TestWhatHasStoppedItselfStaysStopped(t *testing.T) {
	bothWays(t, func(t *testing.T, _ string, edit func(*proc.Spec)) {
		s := startScript(t, `sh -c 'echo $$; kill -STOP $$; echo on' & read line; kill -CONT $!; wait; exit 3`, edit)
		line, err := s.stdout.ReadString('\n')
		pid, aerr := strconv.Atoi(strings.TrimSpace(line))
		if err := errors.Join(err, aerr); err != nil {
			t.Fatal(err)
		}
		state := func() byte {
			stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
			if err != nil {
				t.Fatal(err)
			}
			_, _, _, state, _, err := proc.ParseStat(string(stat))
			if err != nil {
				t.Fatal(err)
			}
			return state
		}
		waitFor(t, "it to stop", func() bool { return state() == 'T' })
		if err := s.still(all).Thaw(); err != nil {
			t.Fatal(err)
		}
		if got := state(); got != 'T' {
			t.Errorf("its state is %c, want T", got)
		}
		s.stdin.Close()
		s.expect("on")
		s.ends(proc.Exit{Code: 3})
	})
}

func TestAForkStormStandsStill(t *testing.T) {
	bothWays(t, func(t *testing.T, _ string, edit func(*proc.Spec)) {
		file := filepath.Join(t.TempDir(), "file")
		s := startScript(t, `
			hop='echo x >>"$2"; setsid sh -c "$0" "$0" 0 "$2" & exit 0'
			for i in 1 2 3 4 5 6 7 8; do sh -c "$hop" "$hop" 0 "$0" & done
			echo up; wait; read line; exit 3`, func(spec *proc.Spec) {
			edit(spec)
			spec.Args = append(spec.Args, file)
		})
		s.expect("up")
		size(t, file)
		still := s.still(only(s))
		if len(still.Killed) == 0 {
			t.Error("nothing was killed")
		}
		before := size(t, file)
		if alive := carriers(t, s.marker); len(alive) != 1 {
			t.Errorf("alive: %q, want the command alone", alive)
		}
		if err := still.Thaw(); err != nil {
			t.Fatal(err)
		}
		s.stdin.Close()
		s.ends(proc.Exit{Code: 3})
		if after := size(t, file); after != before {
			t.Errorf("%d bytes were written after the storm", after-before)
		}
	})
}

func TestOneWhoWakesTheOthersIsStoppedToo(t *testing.T) {
	bothWays(t, func(t *testing.T, _ string, edit func(*proc.Spec)) {
		file := filepath.Join(t.TempDir(), "file")
		s := startScript(t, `
			(while :; do echo x >>"$0"; done) & a=$!
			setsid sh -c 'echo up; while :; do kill -CONT $0 $1 $PPID; done' $a $$ &
			setsid sh -c 'echo up; while :; do kill -CONT $0 $1 $PPID; done' $a $$ &
			while :; do echo x >>"$0"; done`, func(spec *proc.Spec) {
			edit(spec)
			spec.Args = append(spec.Args, file)
		})
		s.expect("up", "up")
		size(t, file)
		still := s.still(all)
		before := size(t, file)
		if err := still.Kill(); err != nil {
			t.Error(err)
		}
		s.ends(killed)
		if after := size(t, file); after != before {
			t.Errorf("%d bytes were written while it was frozen", after-before)
		}
	})
}

func TestWhatIsWokenFromOutsideIsToldOfWhenItIsKilled(t *testing.T) {
	t.Parallel()
	s := startScript(t, "while :; do :; done", nil)
	still := s.still(all)
	if err := syscall.Kill(s.Pid(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := still.Kill(); err == nil || !strings.Contains(err.Error(), "somebody has woken") {
		t.Errorf("got the error %v, want one that says that it was woken", err)
	}
	s.ends(killed)
}

func TestWhatNeverStopsIsLetGo(t *testing.T) {
	t.Parallel()
	// Somebody outside of the tree wakes it all the time.
	s := startScript(t, "echo up; read line; exit 3", nil)
	s.expect("up")
	waker := exec.Command("sh", "-c", "while :; do kill -CONT $0; done", strconv.Itoa(s.Pid()))
	waker.Stderr = os.Stderr
	if err := waker.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	still, err := s.Still(ctx, all)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %+v, %v; want %v", still, err, context.DeadlineExceeded)
	}
	if err := waker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = waker.Wait()
	if err == nil { // between two wakings, as the kernel would have it
		if err := still.Thaw(); err != nil {
			t.Error(err)
		}
	}
	s.stdin.Close()
	s.ends(proc.Exit{Code: 3})
}

func TestAFreezeThatIsGivenUpIsUndone(t *testing.T) {
	bothWays(t, func(t *testing.T, _ string, edit func(*proc.Spec)) {
		s := startScript(t, "setsid sleep 1000 & echo up; read line; exit 3", edit)
		s.expect("up")
		ctx, cancel := context.WithCancel(t.Context())
		still, err := s.Still(ctx, func(proc.Member) bool { cancel(); return true })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %+v, %v; want %v", still, err, context.Canceled)
		}
		if still, err := s.Still(ctx, all); !errors.Is(err, context.Canceled) {
			t.Errorf("got %+v, %v; want %v", still, err, context.Canceled)
		}
		s.stdin.Close()
		s.ends(proc.Exit{Code: 3})
	})
}

func TestWhatIsFrozenIsKilledWithItsSupervisor(t *testing.T) {
	bothWays(t, func(t *testing.T, _ string, edit func(*proc.Spec)) {
		for _, family := range families {
			if strings.Contains(family.script, "env -i") {
				continue // out of a sweep's reach
			}
			t.Run(family.name, func(t *testing.T) {
				t.Parallel()
				s := startScript(t, family.script+"\nread line", edit)
				for range family.up {
					s.expect("up")
				}
				still := s.still(all)
				if err := syscall.Kill(supervisorOf(t, s), syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				if _, err := s.wait(); !errors.Is(err, proc.ErrSupervisorLost) {
					t.Errorf("got the error %v, want %v", err, proc.ErrSupervisorLost)
				}
				if alive := carriers(t, s.marker); len(alive) > 0 {
					t.Errorf("alive after Wait: %q", alive)
				}
				s.rest()
				if err := still.Kill(); err == nil {
					t.Error("Kill says that nothing has moved, which nobody knows")
				}
			})
		}
	})
}

func TestWhatIsFrozenIsKilledWithRalph(t *testing.T) {
	bothWays(t, func(t *testing.T, by string, _ func(*proc.Spec)) {
		for _, family := range families {
			t.Run(family.name, func(t *testing.T) {
				t.Parallel()
				marker := newMarker()
				ralph := exec.Command(os.Args[0], "helper", "freeze", by, family.script+"\necho ready; read line; sleep 1000")
				ralph.Env = append(os.Environ(), marker) // as one that runs within a session has
				out := pipe(t)
				ralph.Stdout, ralph.Stderr = out.w, os.Stderr
				if err := ralph.Start(); err != nil {
					t.Fatal(err)
				}
				out.w.Close()
				if _, err := io.ReadFull(out.r, make([]byte, len("frozen\n"))); err != nil {
					t.Fatal(err)
				}
				if err := ralph.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				_ = ralph.Wait()
				if _, err := io.ReadAll(out.r); err != nil {
					t.Errorf("the output is still held open: %v", err)
				}
				waitFor(t, "the supervisor to end", func() bool { return len(carriers(t, marker)) == 0 })
			})
		}
	})
}

func TestWhatHasEndedIsNotFrozen(t *testing.T) {
	t.Parallel()
	s := startScript(t, "exit 3", nil)
	s.ends(proc.Exit{Code: 3})
	if still, err := s.Still(t.Context(), all); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("got %+v, %v; want %v", still, err, os.ErrProcessDone)
	}
	if members, err := s.Members(); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("got %+v, %v; want %v", members, err, os.ErrProcessDone)
	}
}

func TestWhatEndsWhileItIsFrozenIsOver(t *testing.T) {
	t.Parallel()
	s := startScript(t, "setsid sleep 1000 & echo up; read line", nil)
	s.expect("up")
	still := s.still(all)
	if err := syscall.Kill(s.Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.ends(killed)
	if err := still.Thaw(); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("got the error %v, want %v", err, os.ErrProcessDone)
	}
}

func TestWhatIsFrozenCanBeKilledAsEver(t *testing.T) {
	bothWays(t, func(t *testing.T, _ string, edit func(*proc.Spec)) {
		for name, end := range map[string]func(*session) error{
			"killed":      func(s *session) error { return s.Kill() },
			"interrupted": func(s *session) error { return s.Interrupt() },
		} {
			t.Run(name, func(t *testing.T) {
				s := startScript(t, "setsid sleep 1000 & echo up; read line", func(spec *proc.Spec) {
					edit(spec)
					spec.KillGrace = 10 * time.Millisecond
				})
				s.expect("up")
				s.still(all)
				if err := end(s); err != nil {
					t.Fatal(err)
				}
				s.ends(killed)
			})
		}
	})
}

func TestAWrapperIsKeptWithItsCommand(t *testing.T) {
	bothWays(t, func(t *testing.T, _ string, edit func(*proc.Spec)) {
		// As bubblewrap: a process outside, one inside, then the command.
		s := startScript(t, "setsid sh -c 'echo up; sleep 1000; :' & read line; exit 3", func(spec *proc.Spec) {
			edit(spec)
			spec.Wrapper = []string{os.Args[0], "helper", "wrap"}
		})
		s.expect("up")
		wrapper := 0
		still := s.still(func(m proc.Member) bool {
			if strings.Contains(m.Command, "helper") {
				wrapper++
			}
			return strings.Contains(m.Command, "read line")
		})
		if len(still.Killed) == 0 || !strings.Contains(still.Killed[0].Command, "echo up") || wrapper > 0 {
			t.Errorf("killed %+v, asked for %d of the wrapper; want the child alone", still.Killed, wrapper)
		}
		if err := still.Thaw(); err != nil {
			t.Fatal(err)
		}
		s.stdin.Close()
		s.ends(proc.Exit{Code: 3})
	})
}

// TestAWrapperIsKnownByItsProgram: just after its start a process may still have another name, as this one has.
func TestAWrapperIsKnownByItsProgram(t *testing.T) {
	for program, want := range map[string]string{"": "", "bwrap": "bwrap", "bubblewrap-of-nix": "bubblewrap-of-n"} {
		if got := proc.WrapperOf(os.Getpid(), program); got != want {
			t.Errorf("the wrapper of %q is %q, want %q", program, got, want)
		}
	}
}

func TestAProcessThatStartsProgramsAllTheTimeIsFrozen(t *testing.T) {
	bothWays(t, func(t *testing.T, _ string, edit func(*proc.Spec)) {
		s := startScript(t, `exec "$0" helper vforks`, func(spec *proc.Spec) {
			edit(spec)
			spec.Args = append(spec.Args, os.Args[0])
		})
		s.expect("up")
		for range 20 {
			if err := s.still(all).Thaw(); err != nil {
				t.Fatal(err)
			}
		}
		s.stdin.Close()
		exit, err := s.wait()
		if text := s.rest(); err != nil || exit.Code != 0 || text != "" {
			t.Errorf("got %+v, %v, %q; want exit status 0, and no program that did not start", exit, err, text)
		}
	})
}

func TestManyProcessesAreFrozen(t *testing.T) {
	bothWays(t, func(t *testing.T, _ string, edit func(*proc.Spec)) {
		s := startScript(t, `n=0; while [ $n -lt 500 ]; do setsid sh -c 'echo up; exec sleep 1000' & n=$((n+1)); done; read line; exit 3`, edit)
		for range 500 {
			s.expect("up")
		}
		if still := s.still(only(s)); len(still.Killed) != 500 {
			t.Errorf("%d were killed, want 500", len(still.Killed))
		} else if err := still.Thaw(); err != nil {
			t.Error(err)
		}
		s.stdin.Close()
		s.ends(proc.Exit{Code: 3})
	})
}

func TestASupervisorThatIsStoppedAllTheTimeFreezesAndKills(t *testing.T) {
	bothWays(t, func(t *testing.T, _ string, edit func(*proc.Spec)) {
		for name, end := range map[string]func(*session) error{
			"frozen": func(s *session) error {
				still, err := s.Still(s.t.Context(), all)
				if err != nil { // it has not come to it for 10 seconds
					return s.Kill()
				}
				return still.Kill()
			},
			"killed": func(s *session) error { return s.Kill() },
		} {
			t.Run(name, func(t *testing.T) {
				s := startScript(t, `for i in 1 2 3 4; do setsid env -i "$0" helper stops $PPID & done; read line`, func(spec *proc.Spec) {
					edit(spec)
					spec.Args = append(spec.Args, os.Args[0])
				})
				s.expect("up", "up", "up", "up")
				if err := end(s); err != nil {
					t.Error(err)
				}
				s.ends(killed)
			})
		}
	})
}
