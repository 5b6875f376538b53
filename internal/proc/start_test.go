package proc_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"ralph/internal/proc"
)

func write(t *testing.T, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestStartNamesTheFault(t *testing.T) {
	path := "PATH=" + os.Getenv("PATH")
	file := write(t, "file", "no program", 0o600)
	script := write(t, "script", "#!/no/such/interpreter\n", 0o700)
	binary := write(t, "binary", "\x7fELF?", 0o700)
	tests := []struct {
		name string
		spec proc.Spec
		is   error
		text string
	}{
		{"no program given", proc.Spec{}, nil, "no program"},
		{
			"a program that is not in the PATH",
			proc.Spec{Args: []string{"no-such-program"}, Env: []string{path}},
			exec.ErrNotFound, "start no-such-program: ",
		},
		{"a program, but no PATH", proc.Spec{Args: []string{"sh"}}, exec.ErrNotFound, "start sh: "},
		{"a path that does not exist", proc.Spec{Args: []string{"/no/such/program"}}, exec.ErrNotFound, "/no/such/program does not exist"},
		{
			"a relative path that does not exist in the directory",
			proc.Spec{Args: []string{"./sh"}, Dir: "/usr"},
			exec.ErrNotFound, "/usr/sh does not exist",
		},
		{"a file that may not be executed", proc.Spec{Args: []string{file}}, fs.ErrPermission, file},
		{
			"a directory that does not exist",
			proc.Spec{Args: []string{"sh"}, Env: []string{path}, Dir: "/no/such/dir"},
			fs.ErrNotExist, "start sh: working directory: stat /no/such/dir",
		},
		{"a directory that is a file", proc.Spec{Args: []string{"sh"}, Env: []string{path}, Dir: file}, syscall.ENOTDIR, file},
		{"a script without its interpreter", proc.Spec{Args: []string{script}}, fs.ErrNotExist, "interpreter"},
		{"a file that is no program", proc.Spec{Args: []string{binary}}, syscall.ENOEXEC, binary},
		{"a marker that is not in the environment", proc.Spec{Args: []string{"sh"}, Env: []string{path}, Marker: "A=B"}, nil, `marker "A=B"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := proc.Start(test.spec)
			if err == nil || test.is != nil && !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got the error %v, want one with %q that is %v", err, test.text, test.is)
			}
			if errors.Is(err, exec.ErrNotFound) && errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%v: a missing program cannot be told from a missing directory", err)
			}
		})
	}
}

func TestSuperviseIsNotForPeople(t *testing.T) {
	out, err := exec.Command(os.Args[0], proc.SuperviseArg).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 {
		t.Errorf("got %q, %v; want exit status 2", out, err)
	}
}

func TestTheProgramIsFoundInTheCommandsOwnPath(t *testing.T) {
	dir := filepath.Dir(write(t, "greet", "#!/bin/sh\necho hello", 0o700))
	for name, spec := range map[string]proc.Spec{
		"by its name":            {Args: []string{"greet"}, Env: []string{"PATH=relative:/usr/bin:" + dir}},
		"by a relative path":     {Args: []string{"./greet"}, Dir: dir},
		"by its path, elsewhere": {Args: []string{filepath.Join(dir, "greet")}, Dir: "/"},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := proc.Run(t.Context(), spec, 100, nil)
			if err != nil || result.Output != "hello\n" {
				t.Errorf("got %+v, %v; want hello", result, err)
			}
		})
	}
}

func TestExit(t *testing.T) {
	tests := []struct {
		script string
		want   proc.Exit
	}{
		{"exit 0", proc.Exit{}},
		{"exit 42", proc.Exit{Code: 42}},
		{"kill -TERM $$", proc.Exit{Code: -1, Signal: "SIGTERM"}},
		{"kill -KILL $$", proc.Exit{Code: -1, Signal: "SIGKILL"}},
		{"kill -TERM $PPID; exit 3", proc.Exit{Code: 3}},
	}
	for _, test := range tests {
		t.Run(test.script, func(t *testing.T) {
			s := startScript(t, test.script, nil)
			got, err := s.wait()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("exit (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnInterruptLetsTheCommandEndByItself(t *testing.T) {
	s := startScript(t, `trap 'echo bye; exit 7' INT; echo up; sleep 1000 & wait`, nil)
	s.expect("up")
	if err := s.Interrupt(); err != nil {
		t.Fatal(err)
	}
	s.expect("bye")
	if exit, err := s.wait(); err != nil || exit.Code != 7 {
		t.Errorf("got %+v, %v; want exit status 7", exit, err)
	}
}

func TestAProcessThatIgnoresInterruptsIsKilled(t *testing.T) {
	s := startScript(t, `trap '' INT TERM; echo up; read line; exit 0`, func(spec *proc.Spec) { spec.KillGrace = 1 })
	s.expect("up")
	if err := s.Interrupt(); err != nil {
		t.Fatal(err)
	}
	if exit, err := s.wait(); err != nil || exit.Signal != "SIGKILL" {
		t.Errorf("got %+v, %v; want SIGKILL", exit, err)
	}
}

func TestProcessesThatGetAnInterrupt(t *testing.T) {
	for name, test := range map[string]struct {
		interrupt func(*proc.Process) error
		lines     []string
	}{
		"the command alone":       {(*proc.Process).Interrupt, []string{"command"}},
		"the whole process group": {(*proc.Process).InterruptGroup, []string{"child", "command"}},
	} {
		t.Run(name, func(t *testing.T) {
			// The command says that it was reached when its input ends.
			s := startScript(t, `trap 'read line; echo command; exit 0' INT; "$0" helper child & wait`, func(spec *proc.Spec) {
				spec.Args = append(spec.Args, os.Args[0])
			})
			s.expect("up")
			if err := test.interrupt(s.Process); err != nil {
				t.Fatal(err)
			}
			s.expect(test.lines[:len(test.lines)-1]...)
			s.stdin.Close()
			s.expect(test.lines[len(test.lines)-1])
			if exit, err := s.wait(); err != nil || exit.Code != 0 {
				t.Errorf("got %+v, %v; want exit status 0", exit, err)
			}
			if got := s.rest(); got != "" {
				t.Errorf("somebody else was reached: %q", got)
			}
		})
	}
}

func TestACommandThatIsGoneCannotBeSignalled(t *testing.T) {
	s := startScript(t, "", nil)
	if _, err := s.wait(); err != nil {
		t.Fatal(err)
	}
	for name, signal := range map[string]func() error{"Interrupt": s.Interrupt, "InterruptGroup": s.InterruptGroup, "Kill": s.Kill} {
		if err := signal(); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("%s: got the error %v, want %v", name, err, os.ErrProcessDone)
		}
	}
}

func TestTheCommandsStreamsAreItsOwn(t *testing.T) {
	// The supervisor must hold neither: a writer has to notice that nobody
	// reads, a reader that nobody writes.
	s := startScript(t, `exec <&- ; echo up; exec >&- ; trap 'exit 0' INT; sleep 1000 2>&- & wait`, nil)
	s.expect("up")
	if got := s.rest(); got != "" {
		t.Errorf("got %q after the end", got)
	}
	if _, err := s.stdin.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("writing what nobody reads: got the error %v, want %v", err, syscall.EPIPE)
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.wait(); err != nil {
		t.Error(err)
	}
}

func TestTheCommandGetsOnlyItsOwnInput(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PROC_SECRET", "of ralph")
	// A file that ralph has inherited is also open in its child processes.
	file, err := os.Open(write(t, "inherited", "", 0o600))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	inherited, err := syscall.Dup(int(file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Close(inherited); err != nil {
			t.Error(err)
		}
	}()
	// As "nohup ralph" and "ralph &" do.
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP)
	defer signal.Reset(syscall.SIGINT, syscall.SIGHUP)

	tests := []struct {
		name   string
		args   []string
		output string
	}{
		{"arguments, of any bytes", []string{"printf", "%s|", "a b", "\xff\xfe", "", "*"}, "a b|\xff\xfe||*|"},
		{"environment", []string{"env"}, "A=\xff\nB=\n"},
		{"working directory", []string{"pwd", "-P"}, resolved(t, dir) + "\n"},
		{"open files", []string{"sh", "-c", `for f in 3 4 5 6 7 8 9; do (: <&$f) 2>/dev/null && echo $f; done; :`}, ""},
		{"an empty input", []string{"cat"}, ""},
		{"signals that work", []string{"sh", "-c", `kill -HUP $$; echo ignored`}, ""},
		{"an interrupt that works", []string{"sh", "-c", `kill -INT $$; echo ignored`}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path, err := exec.LookPath(test.args[0])
			if err != nil {
				t.Fatal(err)
			}
			spec := proc.Spec{Args: append([]string{path}, test.args[1:]...), Dir: dir, Env: []string{"A=\xff", "B="}}
			result, err := proc.Run(t.Context(), spec, 1000, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := result.Output
			if test.name == "environment" {
				lines := strings.SplitAfter(got, "\n")
				slices.Sort(lines)
				got = strings.Join(lines, "")
			}
			if got != test.output {
				t.Errorf("got %q, want %q", got, test.output)
			}
		})
	}
}

func resolved(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheCommandHasItsOwnGroupAndSession(t *testing.T) {
	s := startScript(t, "echo up; read line", nil)
	s.expect("up")
	group, err := syscall.Getpgid(s.Pid())
	if err != nil || group != s.Pid() {
		t.Errorf("got the process group %d, %v; want %d", group, err, s.Pid())
	}
	// Without our terminal, nothing can wait for a person's password.
	session, err := unix.Getsid(s.Pid())
	if err != nil {
		t.Fatal(err)
	}
	if ours, err := unix.Getsid(0); err != nil || session == ours {
		t.Errorf("got the session %d, %v; want another one", session, err)
	}
	s.stdin.Close()
	if _, err := s.wait(); err != nil {
		t.Error(err)
	}
}

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		p, err := proc.Start(proc.Spec{Args: []string{"/bin/true"}})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Wait(); err != nil {
			b.Fatal(err)
		}
	}
}
